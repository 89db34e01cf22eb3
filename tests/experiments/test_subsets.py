"""Smaller choirs: hands are fair and the same for everyone, and what is measured on them is their average."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airchoir import Privacy, Scheme, evaluate
from airchoir.experiments.choirs import Choir, measure
from airchoir.experiments.subsets import hands, sizes_within, smaller

Mean = Callable[..., float]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 9))
def test_hands_are_enough_sets_of_different_clients(clients: int, size: int, least: int) -> None:
    size = min(size, clients)
    dealt = hands(clients, size, least=least)
    assert len(dealt) == (1 if size == clients else max(least, clients // size))
    for hand in dealt:
        assert len(hand) == size == len(set(hand))
        assert set(hand) <= set(range(clients))
        assert list(hand) == sorted(hand)
    assert dealt == hands(clients, size, least=least)


@given(st.integers(1, 6), st.integers(2, 5), st.integers(1, 4))
def test_whole_decks_hear_every_client_equally_often(size: int, per_deck: int, decks: int) -> None:
    clients = size * per_deck
    heard = Counter(client for hand in hands(clients, size, least=per_deck * decks) for client in hand)
    assert heard == dict.fromkeys(range(clients), decks)


def test_another_seed_deals_other_hands_and_sizes_are_dealt_apart() -> None:
    assert hands(20, 5, least=5) != hands(20, 5, least=5, seed=1)
    assert not set(hands(20, 5, least=4)[0]) <= set(hands(20, 10, least=2)[0])  # no nested order


def test_a_smaller_choir_holds_every_hand_of_every_bank(two_tasks: list[Choir]) -> None:
    choir, dealt = two_tasks[0], [(0, 2), (5, 1)]
    part = smaller(choir, dealt)
    assert (part.task, part.clients, part.classes) == ("alpha", 2, 3)
    wanted = [bank.test_scores[list(hand)] for hand in dealt for bank in choir.banks]
    for bank, scores in zip(part.banks, wanted, strict=True):
        np.testing.assert_array_equal(bank.test_scores, scores)


def test_what_is_measured_on_a_smaller_choir_is_the_mean_over_hands_and_banks(two_tasks: list[Choir]) -> None:
    choir, scheme = two_tasks[0], Scheme(privacy=Privacy(2.0))
    dealt = hands(6, 2, least=4)
    values = [evaluate(scheme, bank.subset(hand)).macro_f1 for hand in dealt for bank in choir.banks]
    assert measure(scheme, smaller(choir, dealt)).pooled.macro_f1 == pytest.approx(np.mean(values), rel=1e-12)


def test_sizes_are_those_below_all_and_all() -> None:
    assert sizes_within((3, 1, 3, 9, 10, 0, 12), 10) == (1, 3, 9, 10)
    assert sizes_within((), 4) == (4,)
