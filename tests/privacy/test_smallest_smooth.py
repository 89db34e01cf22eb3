"""The search for where a smooth, costly bound is met: few evaluations, always the side that meets it."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.privacy.calibrate import costly_sigma, smallest_smooth

deterministic = settings(derandomize=True, deadline=None, max_examples=200)
positive = st.floats(-12.0, 12.0).map(lambda exponent: 10.0**exponent)
shapes: list[Callable[[float], float]] = [
    lambda x: -math.log(x),
    lambda x: 1.0 / x - 1.0,
    lambda x: 1.0 - x**3,
    lambda x: math.exp(1.0 - x) - 1.0,
    lambda x: math.inf if x < 0.5 else 1.0 - x,
    lambda x: -math.inf if x > 3.0 else 1.0 / x - 1.0,
]
"""All fall through 0 at 1."""


@deterministic
@given(positive, positive, st.sampled_from(shapes), st.sampled_from([1e-12, 1e-7, 1e-2]))
def test_it_finds_the_threshold_within_the_tolerance_from_the_side_that_meets_it(
    threshold: float, start: float, shape: Callable[[float], float], tolerance: float
) -> None:
    found = smallest_smooth(lambda x: shape(x / threshold), start=start, tolerance=tolerance)
    assert shape(found / threshold) <= 0.0
    assert found <= threshold * (1.0 + tolerance) * (1.0 + 1e-14)


@pytest.mark.parametrize("shape", shapes[:4])
def test_it_needs_few_evaluations(shape: Callable[[float], float]) -> None:
    evaluated: list[float] = []

    def excess(x: float) -> float:
        evaluated.append(x)
        return shape(x / 7.3)

    smallest_smooth(excess, start=1.0, tolerance=1e-7)
    assert len(evaluated) <= 16  # bisection alone takes 26


def test_a_bound_that_is_never_met_is_met_at_infinity() -> None:
    assert smallest_smooth(lambda x: 1.0, start=1.0) == math.inf


def test_a_bound_that_is_always_met_is_met_near_zero() -> None:
    assert smallest_smooth(lambda x: -1.0, start=1.0) < 1e-300


def test_no_noise_where_none_is_needed() -> None:
    assert costly_sigma(lambda epsilon, sigma: -20.0, 1.0, 1e-6, start=1.0, tolerance=1e-7) == 0.0
