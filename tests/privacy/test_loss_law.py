"""The privacy-loss law of one query: its profile is the bound it came from, and it is a law."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.privacy.gaussian import log_deltas
from airchoir.privacy.loss_law import LossLaw, chords, convolve, fast_size

deterministic = settings(derandomize=True, deadline=None, max_examples=60)
distances = st.floats(-2.0, 1.0).map(lambda exponent: 10.0**exponent)


def gaussian_law(mu: float, spacing: float = 0.05) -> LossLaw:
    losses = np.arange(0.0, mu * mu / 2 + 10.0 * mu, spacing * mu)
    return chords(losses, log_deltas(losses, mu))


def profile(law: LossLaw, epsilon: float) -> float:
    mass = np.exp(law.log_mass)
    return float((mass * -np.expm1(np.minimum(epsilon - law.losses, 0.0))).sum()) + math.exp(law.log_infinite)


@deterministic
@given(distances)
def test_at_the_nodes_its_profile_is_the_bound_and_between_them_the_chord(mu: float) -> None:
    law = gaussian_law(mu)
    nodes = law.losses[law.losses >= 0.0]
    bound = np.exp(log_deltas(nodes, mu))
    assert [profile(law, node) for node in nodes[::20]] == pytest.approx(list(bound[::20]), rel=1e-9, abs=1e-13)
    one, other = nodes[3], nodes[4]
    middle = math.log((math.exp(one) + math.exp(other)) / 2)
    assert profile(law, middle) == pytest.approx((bound[3] + bound[4]) / 2, rel=1e-9)
    assert profile(law, middle) > math.exp(log_deltas(np.array([middle]), mu)[0])


@deterministic
@given(distances)
def test_all_of_it_is_one_rounded_up_under_either_of_the_pair(mu: float) -> None:
    law = gaussian_law(mu)
    mass = np.exp(law.log_mass)
    infinite = math.exp(law.log_infinite)
    assert 1.0 <= mass.sum() + infinite <= 1.0 + 1e-12
    assert float((mass * np.exp(-law.losses)).sum()) + infinite == pytest.approx(
        1.0, rel=1e-12
    )  # loss -inf under the other


@deterministic
@given(distances)
def test_it_is_as_symmetric_as_the_pair(mu: float) -> None:
    law = gaussian_law(mu)
    assert law.losses == pytest.approx(-law.losses[::-1], abs=0)
    assert law.log_mass - law.log_mass[::-1] == pytest.approx(law.losses, rel=1e-9, abs=1e-9)


def test_its_moments_are_the_gaussian_mechanisms() -> None:
    mu = 0.3
    mean, deviation = gaussian_law(mu, spacing=0.01).moments()
    # A chord adds a sixth of its squared length to the variance and half of that to the mean.
    assert mean == pytest.approx(mu * mu / 2, rel=1e-3)
    assert mean > mu * mu / 2
    assert deviation == pytest.approx(mu, rel=1e-3)


@pytest.mark.parametrize("tilt", [0.5, 3.0, -2.0])
def test_tilting_a_gaussian_moves_its_mean(tilt: float) -> None:
    mu = 0.3
    law = gaussian_law(mu, spacing=0.01)
    cumulant, mean = law.cumulant(tilt)
    assert cumulant == pytest.approx(tilt * mu**2 / 2 + (tilt * mu) ** 2 / 2, rel=1e-3)
    assert mean == pytest.approx(mu**2 / 2 + tilt * mu**2, rel=1e-3)
    assert law.tilted(tilt).moments()[0] == pytest.approx(mean, rel=1e-9)
    assert np.exp(law.tilted(tilt).log_mass).sum() == pytest.approx(1.0, rel=1e-12)


def test_tilts_reach_what_they_are_asked_for() -> None:
    law = gaussian_law(0.3)
    tilt = law.tilt_towards(0.5)
    assert 0.5 <= law.cumulant(tilt)[1] <= 0.51
    assert law.tilt_towards(-1.0) == 0.0
    for sign in (-1.0, 1.0):
        tilt = law.tilt_down_to(-20.0, sign)
        cumulant, mean = law.cumulant(tilt)
        assert math.copysign(1.0, tilt) == sign
        assert -21.0 <= cumulant - tilt * mean <= -20.0


def test_a_tilt_that_cannot_be_reached_ends() -> None:
    law = gaussian_law(0.3)
    assert law.cumulant(law.tilt_towards(1e9))[1] == pytest.approx(law.losses[-1], rel=1e-6)


def test_a_bound_that_does_not_fall_is_all_infinite_loss() -> None:
    law = chords(np.array([0.0, 1.0, 2.0]), np.full(3, math.log(0.25)))
    assert list(law.losses) == [0.0]
    assert math.exp(law.log_mass[0]) == pytest.approx(0.75, rel=1e-12)
    assert law.log_infinite == math.log(0.25)
    assert law.tilt_towards(1.0) == 0.0


def test_a_bound_that_is_not_quite_convex_is_raised_never_lowered() -> None:
    losses = np.array([0.0, 0.1, 0.2, 0.3])
    bound = np.array([0.30, 0.20, 0.19, 0.10])
    law = chords(losses, np.log(bound))
    assert all(profile(law, loss) >= value for loss, value in zip(losses, bound, strict=True))


@pytest.mark.parametrize("kind", [np.float64, np.longdouble])
@pytest.mark.parametrize("size", [256, 240, 243, 250])
def test_the_convolution_is_off_by_less_than_its_slack(size: int, kind: Any) -> None:
    """Sums of fair coins, down to 2^-200, below what an FFT can tell from 0; on a window that starts below 0."""
    coin = LossLaw(np.array([0.0, 0.5]), np.log([0.5, 0.5]), -math.inf)
    masses, (slack, together) = convolve(coin, queries=200, step=0.5, window=(-28, size), kind=np.dtype(kind))
    exact = np.array([math.comb(200, k) / 2**200 if 0 <= k <= 200 else 0.0 for k in range(-28, size - 28)])
    assert np.all(np.abs(masses - exact) <= slack)
    assert np.all(masses + slack >= exact)
    assert 0.0 < slack < 1e-12
    assert math.sqrt(((masses - exact) ** 2).sum()) <= together < 2e-12


@pytest.mark.parametrize("queries", [1, 2, 3, 100, 10_007])
def test_in_double_precision_it_is_off_from_long_double_by_less_than_its_slack(queries: int) -> None:
    """Rare losses, so that the spectrum stays near 1: what rounding does to it grows T times."""
    law = LossLaw(np.array([-1.0, 0.0, 1.0, 700.0]), np.log([1e-4, 1.0 - 3e-4, 1e-4, 1e-4]), -math.inf)
    double, long = (
        convolve(law, queries=queries, step=1.0, window=(-1000, 3000), kind=np.dtype(kind))
        for kind in (np.float64, np.longdouble)
    )
    off = np.abs(double[0] - long[0])
    assert off.max() <= double[1][0]
    assert math.sqrt((off**2).sum()) <= double[1][1]
    assert double[1][0] < 1e-13 * queries
    if queries > 1:
        assert 100.0 * long[1][0] < double[1][0]


def test_sums_beyond_the_window_are_wrapped_into_it_never_dropped() -> None:
    coin = LossLaw(np.array([0.0, 1.0]), np.log([0.5, 0.5]), -math.inf)
    masses, _ = convolve(coin, queries=10, step=1.0, window=(3, 5), kind=np.dtype(np.float64))
    whole = [math.comb(10, k) / 2**10 for k in range(11)]
    assert masses == pytest.approx([sum(whole[k % 5 :: 5]) for k in range(3, 8)], rel=1e-12)


@pytest.mark.parametrize("steps", [1.0, 100.5, 12345.6])
def test_a_fast_size_is_large_enough_and_has_small_factors(steps: float) -> None:
    size = fast_size(steps)
    assert steps <= size <= 1.2 * max(steps, 32.0)
    for factor in (2, 3, 5):
        while size % factor == 0:
            size //= factor
    assert size == 1
