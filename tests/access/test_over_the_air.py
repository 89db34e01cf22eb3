"""Over the air: all of P_t at once share one slot and one sigma."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from airchoir import Awgn, OverTheAir, Participation, Privacy, Scheme, ScoreBank
from airchoir.link import Link

MakeBank = Callable[..., ScoreBank]


def make_link(bank: ScoreBank, probability: float, lost: int = 0) -> Link:
    privacy = Privacy(epsilon=1.0, lost=lost)
    return Scheme(access=OverTheAir(), channel=Awgn(), privacy=privacy, participation=probability).link(bank)


def test_everyone_is_on_the_roster_in_one_slot(make_bank: MakeBank) -> None:
    link = make_link(make_bank(clients=6), 0.5)
    np.testing.assert_array_equal(link.roster, np.arange(6))
    np.testing.assert_array_equal(link.slots, np.zeros(6))
    np.testing.assert_array_equal(link.slot_use, [1.0])


def test_the_sum_carries_sigma_squared_plus_v_whoever_is_present(make_bank: MakeBank) -> None:
    link = make_link(make_bank(clients=4), 0.5)
    present = np.array([s for s in product((False, True), repeat=4) if any(s)]).T
    v = link.receiver_noise_variance / link.amplitudes[0] ** 2
    np.testing.assert_allclose(OverTheAir().noise_variance(present, link), link.sigma**2 + v, rtol=1e-14)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_each_of_the_present_adds_sigma_over_the_root_of_how_many_they_are(make_bank: MakeBank, size: int) -> None:
    link = make_link(make_bank(clients=5), 0.5)
    present = (np.arange(5) < size)[:, None]
    assert OverTheAir().client_noise_std(link, present)[0] == pytest.approx(link.sigma / math.sqrt(size), rel=1e-15)


@pytest.mark.parametrize(("size", "lost"), [(2, 1), (5, 1), (5, 4), (3, 2)])
def test_where_d_may_be_lost_each_adds_as_if_they_were_d_fewer(make_bank: MakeBank, size: int, lost: int) -> None:
    link = make_link(make_bank(clients=5), 0.5, lost)
    present = (np.arange(5) < size)[:, None]
    expected = link.sigma / math.sqrt(size - lost)
    assert OverTheAir().client_noise_std(link, present)[0] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("probability", [0.01, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("clients", [1, 2, 20])
def test_the_mean_noise_power_is_the_methods_formula(clients: int, probability: float) -> None:
    expected = 9.0 * (1.0 - (1.0 - probability) ** clients) / (clients * probability)
    claimed = OverTheAir().mean_client_noise_variance(3.0, OverTheAir().participation(clients, probability))
    assert claimed == pytest.approx(expected, rel=1e-12)


def test_a_round_with_too_few_to_cover_the_lost_is_drawn_again() -> None:
    assert OverTheAir().participation(7, 0.3).at_least == 1
    assert OverTheAir().participation(7, 0.3, lost=2).at_least == 3
    sizes = OverTheAir().participation(7, 0.3, lost=2).draw(2000, np.random.default_rng(0)).sum(axis=0)
    assert sizes.min() == 3


def test_sampling_hides_everything_unless_a_lost_client_may_know_the_set() -> None:
    law = OverTheAir().participation(7, 0.3)
    assert OverTheAir().hidden(law) == law == Participation(7, 0.3)
    assert OverTheAir().hidden(OverTheAir().participation(7, 0.3, lost=1), lost=1).certain


def test_channel_uses_are_the_number_of_classes_however_many_sing(make_bank: MakeBank) -> None:
    for clients, probability in ((1, 1.0), (7, 1.0), (7, 0.2)):
        assert make_link(make_bank(clients=clients, classes=4), probability).channel_uses == 4
