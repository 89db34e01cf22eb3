"""One point of a grid: the options of `evaluate`, its numbers, and a key for them."""

import inspect
import json
import math
from collections.abc import Callable

import pytest
import typer

import airchoir as ac
from airchoir import ScoreBank
from airchoir.cli import app
from airchoir.experiments.sweep.condition import IDLE, NUMBERS, Condition, numbers


def test_names_and_defaults_are_those_of_evaluate() -> None:
    command = typer.main.get_command(app)
    options = {option.name: option.default for option in command.commands["evaluate"].params}  # type: ignore[attr-defined]
    assert Condition._field_defaults == {name: options[name] for name in Condition._fields}
    assert set(options) - set(Condition._fields) == {"banks", "out", "json"}


def test_the_scheme_is_the_one_that_is_named() -> None:
    condition = Condition(
        rule="belief",
        access="orthogonal",
        channel="rayleigh",
        participation=0.4,
        epsilon=2.0,
        delta=1e-5,
        accountant="tight",
        queries=3,
        snr_db=5.0,
        threshold=0.3,
    )
    assert condition.scheme() == ac.Scheme(
        rule=ac.BeliefSum(),
        access=ac.Orthogonal(),
        channel=ac.Rayleigh(snr_db=5.0, threshold=0.3),
        privacy=ac.Privacy(2.0, 1e-5, accountant="tight", queries=3),
        participation=0.4,
    )
    assert Condition(lost=2).scheme() == ac.Scheme(privacy=ac.Privacy(lost=2))


@pytest.mark.parametrize(
    ("condition", "estimate"),
    [
        (Condition(), ac.evaluate),
        (Condition(rule="belief", participation=0.5, tolerance=5e-3, seed=3), ac.evaluate),
        (Condition(method="simulate", repeats=7, seed=3, epsilon=1.0), ac.simulate),
    ],
)
def test_the_numbers_are_the_librarys(
    make_bank: Callable[..., ScoreBank], condition: Condition, estimate: Callable[..., ac.Estimate]
) -> None:
    taken = set(inspect.signature(estimate).parameters)
    options = {name: value for name, value in condition._asdict().items() if name in taken - {"scheme"}}
    expected = estimate(condition.scheme(), make_bank(), **options)
    for each in (condition, condition._replace(**dict.fromkeys(IDLE[condition.method]))):  # type: ignore[arg-type]
        found = numbers(each.estimate(make_bank()))
        assert dict(zip(NUMBERS, found, strict=True)) == {name: getattr(expected, name) for name in NUMBERS}
        json.dumps(found)


OTHERS = {
    "rule": "belief",
    "access": "orthogonal",
    "channel": "rayleigh",
    "participation": 0.5,
    "epsilon": 1.0,
    "delta": 1e-5,
    "accountant": "tight",
    "queries": 2,
    "lost": 1,
    "snr_db": 9.0,
    "threshold": 0.5,
    "method": "simulate",
    "repeats": 100,
    "tolerance": 1e-3,
    "seed": 1,
}


def test_every_name_and_the_bank_and_the_engine_change_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [Condition(**{name: other}).key("a") for name, other in OTHERS.items()]  # type: ignore[arg-type]
    keys += [Condition().key("a"), Condition().key("b")]
    monkeypatch.setattr("airchoir.experiments.sweep.condition.engine", lambda: "another")
    keys.append(Condition().key("a"))
    assert set(OTHERS) == set(Condition._fields)
    assert len(set(keys)) == len(keys)


def test_a_record_is_plain_json() -> None:
    record = Condition(snr_db=math.inf).record()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["epsilon"], record["snr_db"], record["threshold"]) == ("inf", "inf", None)


def test_a_condition_is_told_by_what_is_unusual_in_it() -> None:
    assert str(Condition(snr_db=3.0, repeats=None)) == "rule vote, access over-the-air, snr_db 3.0"
