"""One set of participants for a whole test set: averaged over all sets it is a set for every query, and true sentences."""

import math
import re
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from airchoir import Awgn, BeliefSum, MajorityVote, OverTheAir, Privacy, Scheme, ScoreBank, evaluate
from airchoir.experiments import paper
from airchoir.experiments.choirs import Choir
from airchoir.experiments.one_set import OneSet, draw_sets, with_set
from airchoir.rules import Rule

MakeBank = Callable[..., ScoreBank]


@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
@pytest.mark.parametrize("rule", [MajorityVote(), BeliefSum()])
def test_over_all_sets_accuracy_is_that_of_a_set_for_every_query(
    make_bank: MakeBank, rule: Rule, epsilon: float
) -> None:
    bank, p = make_bank(clients=4), 0.4
    scheme = Scheme(rule, OverTheAir(), Awgn(10.0), Privacy(epsilon, 0.05), p)
    total = weights = 0.0
    for members in product([False, True], repeat=4):
        if any(members):
            weight = p ** sum(members) * (1 - p) ** (4 - sum(members))
            total += weight * with_set(scheme, bank, np.array(members)).accuracy
            weights += weight
    exact = evaluate(scheme, bank, tolerance=5e-3)
    assert total / weights == pytest.approx(exact.accuracy, abs=1e-6 + 4 * exact.accuracy_se)


def test_with_everyone_and_certain_participation_it_is_evaluate(make_bank: MakeBank) -> None:
    bank = make_bank(queries=300)
    for rule in (MajorityVote(), BeliefSum()):
        scheme = Scheme(rule, OverTheAir(), Awgn(3.0), Privacy(1.0, 0.05))
        found, wanted = with_set(scheme, bank, np.ones(5, dtype=bool)), evaluate(scheme, bank)
        assert found.macro_f1 == pytest.approx(wanted.macro_f1, abs=1e-6)
        assert found.macro_f1_std == pytest.approx(wanted.macro_f1_std, abs=1e-6)


def test_sets_are_drawn_by_chance_and_somebody_is_drafted_where_nobody_comes() -> None:
    sets = draw_sets(5, 0.2, 20_000, np.random.default_rng(0))
    assert sets.any(axis=1).all()
    empty = 0.8**5
    wanted = 0.2 + empty / 5  # a fifth of the empty rounds each
    assert sets.mean(axis=0) == pytest.approx(np.full(5, wanted), abs=4 * math.sqrt(wanted * (1 - wanted) / 20_000))
    alone = (sets.sum(axis=1) == 1).mean()
    wanted = 5 * 0.2 * 0.8**4 + empty
    assert alone == pytest.approx(wanted, abs=4 * math.sqrt(wanted * (1 - wanted) / 20_000))


def test_the_spread_of_a_run_is_that_of_sets_and_noise(make_bank: MakeBank) -> None:
    bank = make_bank()
    findings = OneSet(participations=(0.3,), sets=30).run([Choir("cifar10", (), (bank,))])
    row = next(r for r in findings.rows if (r["rule"], r["epsilon"]) == ("vote", 1.0))
    scheme = Scheme(privacy=Privacy(1.0), participation=0.3)
    rng = np.random.default_rng(np.random.SeedSequence([0, 300_000_000]))
    found = [with_set(scheme, bank, members) for members in draw_sets(5, 0.3, 30, rng)]
    f1 = np.array([each.macro_f1 for each in found])
    noise = np.mean([each.macro_f1_std**2 for each in found])
    assert row["one_set_macro_f1"] == pytest.approx(f1.mean(), rel=1e-12)
    assert row["one_set_macro_f1_std"] == pytest.approx(math.sqrt(f1.var() + noise), rel=1e-12)
    assert row["macro_f1"] == pytest.approx(evaluate(scheme, bank).macro_f1, rel=1e-12)
    assert row["paper"] == 0.591


@pytest.mark.parametrize("seed", [0, 1])
def test_every_sentence_is_true(make_bank: MakeBank, seed: int) -> None:
    experiment = OneSet(participations=(0.2, 0.5), sets=8, seed=seed)
    findings = experiment.run([Choir("cifar10", (), (make_bank(seed=seed),))])
    largest, five, mean, beside = findings.summary
    private = [r for r in findings.rows if r["epsilon"] == 1.0]
    widest = max(private, key=lambda r: r["one_set_macro_f1_std"])
    std = 100 * widest["one_set_macro_f1_std"]
    assert f"CIFAR-10 {std:.1f} points instead of {100 * widest['macro_f1_std']:.1f}" in largest
    assert f"p = {widest['participation']:g})" in largest
    assert five.endswith(f"CIFAR-10 {std / math.sqrt(5):.1f} points.")
    assert re.search(r"over the 8 sets .* CIFAR-10 at \d of 8 places\.$", mean)
    kept = drawn = 0
    for r in findings.rows:
        curve = paper.in_figure2("participation", r["rule"], float(r["epsilon"]), "cifar10")
        assert curve is not None
        said = curve.y[curve.x.index(r["participation"])]
        assert r["paper"] == said
        kept += abs(said - r["one_set_macro_f1"]) <= 2 * r["one_set_macro_f1_std"] / math.sqrt(5)
        drawn += abs(said - r["macro_f1"]) <= 2 * r["macro_f1_std"] / math.sqrt(5)
    assert [int(x) for x in re.findall(r"8 points at these p, (\d) lie .* each, (\d) of one", beside)[0]] == [
        kept,
        drawn,
    ]


def test_of_a_single_client_there_is_one_set_and_both_ways_agree_everywhere(make_bank: MakeBank) -> None:
    findings = OneSet(participations=(0.2, 0.5), sets=3).run([Choir("digits", (), (make_bank(clients=1),))])
    assert findings.summary[-1].endswith("at 8 of 8 places.")


def test_where_the_paper_has_no_curve_nothing_is_compared(make_bank: MakeBank) -> None:
    findings = OneSet(participations=(0.5,), sets=3).run([Choir("digits", (), (make_bank(),))])
    assert len(findings.summary) == 3
    assert not any(curve.published for panel in findings.figures[0].panels for curve in panel.curves)


def test_bands_are_two_standard_deviations_of_the_mean_of_five_runs(make_bank: MakeBank) -> None:
    findings = OneSet(participations=(0.2, 0.5), sets=5).run([Choir("digits", (), (make_bank(),))])
    rows = [r for r in findings.rows if (r["rule"], r["epsilon"]) == ("vote", 1.0)]
    band = findings.figures[0].panels[0].curves[-1]
    spread = [200 * r["one_set_macro_f1_std"] / math.sqrt(5) for r in rows]
    np.testing.assert_allclose(np.subtract(band.high, band.y), spread, rtol=1e-9)
    np.testing.assert_allclose(np.subtract(band.y, band.low), spread, rtol=1e-9)
