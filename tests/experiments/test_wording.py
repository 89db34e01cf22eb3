"""How numbers are told: what must not be told too small is not."""

import math

from hypothesis import given
from hypothesis import strategies as st

from airchoir.experiments.wording import rounded_up


@given(st.floats(0.0, 1e6), st.integers(0, 6))
def test_what_is_rounded_up_is_never_too_small_and_not_a_digit_too_large(value: float, digits: int) -> None:
    told = float(rounded_up(value, digits))
    assert told >= value
    assert told - value <= 10.0**-digits * (1.0 + 1e-9) + 1e-9


def test_what_is_exact_stays_and_infinity_is_infinity() -> None:
    assert [rounded_up(value, 2) for value in (0.29, 1.1, 5.0, 5.0001, math.inf)] == [
        *("0.29", "1.10", "5.00", "5.01"),
        "inf",
    ]
