"""log_delta(epsilon, mu): the hockey-stick divergence of two unit Gaussians mu apart, rounded up."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.privacy.gaussian import log_delta

EPSILONS = [0.0, 1e-6, 0.1, 1.0, 8.0, 100.0, 700.0, 709.0, 710.0, 800.0, 1000.0]
QUANTILES = [-8.2, -7.0, -4.5, -2.0, -0.5, 0.0, 0.5, 2.0]
CLAIM = 1e-12
EXTREMES = [0.0, 5e-324, 1e-308, 1e-160, 1e-20, 1.0, 1e4, 1e20, 1e153, 1e200, 1.7e308, math.inf]

deterministic = settings(derandomize=True, deadline=None, max_examples=100)
epsilons = st.floats(0.0, 1000.0)
distances = st.floats(-16.0, 2.0).map(lambda exponent: 10.0**exponent)


def distance(epsilon: float, quantile: float) -> float:
    """mu with mu/2 - epsilon/mu = quantile, which leaves delta near Phi(quantile)."""
    return quantile + math.hypot(quantile, math.sqrt(2.0 * epsilon))


def assert_tight_upper_bound(exact: Any, epsilon: float, mu: float) -> None:
    excess = exact.number(log_delta(epsilon, mu)) - exact.mp.log(exact.gaussian_delta(epsilon, mu))
    assert 0 <= excess <= CLAIM, f"log delta is off by {float(excess):.3g} at epsilon {epsilon}, mu {mu}"


@pytest.mark.parametrize("epsilon", EPSILONS[1:])
def test_delta_is_never_below_the_exact_one_and_agrees_to_12_digits(exact: Any, epsilon: float) -> None:
    for quantile in QUANTILES:
        assert_tight_upper_bound(exact, epsilon, distance(epsilon, quantile))


@pytest.mark.parametrize("mu", [1e-15, 1e-12, 1e-6, 1e-3, 0.1, 0.35, 0.5, 1.0, 3.0, 8.0])
def test_delta_at_epsilon_zero_is_the_total_variation(exact: Any, mu: float) -> None:
    assert_tight_upper_bound(exact, 0.0, mu)
    total_variation = exact.mp.erf(exact.number(mu) / exact.mp.sqrt(8))
    assert 0 <= log_delta(0.0, mu) - exact.mp.log(total_variation) <= CLAIM


@pytest.mark.parametrize("mu", [1e-15, 1e-9, 1e-4, 0.05, 0.2, 0.3])
def test_nothing_cancels_where_the_gaussians_nearly_coincide(exact: Any, mu: float) -> None:
    for ratio in [0.0, 1e-9, 1e-3, 0.1, 1.0, 3.0, 6.0]:
        assert_tight_upper_bound(exact, ratio * mu, mu)


@pytest.mark.parametrize(("epsilon", "mu"), [(0.0, 0.3), (0.5, 0.7), (1.0, 0.2), (3.0, 2.0), (20.0, 4.0)])
def test_delta_is_the_hockey_stick_integral(exact: Any, epsilon: float, mu: float) -> None:
    mp, e, m = exact.mp, exact.number(epsilon), exact.number(mu)

    def excess_density(x: Any) -> Any:
        return mp.npdf(x - m) - mp.exp(e) * mp.npdf(x)

    crossing = e / m + m / 2
    integral = mp.quad(excess_density, [crossing + step for step in (0, 1, 2, 4, 8, 16)])
    assert 0 <= log_delta(epsilon, mu) - mp.log(integral) <= CLAIM


@pytest.mark.parametrize("mu", [1e-9, 1e-5, 1e-2, 1.0, 30.0])
def test_deep_tails_stay_upper_bounds_with_12_digits_of_log_delta(exact: Any, mu: float) -> None:
    for quantile in [-38.0, -300.0, -9_999.0, -10_001.0, -1e5, -1e6]:
        epsilon = (mu / 2 - quantile) * mu
        truth = exact.mp.log(exact.gaussian_delta(epsilon, mu))
        excess = exact.number(log_delta(epsilon, mu)) - truth
        assert 0 <= excess <= CLAIM * abs(truth), (quantile, float(excess))


def test_neither_coincidence_nor_infinite_epsilon_costs_any_delta() -> None:
    assert log_delta(1.0, 0.0) == -math.inf
    assert log_delta(math.inf, 3.0) == -math.inf
    assert log_delta(math.inf, math.inf) == -math.inf


def test_infinite_distance_gives_everything_away() -> None:
    assert log_delta(1000.0, math.inf) == 0.0
    assert log_delta(1000.0, 1e9) == 0.0


@pytest.mark.parametrize("epsilon", EXTREMES)
def test_delta_grows_with_distance_at_any_magnitude(epsilon: float) -> None:
    bounds = [log_delta(epsilon, mu) for mu in EXTREMES]
    assert all(bound <= 0.0 for bound in bounds)
    assert all(near <= far for near, far in pairwise(bounds)), bounds


@pytest.mark.parametrize("mu", EXTREMES)
def test_delta_falls_with_epsilon_at_any_magnitude(mu: float) -> None:
    bounds = [log_delta(epsilon, mu) for epsilon in EXTREMES]
    assert all(loose >= strict for loose, strict in pairwise(bounds)), bounds


def test_only_an_exact_zero_is_called_zero() -> None:
    assert log_delta(1.0, 1e-100) > -math.inf


@deterministic
@given(epsilons, epsilons, distances)
def test_delta_falls_as_epsilon_grows(one: float, other: float, mu: float) -> None:
    less, more = sorted([one, other])
    bound = log_delta(less, mu)
    assert log_delta(more, mu) <= bound + CLAIM * max(1.0, -bound)


@deterministic
@given(epsilons, distances, distances)
def test_delta_grows_with_the_distance(epsilon: float, one: float, other: float) -> None:
    near, far = sorted([one, other])
    bound = log_delta(epsilon, far)
    assert log_delta(epsilon, near) <= bound + CLAIM * max(1.0, -bound)


@deterministic
@given(epsilons, distances)
def test_delta_is_at_most_the_total_variation(epsilon: float, mu: float) -> None:
    assert log_delta(epsilon, mu) <= log_delta(0.0, mu) + CLAIM


@deterministic
@given(st.floats(0.0, 20.0), st.floats(0.01, 8.0))
def test_delta_is_convex_in_e_to_the_epsilon(epsilon: float, mu: float) -> None:
    low, high = math.exp(epsilon), math.exp(epsilon + 0.5)
    middle = math.log((low + high) / 2)
    chord = (math.exp(log_delta(epsilon, mu)) + math.exp(log_delta(epsilon + 0.5, mu))) / 2
    assert math.exp(log_delta(middle, mu)) <= chord * (1 + CLAIM)


@pytest.mark.parametrize("quantile", [-6.0, -2.0, -0.9, 0.0, 0.5])
def test_no_seam_shows_between_the_ways_of_evaluation(exact: Any, quantile: float) -> None:
    for mu in np.geomspace(1e-5, 3.0, 500):
        assert_tight_upper_bound(exact, max((mu / 2 - quantile) * mu, 0.0), float(mu))
