"""Shared budgets: every point is a direct evaluation, everyone's noise the closed form, and every sentence true."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from airchoir import Awgn, OverTheAir, Privacy, Scheme
from airchoir.access.always_on import AlwaysOn
from airchoir.experiments.budget import Budget
from airchoir.experiments.choirs import Choir
from airchoir.participation import Participation
from airchoir.privacy import delta_for, epsilon_for
from airchoir.rules import SIMPLEX

Numbers, Mean = Callable[[str], list[float]], Callable[..., float]
SAMPLED = {
    "over the air, paper": (OverTheAir(), "paper"),
    "over the air, tight": (OverTheAir(), "tight"),
    "over the air, counted": (OverTheAir(), "counted"),
    "always-on, tight": (AlwaysOn(), "tight"),
}
TOTALS, QUERIES = (1.0, 4.0, 32.0), (1, 100)
SMALL = Budget(totals=TOTALS, queries=QUERIES, total=4.0, participation=0.7, delta=1e-3, snr_db=5.0, close=0.02)


def everyone(total: float, queries: int) -> Scheme:
    return Scheme(channel=Awgn(5.0), privacy=Privacy(total, 1e-3, queries=queries))


def sampled(name: str, queries: int) -> Scheme:
    access, accountant = SAMPLED[name]
    privacy = Privacy(4.0, 1e-3, accountant=accountant, queries=queries)
    return Scheme(access=access, channel=Awgn(5.0), privacy=privacy, participation=0.7)


def test_every_curve_is_what_evaluate_says(two_tasks: list[Choir], mean: Mean) -> None:
    totals, change = SMALL.run(two_tasks).figures
    for choir, total_panel, change_panel in zip(two_tasks, totals.panels, change.panels, strict=True):
        assert [curve.label for curve in total_panel.curves] == ["T = 1", "T = 100"]
        for curve, queries in zip(total_panel.curves, QUERIES, strict=True):
            assert curve.x == TOTALS
            wanted = [100 * mean(everyone(total, queries), choir) for total in TOTALS]
            assert curve.y == pytest.approx(wanted, rel=1e-12)
        assert [curve.label for curve in change_panel.curves] == list(SAMPLED)
        for curve in change_panel.curves:
            assert curve.x == QUERIES
            wanted = [
                100 * (mean(sampled(curve.label, queries), choir) - mean(everyone(4.0, queries), choir))
                for queries in QUERIES
            ]
            assert curve.y == pytest.approx(wanted, abs=1e-9)


def test_the_noise_of_every_row_keeps_its_total_by_another_way(two_tasks: list[Choir]) -> None:
    for row in SMALL.run(two_tasks[:1]).rows:
        sigma, total, queries = row["sigma"], row["total_epsilon"], row["queries"]
        if row["contender"] == "everyone":
            one = Privacy(total, 1e-3).sigma(SIMPLEX, Participation(6, 1.0))
            assert sigma == pytest.approx(one * math.sqrt(queries), rel=1e-12)
            continue
        access, accountant = SAMPLED[row["contender"]]
        law = Participation(6, 0.7, at_least=0 if isinstance(access, AlwaysOn) else 1)
        spent = epsilon_for(1e-3, sigma, accountant=accountant, geometry=SIMPLEX, hidden=law, queries=queries)
        assert spent == pytest.approx(
            total, rel=1e-4
        )  # what is claimed of an epsilon; of the promise itself nothing is lost:
        assert delta_for(total, sigma, accountant=accountant, geometry=SIMPLEX, hidden=law, queries=queries) <= 1e-3


def test_every_number_in_every_sentence(two_tasks: list[Choir], mean: Mean, numbers: Numbers) -> None:
    falls, enough, reason, halves, extremes = SMALL.run(two_tasks).summary
    wanted = [4.0]
    for choir in two_tasks:
        wanted += [n for queries in QUERIES for n in (round(100 * mean(everyone(4.0, queries), choir), 1), queries)]
    assert numbers(falls) == wanted

    wanted = [2.0]
    for choir in two_tasks:
        f1 = np.array([[mean(everyone(total, queries), choir) for total in TOTALS] for queries in QUERIES])
        for queries, row in zip(QUERIES, f1, strict=True):
            first = [TOTALS[i] for i in range(3) if all(row[i:] >= f1.max() - 0.02)]
            wanted += [first[0] if first else TOTALS[-1], queries]
    assert numbers(enough) == wanted

    sigma = everyone(4.0, 1).link(two_tasks[0].banks[0]).sigma
    assert numbers(reason) == [4.0, round(sigma, 2), 1, round(10 * sigma, 2), 100]

    wanted = [0.7, 100, 4.0]
    for choir in two_tasks:
        wanted += [round(100 * mean(sampled(name, 100), choir), 1) for name in SAMPLED]
        wanted.append(round(100 * mean(everyone(4.0, 100), choir), 1))
    assert numbers(halves) == wanted

    changes = [
        (mean(sampled(name, queries), choir) - mean(everyone(4.0, queries), choir), name, queries, choir.task)
        for choir in two_tasks
        for name in SAMPLED
        for queries in QUERIES
    ]
    (worst, bad, few, here), (best, good, many, there) = min(changes), max(changes)
    assert numbers(extremes) == [0.7, round(100 * worst, 2), few, round(100 * best, 2), many]
    assert f"({bad}; {few} queries; {here})" in extremes
    assert f"({good}; {many} queries; {there})" in extremes


def test_what_no_total_keeps_is_said_to_need_more(two_tasks: list[Choir]) -> None:
    findings = Budget(totals=(0.5, 1.0), queries=(1, 10000), total=1.0, close=1e-6).run(two_tasks[:1])
    assert "more than 1 for 10,000" in findings.summary[1]
