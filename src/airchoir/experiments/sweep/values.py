"""Values as a grid file writes them, each checked by what it is for."""

import math
from collections.abc import Callable
from typing import cast

from airchoir.access import Access
from airchoir.channels import Channel, check_snr
from airchoir.channels.rayleigh import check_threshold
from airchoir.exact import check_tolerance
from airchoir.experiments.sweep.condition import EXACT, SIMULATE, Condition, Value
from airchoir.montecarlo import check_repeats
from airchoir.participation import check_participation
from airchoir.privacy import Accountant, check_delta, check_epsilon, check_lost, check_queries
from airchoir.registry import lookup, suggestion
from airchoir.rules import Rule

MOST = 1_000_000
"""Conditions of one sweep: more than anybody looks at, and what memory holds."""
_RANGE = ("from", "to", "step")
_RANGE_LOOKS = "write it like { from = 0, to = 20, step = 2 }"


def values(name: str, given: object) -> tuple[list[Value], list[str]]:
    """What a file gives for `name`, one value, a list or a range, and what is wrong with it."""
    found: list[Value] = []
    complaints: list[str] = []
    try:
        listed = _range(name, given) if isinstance(given, dict) else given
    except ValueError as error:
        return [], [str(error)]
    items = listed if isinstance(listed, list) else [listed]
    if not items:
        complaints.append(f"{name} is an empty list; give a value, or leave it out for the usual one")
    for item in items:
        try:
            found.append(_READERS[name](name, item))
        except ValueError as error:
            complaints.append(str(error))
    return found, complaints


def _range(name: str, given: dict[str, object]) -> list[float]:
    """from, from + step, ... up to `to`, which is one of them where it is met but for rounding."""
    for key in given:
        if key not in _RANGE:
            raise ValueError(f"{name} is a range with the unknown key {key!r}; {suggestion(key, list(_RANGE))}")
    for key in _RANGE:
        number = given.get(key)
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise ValueError(f"{name} is a range without a number for {key!r}; {_RANGE_LOOKS}")
    first, last, step = (cast(float, given[key]) for key in _RANGE)
    steps = (last - first) / step if step else -1.0
    if steps < 0.0:
        raise ValueError(f"{name} never comes from {first} to {last} in steps of {step}; {_RANGE_LOOKS}")
    if steps > MOST:
        raise ValueError(
            f"{name} is a range of {steps:,.0f} values; {MOST:,} conditions are the most, so take larger steps"
        )
    count = math.floor(steps * (1.0 + 1e-12) + 1e-9) + 1
    if all(isinstance(number, int) for number in (first, step)):
        return [first + index * step for index in range(count)]
    digits = 12 - math.floor(
        math.log10(max(abs(first), abs(last), abs(step)))
    )  # what people mean: 0.1 + 2 * 0.1 is 0.3
    return [round(first + index * step, digits) for index in range(count)]


def _word(known: Callable[[str], object]) -> Callable[[str, object], str]:
    def reader(name: str, value: object) -> str:
        if not isinstance(value, str):
            raise ValueError(
                f'{name} must be a word, got {value!r}; write it in quotes, as "{Condition._field_defaults[name]}"'
            )
        known(value)
        return value

    return reader


def _real(check: Callable[[float], None]) -> Callable[[str, object], float]:
    def reader(name: str, value: object) -> float:
        if value == "inf":
            value = math.inf
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name} must be a number, got {value!r}; write it like 0.5, 1e-6 or inf, without quotes")
        try:
            number = float(value) + 0.0  # -0.0 is 0.0
        except OverflowError:
            raise ValueError(f"{name} must fit a float, got {value}; write inf for infinity") from None
        check(number)
        return number

    return reader


def _whole(check: Callable[[int], None]) -> Callable[[str, object], int]:
    def reader(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{name} must be a whole number, got {value!r}; write it like 20")
        if abs(value) >= 1 << 63:
            raise ValueError(f"{name} must be below 2^63, got {value}; write a smaller one")
        check(value)
        return value

    return reader


def _threshold(name: str, value: object) -> float | None:
    return None if value == "none" else _real(check_threshold)(name, value)


def _check_method(method: str) -> None:
    if method not in (EXACT, SIMULATE):
        raise ValueError(f"unknown method {method!r}; {suggestion(method, [EXACT, SIMULATE])}")


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise ValueError(f"seed must be >= 0, got {seed}; any whole number names a reproducible run")


def _plugin(kind: type) -> Callable[[str, object], str]:
    return _word(lambda name: lookup(kind, name))


_READERS: dict[str, Callable[[str, object], Value]] = {
    "rule": _plugin(Rule),
    "access": _plugin(Access),
    "channel": _plugin(Channel),
    "participation": _real(check_participation),
    "epsilon": _real(check_epsilon),
    "delta": _real(check_delta),
    "accountant": _plugin(Accountant),
    "queries": _whole(check_queries),
    "lost": _whole(check_lost),
    "snr_db": _real(check_snr),
    "threshold": _threshold,
    "method": _word(_check_method),
    "repeats": _whole(check_repeats),
    "tolerance": _real(check_tolerance),
    "seed": _whole(_check_seed),
}
