"""Accuracy against epsilon: every point and every number in every sentence is a direct evaluation."""

import math
from collections.abc import Callable

import pytest

from airchoir import Awgn, BeliefSum, BestClient, MajorityVote, Orthogonal, OverTheAir, Privacy, Scheme, ScoreBank
from airchoir.experiments.choirs import Choir
from airchoir.experiments.epsilon import Epsilon

Numbers, Mean = Callable[[str], list[float]], Callable[..., float]
PAPER = {
    "Best Client Model": (MajorityVote(), BestClient()),
    "Orthogonal Majority Voting": (MajorityVote(), Orthogonal()),
    "Orthogonal Belief Summation": (BeliefSum(), Orthogonal()),
    "Majority Voting with OAC": (MajorityVote(), OverTheAir()),
    "Belief Summation with OAC": (BeliefSum(), OverTheAir()),
}
GRID = (0.1, 1.0, 8.0, 30.0, math.inf)
SMALL = Epsilon(epsilons=GRID, delta=1e-3, snr_db=5.0, close=0.02)


def scheme(method: str, epsilon: float) -> Scheme:
    return Scheme(*PAPER[method], Awgn(5.0), Privacy(epsilon, 1e-3))


def test_every_curve_is_what_evaluate_says_with_infinity_set_off(two_tasks: list[Choir], mean: Mean) -> None:
    (figure,) = SMALL.run(two_tasks).figures
    for panel, choir in zip(figure.panels, two_tasks, strict=True):
        assert panel.log_x
        assert dict(zip(panel.x_tick_labels, panel.x_ticks, strict=True)) == {"0.1": 0.1, "1": 1.0, "∞": 90.0}
        assert [curve.label for curve in panel.curves] == [method for method in PAPER for _ in range(2)]
        for finite, infinite in zip(panel.curves[::2], panel.curves[1::2], strict=True):
            assert finite.style == infinite.style
            assert finite.x == GRID[:-1]
            assert infinite.x == (90.0,)
            wanted = [100 * mean(scheme(finite.label, epsilon), choir) for epsilon in GRID]
            assert [*finite.y, *infinite.y] == pytest.approx(wanted, rel=1e-12)


def test_a_grid_without_infinity_has_no_tick_for_it(two_tasks: list[Choir]) -> None:
    (figure,) = Epsilon(epsilons=(1.0, 2.0)).run(two_tasks).figures
    assert [curve.label for curve in figure.panels[0].curves] == list(PAPER)
    assert figure.panels[0].x_tick_labels == ("1",)


def test_every_number_in_every_sentence(two_tasks: list[Choir], mean: Mean, numbers: Numbers) -> None:
    unharmed, same, strictest = SMALL.run(two_tasks).summary
    vote, apart = "Majority Voting with OAC", "Orthogonal Majority Voting"

    def from_on(choir: Choir, method: str, wanted: float) -> float:
        good = [mean(scheme(method, epsilon), choir) >= wanted for epsilon in GRID]
        return next((GRID[place] for place in range(len(GRID)) if all(good[place:])), math.nan)

    wanted = [2.0]
    for choir in two_tasks:
        wanted += [from_on(choir, method, mean(scheme(method, math.inf), choir) - 0.02) for method in (vote, apart)]
    assert numbers(unharmed.replace("inf", "∞")) == wanted

    wanted = [1.0]
    for choir in two_tasks:
        f1 = mean(scheme(vote, 1.0), choir)
        wanted += [round(100 * f1, 1), from_on(choir, apart, f1)]
    assert numbers(same.replace("inf", "∞")) == wanted

    wanted = [0.1]
    for choir in two_tasks:
        best = max(PAPER, key=lambda method: mean(scheme(method, 0.1), choir))
        assert best in strictest
        wanted.append(round(100 * mean(scheme(best, 0.1), choir), 1))
    assert numbers(strictest) == wanted


def test_what_no_epsilon_reaches_is_said_to_be_reached_by_none(two_tasks: list[Choir], mean: Mean) -> None:
    small = Epsilon(epsilons=(1.0, 1.5), delta=1e-3)
    choir = two_tasks[0]
    vote, apart = (
        mean(Scheme(rule, access, Awgn(10.0), Privacy(epsilon, 1e-3)), choir)
        for (rule, access), epsilon in (
            ((PAPER["Majority Voting with OAC"]), 1.0),
            (PAPER["Orthogonal Majority Voting"], 1.5),
        )
    )
    assert apart < vote
    assert "from epsilon none here on" not in small.run([choir]).summary[1]
    assert "at no epsilon here" in small.run([choir]).summary[1]


def test_without_validation_scores_four_methods_remain(make_bank: Callable[..., ScoreBank]) -> None:
    bank = make_bank()
    findings = SMALL.run([Choir("bare", (), (ScoreBank(bank.test_scores, bank.test_labels),))])
    assert {row["method"] for row in findings.rows} == set(PAPER) - {"Best Client Model"}
    assert findings.notes[0].startswith("bare: no best client")
