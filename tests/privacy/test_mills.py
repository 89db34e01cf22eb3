"""Mills ratios and their differences against 60 digits."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.privacy.mills import drop, mills

CLAIM = 1e-13
POINTS = [-1.0, -0.3, 0.0, 0.7, 2.0, 5.0, 9.9, 9.9999, 10.0001, 12.0, 50.0, 1e3, 1e6]

deterministic = settings(derandomize=True, deadline=None, max_examples=100)
points = st.floats(-1.0, 40.0)
gaps = st.floats(-13.0, 2.0).map(lambda exponent: 10.0**exponent)


def exact_ratio(exact: Any, x: Any) -> Any:
    mp = exact.mp
    return mp.sqrt(mp.pi / 2) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2))


@pytest.mark.parametrize("x", [-29.0, *POINTS])
def test_the_ratio_agrees_with_50_digits(exact: Any, x: float) -> None:
    truth = exact_ratio(exact, exact.number(x))
    assert abs(mills(np.array([x]))[0] / truth - 1) <= CLAIM


@pytest.mark.parametrize("x", POINTS)
def test_a_difference_keeps_13_digits_however_small_the_gap(exact: Any, x: float) -> None:
    for gap in 10.0 ** np.arange(-13.0, 3.0, 0.37):
        start, width = exact.number(x), exact.number(float(gap))
        truth = exact_ratio(exact, start) - exact_ratio(exact, start + width)
        assert abs(drop(np.array([x]), np.array([gap]))[0] / truth - 1) <= CLAIM, gap


def test_no_gap_is_no_difference() -> None:
    assert not drop(np.array(POINTS), np.zeros(len(POINTS))).any()


@deterministic
@given(points, gaps, gaps)
def test_differences_add_up(x: float, first: float, second: float) -> None:
    parts = drop(np.array([x]), np.array([first])) + drop(np.array([x + first]), np.array([second]))
    # x + first is rounded, which a gap much below x's last digit feels.
    slack = 4 * np.finfo(float).eps * (1.0 + x) / (first + second)
    assert drop(np.array([x]), np.array([first + second])) == pytest.approx(parts, rel=CLAIM + slack)
