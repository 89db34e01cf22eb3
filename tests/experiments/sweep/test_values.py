"""Values of a grid file: what is accepted, what is refused, and what ranges hold."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.experiments.sweep.condition import Condition
from airchoir.experiments.sweep.values import values


def accepted(name: str, given: object) -> list[Any]:
    found, complaints = values(name, given)
    assert complaints == []
    return found


def refused(name: str, given: object) -> str:
    _, complaints = values(name, given)
    assert len(complaints) == 1
    assert "; " in complaints[0] or ", " in complaints[0]
    return complaints[0]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("rule", "belief", ["belief"]),
        ("rule", ["vote", "belief"], ["vote", "belief"]),
        ("epsilon", ["inf", math.inf, 1], [math.inf, math.inf, 1.0]),
        ("snr_db", "inf", [math.inf]),
        ("snr_db", -0.0, [0.0]),
        ("threshold", ["none", 0.5], [None, 0.5]),
        ("queries", 1000, [1000]),
        ("tolerance", math.inf, [math.inf]),
        ("snr_db", {"from": -2, "to": 20, "step": 2}, [float(db) for db in range(-2, 21, 2)]),
        ("snr_db", {"from": 20, "to": -2, "step": -2}, [float(db) for db in range(20, -3, -2)]),
        ("participation", {"from": 0.1, "to": 1.0, "step": 0.1}, [tenths / 10 for tenths in range(1, 11)]),
        ("snr_db", {"from": -0.3, "to": 0.1, "step": 0.1}, [-0.3, -0.2, -0.1, 0.0, 0.1]),
        ("delta", {"from": 1e-9, "to": 3e-9, "step": 1e-9}, [1e-9, 2e-9, 3e-9]),
        ("queries", {"from": 1, "to": 9, "step": 4}, [1, 5, 9]),
        ("lost", {"from": 0, "to": 5, "step": 2}, [0, 2, 4]),
        ("snr_db", {"from": 3, "to": 3, "step": 1}, [3.0]),
    ],
)
def test_a_value_a_list_or_a_range(name: str, given: object, expected: list[Any]) -> None:
    found = accepted(name, given)
    assert found == expected
    assert [type(value) for value in found] == [type(value) for value in expected]
    assert math.copysign(1.0, found[0] or 0.0) == math.copysign(1.0, expected[0] or 0.0) if name == "snr_db" else True


@pytest.mark.parametrize(
    ("name", "given", "complaint"),
    [
        ("rule", "votes", "unknown rule 'votes'; did you mean 'vote'?"),
        ("rule", 5, "rule must be a word, got 5"),
        ("rule", [], "rule is an empty list"),
        ("access", "orthogonl", "did you mean 'orthogonal'?"),
        ("channel", "AWGN", "did you mean 'awgn'?"),
        ("accountant", "thigt", "did you mean 'tight'?"),
        ("method", "simulated", "did you mean 'simulate'?"),
        ("epsilon", -1, "epsilon must be >= 0, got -1.0"),
        ("epsilon", math.nan, "epsilon must be >= 0, got nan"),
        ("epsilon", "1.0", "epsilon must be a number, got '1.0'"),
        ("epsilon", "nan", "epsilon must be a number, got 'nan'"),
        ("epsilon", True, "epsilon must be a number, got True"),
        ("epsilon", [[1.0]], "epsilon must be a number, got [1.0]"),
        ("epsilon", 10**400, "epsilon must fit a float"),
        ("delta", 0.0, "delta must be in (0, 1)"),
        ("snr_db", "-inf", "snr_db must be a number, got '-inf'"),
        ("snr_db", -math.inf, "snr_db must be >= -100"),
        ("participation", 0, "participation must be in (0, 1]"),
        ("participation", 1.5, "participation must be in (0, 1]"),
        ("threshold", 0, "threshold must be > 0"),
        ("threshold", "None", "threshold must be a number"),
        ("queries", 1.0, "queries must be a whole number, got 1.0"),
        ("queries", 0, "queries must be a whole number >= 1"),
        ("queries", 1 << 63, "queries must be below 2^63"),
        ("lost", -1, "lost must be a whole number >= 0"),
        ("lost", False, "lost must be a whole number, got False"),
        ("repeats", 1, "repeats must be a whole number >= 2"),
        ("tolerance", 0.0, "tolerance must be > 0"),
        ("seed", -1, "seed must be >= 0"),
        ("snr_db", {"from": 0, "to": 1}, "range without a number for 'step'"),
        ("snr_db", {"from": 0, "to": 1, "step": 1, "by": 2}, "unknown key 'by'"),
        ("snr_db", {"from": 0, "to": 1, "stepp": 1}, "did you mean 'step'?"),
        ("snr_db", {"from": 0, "to": 1, "step": 0}, "never comes from 0 to 1"),
        ("snr_db", {"from": 0, "to": 1, "step": -1}, "never comes from 0 to 1"),
        ("snr_db", {"from": 0, "to": math.inf, "step": 1}, "without a number for 'to'"),
        ("snr_db", {"from": 0, "to": True, "step": 1}, "without a number for 'to'"),
        ("snr_db", {"from": 0, "to": 1, "step": 1e-9}, "range of 1,000,000,000 values"),
    ],
)
def test_what_is_wrong_is_said_with_its_value_and_a_remedy(name: str, given: object, complaint: str) -> None:
    assert complaint in refused(name, given)


def test_everything_wrong_in_a_list_is_said() -> None:
    found, complaints = values("epsilon", [1.0, -1.0, "x", 2.0])
    assert found == [1.0, 2.0]
    assert len(complaints) == 2


@pytest.mark.parametrize("name", Condition._fields)
def test_every_default_is_a_value(name: str) -> None:
    default = Condition._field_defaults[name]
    assert accepted(name, "none" if default is None else default) == [default]


@settings(max_examples=500)
@given(st.integers(-50, 50), st.integers(1, 40), st.integers(0, 60), st.sampled_from([1, 10, 100, 1000]))
def test_a_range_holds_what_one_would_type(first: int, step: int, count: int, scale: int) -> None:
    typed = [(first + index * step) / scale for index in range(count + 1)]
    assert accepted("snr_db", {"from": typed[0], "to": typed[-1], "step": step / scale}) == typed
