"""Conditions: what is measured is found under its words, drawn in percent, and told where it becomes steady."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airchoir import Privacy, Scheme
from airchoir.experiments.choirs import Choir
from airchoir.experiments.conditions import Condition, check_ascending, measure_all, percent_curve, set_off, steady_from

Mean = Callable[..., float]


def conditions(choirs: list[Choir]) -> list[Condition]:
    return [
        Condition({"epsilon": epsilon, "twice": 2 * epsilon}, choir, Scheme(privacy=Privacy(epsilon)))
        for choir in choirs
        for epsilon in (1.0, 4.0, math.inf)
    ]


def test_every_measurement_is_found_by_its_words_on_its_own_task(two_tasks: list[Choir], mean: Mean) -> None:
    found = measure_all(conditions(two_tasks))
    for choir in two_tasks:
        for epsilon in (1.0, 4.0, math.inf):
            scheme = Scheme(privacy=Privacy(epsilon))
            assert found.at(choir, twice=2 * epsilon, epsilon=epsilon).scheme == scheme
            assert found.f1(choir, epsilon=epsilon, twice=2 * epsilon) == pytest.approx(mean(scheme, choir), rel=1e-12)
            assert found.pooled(choir, epsilon=epsilon, twice=2 * epsilon).accuracy == pytest.approx(
                mean(scheme, choir, "accuracy"), rel=1e-12
            )


def test_rows_come_in_order_with_their_words(two_tasks: list[Choir]) -> None:
    rows = measure_all(conditions(two_tasks)).rows()
    assert [(row["task"], row["epsilon"], row["twice"]) for row in rows] == [
        (task, epsilon, twice)
        for task in ("alpha", "beta")
        for epsilon, twice in ((1.0, 2.0), (4.0, 8.0), ("inf", "inf"))
    ]


def test_progress_counts_conditions(two_tasks: list[Choir]) -> None:
    told: list[tuple[int, int]] = []
    measure_all(conditions(two_tasks), progress=lambda *step: told.append(step))
    assert told == [(done, 6) for done in range(1, 7)]


def test_two_conditions_with_the_same_words_are_a_fault(two_tasks: list[Choir]) -> None:
    with pytest.raises(AssertionError, match="two conditions"):
        measure_all(conditions(two_tasks[:1]) * 2)


def test_words_nobody_measured_are_not_found(two_tasks: list[Choir]) -> None:
    with pytest.raises(KeyError):
        measure_all(conditions(two_tasks)).at(two_tasks[0], epsilon=2.0, twice=4.0)


def test_a_curve_of_fractions_is_drawn_in_percent() -> None:
    curve = percent_curve("one", [(1, 0.25), (2, 1.0)], style=3, line=False)
    assert (curve.label, curve.x, curve.y, curve.style, curve.line) == ("one", (1.0, 2.0), (25.0, 100.0), 3, False)


def test_infinity_is_set_off_and_all_else_stays() -> None:
    assert set_off((0.5, 7.0)) == (0.5, 7.0)
    assert set_off((0.5, 7.0, math.inf)) == (0.5, 7.0, 21.0)
    (alone,) = set_off((math.inf,))
    assert 0.0 < alone < math.inf


@given(st.lists(st.booleans()))
def test_steady_from_is_the_least_place_from_which_all_are_good(good: list[bool]) -> None:
    places = [place for place in range(len(good)) if all(good[place:])]
    assert steady_from(good) == (places[0] if places else None)


@pytest.mark.parametrize("values", [(), (1.0, 1.0), (2.0, 1.0), (1.0, math.nan), (1.0, 3.0, 2.0)])
def test_a_grid_that_does_not_ascend_is_refused(values: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"\Athings must be 1 or more and ascending, got \(.*\); [^\n]+\Z"):
        check_ascending("things", values)


def test_an_ascending_grid_is_fine_where_it_is_long_enough() -> None:
    check_ascending("things", (1.0, 2.0, math.inf), least=3)
    with pytest.raises(ValueError, match="must be 2 or more"):
        check_ascending("things", (1.0,), least=2)
