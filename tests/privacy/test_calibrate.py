"""Turning a bound around: the smallest argument that satisfies it, never clipped, always on the private side."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.privacy import calibrate
from airchoir.privacy.gaussian import log_delta

EPSILONS = [0.0, 1e-6, 0.1, 1.0, 8.0, 100.0, 700.0, 709.0, 710.0, 800.0, 1000.0]
DELTAS = [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.5, 0.9]
CLAIM = 1e-12

deterministic = settings(derandomize=True, deadline=None, max_examples=200)
positive_floats = st.floats(min_value=5e-324, allow_infinity=False)


def theorem_1(epsilon: float, sigma: float) -> float:
    return log_delta(epsilon, math.sqrt(2.0) / sigma if sigma > 0.0 else math.inf)


def constant(bound: float) -> Callable[[float, float], float]:
    return lambda epsilon, sigma: bound


@deterministic
@given(positive_floats, positive_floats)
def test_smallest_finds_any_threshold_to_the_last_bit(threshold: float, start: float) -> None:
    found = calibrate.smallest(lambda x: x >= threshold, start=start)
    assert found == threshold or (found == math.inf and threshold > 2.0**1023)


def test_smallest_of_a_condition_that_never_holds_is_infinite() -> None:
    assert calibrate.smallest(lambda x: False, start=1.0) == math.inf


def test_smallest_of_a_condition_that_always_holds_is_the_smallest_float() -> None:
    assert calibrate.smallest(lambda x: True, start=1.0) == 5e-324


@pytest.mark.parametrize("bound", [-700.0, -34.5, -13.8, -1.0, -1e-3, -1e-15])
def test_delta_is_rounded_up_from_its_logarithm(exact: Any, bound: float) -> None:
    delta = calibrate.delta(constant(bound), 1.0, 1.0)
    truth = exact.mp.exp(exact.number(bound))
    assert truth < delta <= truth * (1 + exact.number(3 * math.ulp(1.0)))


def test_delta_is_zero_only_where_the_bound_is() -> None:
    assert calibrate.delta(constant(-math.inf), 1.0, 1.0) == 0.0
    assert calibrate.delta(constant(-1e6), 1.0, 1.0) > 0.0


@pytest.mark.parametrize("bound", [0.0, 1e-9, 5.0])
def test_delta_is_at_most_one(bound: float) -> None:
    assert calibrate.delta(constant(bound), 1.0, 1.0) == 1.0


def test_known_sigmas_of_theorem_1(known_answers: Any) -> None:
    for epsilon, delta, known in known_answers["theorem1_sigma [epsilon, delta, sigma]"]:
        assert calibrate.sigma(theorem_1, epsilon, delta) == pytest.approx(known, rel=CLAIM, abs=0)


def test_known_deltas_of_theorem_1(known_answers: Any) -> None:
    for epsilon, sigma, known in known_answers["theorem1_delta [epsilon, sigma, delta]"]:
        assert calibrate.delta(theorem_1, epsilon, sigma) == pytest.approx(known, rel=CLAIM, abs=0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_sigma_satisfies_delta_and_no_sigma_smaller_by_1e_12_does(exact: Any, epsilon: float) -> None:
    for delta in DELTAS:
        sigma = exact.number(calibrate.sigma(theorem_1, epsilon, delta))
        assert exact.delta(epsilon, sigma) <= delta
        assert exact.delta(epsilon, sigma * (1 - exact.number("1e-12"))) > delta


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_sigma_is_the_root_that_mpmath_finds(exact: Any, epsilon: float) -> None:
    for delta in [1e-15, 1e-6, 0.1]:
        root = exact.invert(lambda sigma: exact.delta(epsilon, sigma), delta)
        assert root <= calibrate.sigma(theorem_1, epsilon, delta) <= root * (1 + exact.number("1e-12"))


@pytest.mark.parametrize("sigma", [0.03, 0.05, 0.3, 1.0, 5.0, 50.0, 1e4, 1e9, 1e14])
def test_delta_12_digits_agree_at_the_epsilon_returned(exact: Any, sigma: float) -> None:
    for delta in DELTAS:
        epsilon = calibrate.epsilon(theorem_1, delta, sigma)
        reached = exact.delta(epsilon, sigma)
        assert reached <= delta
        assert epsilon == 0.0 or reached >= delta * (1 - exact.number("1e-12"))


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 5.0, 50.0, 1e6])
def test_epsilon_is_never_below_the_root_that_mpmath_finds(exact: Any, sigma: float) -> None:
    for delta in [1e-15, 1e-9, 1e-7]:
        root = exact.invert(lambda epsilon: exact.delta(epsilon, sigma), delta)
        assert root <= calibrate.epsilon(theorem_1, delta, sigma) <= root * (1 + exact.number("1e-12"))


@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_exactly_zero_where_delta_at_zero_is_enough(exact: Any, delta: float) -> None:
    enough = exact.invert(lambda sigma: exact.delta(0, sigma), delta)
    assert calibrate.epsilon(theorem_1, delta, float(enough * (1 + exact.number("2e-12")))) == 0.0
    assert calibrate.epsilon(theorem_1, delta, float(enough * (1 - exact.number("1e-12")))) > 0.0
    assert calibrate.epsilon(theorem_1, delta, calibrate.sigma(theorem_1, 0.0, delta)) == 0.0


def test_no_bracket_is_clipped() -> None:
    assert calibrate.sigma(theorem_1, 0.1, 1e-6) == pytest.approx(51.342585578483, rel=CLAIM)
    # At epsilon 0 and a tiny delta, delta = mu / sqrt(2 pi), so sigma = 1 / (sqrt(pi) delta).
    for delta in [1e-15, 1e-30, 1e-200]:
        assert calibrate.sigma(theorem_1, 0.0, delta) == pytest.approx(1 / math.sqrt(math.pi) / delta, rel=CLAIM)
    # Without noise to speak of epsilon is mu^2 / 2 = 1 / sigma^2, give or take a few mu.
    assert calibrate.epsilon(theorem_1, 0.5, 1e-6) == pytest.approx(1e12, rel=1e-5)


def test_infinite_epsilon_needs_no_noise() -> None:
    assert calibrate.sigma(theorem_1, math.inf, 1e-15) == 0.0
    assert calibrate.delta(theorem_1, math.inf, 0.0) == 0.0


def test_no_noise_gives_no_privacy() -> None:
    assert calibrate.epsilon(theorem_1, 0.999, 0.0) == math.inf
    assert calibrate.delta(theorem_1, 1000.0, 0.0) == 1.0


def test_infinite_noise_gives_all_of_it() -> None:
    assert calibrate.epsilon(theorem_1, 1e-15, math.inf) == 0.0
    assert calibrate.delta(theorem_1, 0.0, math.inf) == 0.0


@pytest.mark.parametrize("sigma", [5e-324, 1e-308, 1e-160, 1e-20, 1e7, 1e9, 1e60, 1e160, 1e300, 1.7e308])
def test_extreme_noise_never_overflows(sigma: float) -> None:
    for epsilon in EPSILONS:
        assert 0.0 <= calibrate.delta(theorem_1, epsilon, sigma) <= 1.0
    for delta in DELTAS:
        assert calibrate.epsilon(theorem_1, delta, sigma) >= 0.0


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-100, 0.999, 1 - 2**-53])
def test_extreme_deltas_are_kept(delta: float) -> None:
    for epsilon in EPSILONS:
        sigma = calibrate.sigma(theorem_1, epsilon, delta)
        assert sigma > 0.0
        assert theorem_1(epsilon, sigma) <= math.log(delta)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_single_precision_arguments_are_calculated_in_double(kind: type[np.floating]) -> None:
    epsilon, delta, noise = kind(0.1), kind(1e-3), kind(7.3)
    assert calibrate.sigma(theorem_1, epsilon, delta) == calibrate.sigma(theorem_1, float(epsilon), float(delta))
    assert calibrate.epsilon(theorem_1, delta, noise) == calibrate.epsilon(theorem_1, float(delta), float(noise))
    assert calibrate.delta(theorem_1, epsilon, noise) == calibrate.delta(theorem_1, float(epsilon), float(noise))
