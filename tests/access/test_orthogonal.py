"""Orthogonal: each of P_t alone in k channel uses, each with the full sigma."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from airchoir import Awgn, BeliefSum, Orthogonal, Privacy, Scheme, ScoreBank
from airchoir.link import Link

MakeBank = Callable[..., ScoreBank]


def make_link(bank: ScoreBank, probability: float) -> Link:
    return Scheme(BeliefSum(), Orthogonal(), Awgn(), Privacy(epsilon=1.0), participation=probability).link(bank)


def test_everyone_has_a_slot_of_its_own(make_bank: MakeBank) -> None:
    link = make_link(make_bank(clients=6), 0.5)
    np.testing.assert_array_equal(link.roster, np.arange(6))
    assert sorted(link.slots) == list(range(6))


def test_the_sum_carries_sigma_squared_and_v_i_for_everyone_present(make_bank: MakeBank) -> None:
    link = make_link(make_bank(clients=4), 0.5)
    v = link.receiver_noise_variance / link.amplitudes[link.slots] ** 2
    assert len(set(v)) == 4, "clients differ in power, so their v_i must"
    for chosen in product((False, True), repeat=4):
        if any(chosen):
            expected = sum(link.sigma**2 + v[client] for client in range(4) if chosen[client])
            variance = Orthogonal().noise_variance(np.array(chosen)[:, None], link)
            assert variance[0] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_each_adds_the_full_sigma_however_many_are_present(make_bank: MakeBank, size: int) -> None:
    link = make_link(make_bank(clients=5), 0.5)
    assert Orthogonal().client_noise_std(link, (np.arange(5) < size)[:, None])[0] == link.sigma
    assert Orthogonal().mean_client_noise_variance(link.sigma, link.participation) == link.sigma**2


def test_the_server_sees_who_transmits_so_sampling_hides_nothing() -> None:
    assert Orthogonal().hidden(Orthogonal().participation(7, 0.3)).certain


@pytest.mark.parametrize("probability", [0.05, 0.5, 1.0])
def test_channel_uses_are_classes_times_the_mean_number_present(make_bank: MakeBank, probability: float) -> None:
    link = make_link(make_bank(clients=5, classes=3), probability)
    mean_size = 5 * probability / (1.0 - (1.0 - probability) ** 5)
    assert link.channel_uses == pytest.approx(3 * mean_size, rel=1e-14)
