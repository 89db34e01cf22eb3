"""Significance: ranks are those of direct evaluations, and what one, two or several data sets can show is said truly."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from airchoir import Awgn, BeliefSum, BestClient, MajorityVote, Orthogonal, OverTheAir, Privacy, Scheme, ScoreBank
from airchoir.experiments.choirs import Choir
from airchoir.experiments.significance import Significance

MakeBank = Callable[..., ScoreBank]
Numbers, Mean = Callable[[str], list[float]], Callable[..., float]
PAPER = {
    "Best Client Model": (MajorityVote(), BestClient()),
    "Orthogonal Majority Voting": (MajorityVote(), Orthogonal()),
    "Orthogonal Belief Summation": (BeliefSum(), Orthogonal()),
    "Majority Voting with OAC": (MajorityVote(), OverTheAir()),
    "Belief Summation with OAC": (BeliefSum(), OverTheAir()),
}
SMALL = Significance(epsilons=(math.inf, 2.0), delta=1e-3, snr_db=5.0)


@pytest.fixture
def five(make_bank: MakeBank) -> list[Choir]:
    return [
        Choir(name, (), (make_bank(clients=5, queries=60, classes=3, seed=seed),))
        for seed, name in enumerate(("alpha", "beta", "gamma", "delta", "kappa"))
    ]


def ranks(choirs: list[Choir], mean: Mean, epsilon: float) -> np.ndarray:
    values = [
        [mean(Scheme(*parts, Awgn(5.0), Privacy(epsilon, 1e-3)), choir) for parts in PAPER.values()] for choir in choirs
    ]
    return stats.rankdata(-np.array(values), axis=1)


def test_the_table_holds_the_ranks_of_direct_evaluations(five: list[Choir], mean: Mean) -> None:
    (table,) = SMALL.run(five).tables
    assert table.header == ("epsilon", "method", *(choir.task for choir in five), "mean rank")
    assert table.sections == (5,)
    rows = iter(table.rows)
    for epsilon in (math.inf, 2.0):
        wanted = ranks(five, mean, epsilon)
        for place, method in enumerate(PAPER):
            row = [cell.text for cell in next(rows)]
            assert row[:2] == [f"{epsilon:g}", method]
            assert [float(text) for text in row[2:-1]] == list(wanted[:, place])
            assert float(row[-1]) == round(wanted[:, place].mean(), 2)


def test_the_bars_of_two_methods_touch_where_nemenyi_tells_them_not_apart(five: list[Choir], mean: Mean) -> None:
    (figure,) = SMALL.run(five).figures
    half = stats.studentized_range.ppf(0.95, 5, np.inf) / math.sqrt(2) * math.sqrt(5 * 6 / (6 * 5)) / 2
    for panel, epsilon in zip(figure.panels, (math.inf, 2.0), strict=True):
        means = ranks(five, mean, epsilon).mean(axis=0)
        assert [curve.label for curve in panel.curves] == list(PAPER)
        for curve, rank in zip(panel.curves, means, strict=True):
            assert curve.x == pytest.approx((rank - half, rank, rank + half), rel=1e-6)
        heights = [curve.y[0] for curve in panel.curves]
        assert sorted(heights) == [1, 2, 3, 4, 5]
        assert list(np.argsort(heights)) == list(np.argsort(means, kind="stable"))


def test_every_number_in_every_sentence(five: list[Choir], mean: Mean, numbers: Numbers) -> None:
    free, private, power = SMALL.run(five).summary
    least = stats.studentized_range.ppf(0.95, 5, np.inf) / math.sqrt(2) * math.sqrt(5 * 6 / (6 * 5))
    for sentence, epsilon in ((free, math.inf), (private, 2.0)):
        found = ranks(five, mean, epsilon)
        means = found.mean(axis=0)
        statistic = stats.friedmanchisquare(*found.T).statistic
        p_value = float(re.search(r"with p = ([\d.e-]+) \(exact\)", sentence)[1])  # type: ignore[index]
        wanted = [*([] if epsilon == math.inf else [2.0]), *sorted(round(mean, 2) for mean in means)]
        assert numbers(sentence) == [*wanted, round(statistic, 2), p_value, 0.05]
        drawn = np.random.default_rng(0).permuted(np.tile(found, (4000, 1, 1)), axis=2).mean(axis=1)
        as_large = np.mean(((drawn - 3) ** 2).sum(axis=1) >= ((means - 3) ** 2).sum() - 1e-9)
        assert abs(as_large - p_value) <= 4 * math.sqrt(max(p_value, 1e-3) / 4000) + 0.05 * p_value
        assert ("not all alike" in sentence) == (p_value <= 0.05)
        names = list(PAPER)
        told = {
            (names[a], names[b]) for a in range(5) for b in range(5) if means[b] - means[a] >= least and p_value <= 0.05
        }
        said = set(re.findall(r"((?:[A-Z][\w-]+ ?)+(?:with OAC)?) from ((?:[A-Z][\w-]+ ?)+(?:with OAC)?)", sentence))
        assert {(a.strip(), b.strip()) for a, b in said} == told
        assert ("no two methods" in sentence) == (not told)
    assert numbers(power) == [5, 0.05, round(least, 2), 4, round(100 * least / 4), 38]


def test_one_data_set_runs_and_says_that_nothing_can_be_tested(five: list[Choir]) -> None:
    findings = SMALL.run(five[:1])
    assert "nothing can be tested" in findings.summary[0]
    assert len(findings.summary) == 3
    assert all(len(curve.x) == 1 for panel in findings.figures[0].panels for curve in panel.curves)
    assert "critical difference" not in findings.figures[0].caption


def test_two_data_sets_can_tell_no_two_methods_apart_and_it_says_so(five: list[Choir]) -> None:
    findings = SMALL.run(five[:2])
    assert "no two methods can be told apart, whatever they do" in findings.summary[-1]
    assert all("tells apart no two methods" in sentence for sentence in findings.summary[:2])


def test_seven_data_sets_take_the_approximation(make_bank: MakeBank) -> None:
    choirs = [Choir(f"task{i}", (), (make_bank(queries=20, seed=i),)) for i in range(7)]
    assert all("by the chi-squared approximation" in sentence for sentence in SMALL.run(choirs).summary[:2])


def test_a_bank_without_validation_leaves_the_best_client_out_everywhere(five: list[Choir]) -> None:
    bank = five[0].banks[0]
    bare = Choir("bare", (), (ScoreBank(bank.test_scores, bank.test_labels),))
    findings = SMALL.run([*five[:2], bare])
    assert {row["method"] for row in findings.rows} == set(PAPER) - {"Best Client Model"}
    assert findings.notes[-1].startswith("bare: no best client")
