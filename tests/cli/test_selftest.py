"""The self-test: it passes here, and notices an engine that is wrong anywhere."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from airchoir import Scheme
from airchoir.cli import selftest
from airchoir.cli.selftest import Check, self_test, trapezoid


def test_the_engine_agrees_with_its_oracle() -> None:
    checks = self_test()
    assert [check.name for check in checks if not check.passed] == []
    assert [check.trouble for check in checks] == [""] * 4
    assert all(check.error < check.allowed for check in checks)


def test_the_same_engine_is_off_by_the_same_every_time() -> None:
    assert self_test() == self_test()


def test_the_oracle_knows_two_classes_in_closed_form() -> None:
    gaps = np.array([0.0, 0.3, 2.0, 9.0])
    won = trapezoid(np.stack([gaps, np.zeros(4)], axis=1), 0.7)
    np.testing.assert_allclose(won[:, 0], stats.norm.cdf(gaps / (0.7 * math.sqrt(2.0))), rtol=0, atol=1e-13)
    np.testing.assert_allclose(won.sum(axis=1), 1.0, rtol=0, atol=1e-13)


def test_the_oracle_gives_alike_classes_alike_chances() -> None:
    np.testing.assert_allclose(trapezoid(np.ones((1, 7)), 3.0), 1.0 / 7.0, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("error", "passed"), [(1.0, True), (1.1, False), (math.inf, False), (math.nan, False)])
def test_a_check_passes_up_to_what_is_allowed(error: float, passed: bool) -> None:
    assert Check("a", error, 1.0).passed is passed


def off(rows: Any) -> Any:
    return rows + 1e-5


def exponent(scheme: Scheme) -> float:
    return 1.0 if scheme.rule.one_hot else 1.0001


WRONG: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "decision probabilities": ("decision_probabilities", lambda right: lambda *given: off(right(*given))),
    "calibrated noise": (
        "Privacy",
        lambda right: lambda **given: right(**given | {"epsilon": 1.001 * given["epsilon"]}),
    ),
    "counted votes": (
        "answer_probabilities",
        lambda right: lambda scheme, *given: right(scheme, *given) ** exponent(scheme),
    ),
    "simulation": (
        "evaluate",
        lambda right: lambda *given: replace(right(*given), macro_f1=right(*given).macro_f1 + 0.05),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_engine_is_noticed_by_the_check_that_looks_at_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, spoil = WRONG[name]
    monkeypatch.setattr(selftest, where, spoil(getattr(selftest, where)))
    failed = [check.name for check in self_test() if not check.passed]
    assert any(check.startswith(name) for check in failed)


def test_a_check_that_breaks_down_fails_with_its_reason_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no\nluck")

    monkeypatch.setattr(selftest, "decision_probabilities", broken)
    first, *others = self_test()
    assert (first.passed, first.error, first.trouble) == (False, math.inf, "RuntimeError: no luck")
    assert all(check.passed for check in others)
