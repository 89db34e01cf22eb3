"""Link: amplitudes that use up a power budget, and what follows from them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir import Participation
from airchoir.link import Link, amplitudes

powers_and_slots = st.lists(st.tuples(st.floats(1e-12, 1e12), st.integers(0, 3)), min_size=1, max_size=12)


@settings(deadline=None, derandomize=True)
@given(powers_and_slots)
def test_in_every_slot_the_hungriest_client_spends_exactly_the_budget(clients: list[tuple[float, int]]) -> None:
    names = sorted({slot for _, slot in clients})
    powers = np.array([power for power, _ in clients])
    slots = np.array([names.index(slot) for _, slot in clients])
    spent = powers * amplitudes(powers, slots)[slots] ** 2
    for slot in set(slots):
        assert spent[slots == slot].max() == pytest.approx(1.0, rel=1e-14)


def test_an_amplitude_is_one_over_the_root_of_the_largest_power() -> None:
    np.testing.assert_array_equal(amplitudes(np.array([0.25, 4.0, 0.0625]), np.array([1, 0, 1])), [0.5, 2.0])


def test_a_slot_that_needs_no_power_has_a_finite_amplitude() -> None:
    assert np.isfinite(amplitudes(np.array([0.0, 1.0]), np.array([0, 1]))).all()


def make_link(noise: float) -> Link:
    return Link(
        classes=7,
        roster=np.arange(3),
        participation=Participation(3, 0.5),
        sigma=2.0,
        lost=0,
        slots=np.arange(3),
        slot_use=np.array([0.5, 0.25, 1.0]),
        amplitudes=np.array([1.0, 2.0, 0.5]),
        receiver_noise_variance=noise,
    )


def test_dividing_a_slot_by_its_amplitude_divides_its_noise_by_the_square() -> None:
    np.testing.assert_array_equal(make_link(0.1).slot_noise_variance, [0.1, 0.025, 0.4])


def test_expected_noise_and_channel_uses_count_each_slot_by_how_often_it_is_used() -> None:
    link = make_link(0.1)
    assert link.channel_noise_variance == pytest.approx(0.5 * 0.1 + 0.25 * 0.025 + 1.0 * 0.4, rel=1e-15)
    assert link.channel_uses == 7 * 1.75


def test_a_receiver_without_noise_leaves_none() -> None:
    assert make_link(0.0).channel_noise_variance == 0.0
    assert not math.isnan(make_link(0.0).channel_noise_variance)
