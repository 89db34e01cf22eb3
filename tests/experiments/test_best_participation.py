"""The best participation: every point is a direct evaluation, the best is the highest, and every sentence is true."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from airchoir import Awgn, CentredVote, OverTheAir, Privacy, Scheme, ScoreBank, evaluate
from airchoir.access.always_on import AlwaysOn
from airchoir.experiments.best_participation import PARTICIPATIONS, BestParticipation
from airchoir.experiments.choirs import Choir
from airchoir.experiments.subsets import hands

MakeBank = Callable[..., ScoreBank]
Numbers = Callable[[str], list[float]]

WANTED = {
    "over the air, paper": (OverTheAir(), "paper"),
    "over the air, tight": (OverTheAir(), "tight"),
    "over the air, counted": (OverTheAir(), "counted"),
    "always-on, tight": (AlwaysOn(), "tight"),
}
SOME, EPSILONS = (0.1, 0.55, 0.9, 1.0), (1.0, 4.0)
SMALL = BestParticipation(
    epsilons=EPSILONS, participations=SOME, sizes=(2,), delta=1e-3, snr_db=0.0, hands=2, reference=4.0, close=0.02
)


def direct(choir: Choir, size: int, contender: str, epsilon: float, participation: float) -> float:
    """The accuracy, by banks made from nothing but the arrays."""
    access, accountant = WANTED[contender]
    privacy = Privacy(epsilon, 1e-3, accountant=accountant)
    scheme = Scheme(access=access, channel=Awgn(0.0), privacy=privacy, participation=participation)
    banks = [
        ScoreBank(bank.test_scores[list(hand)], bank.test_labels)
        for hand in hands(choir.clients, size, least=2)
        for bank in choir.banks
    ]
    return float(np.mean([evaluate(scheme, bank).accuracy for bank in banks]))


def curve(choir: Choir, size: int, contender: str, epsilon: float) -> list[float]:
    return [direct(choir, size, contender, epsilon, participation) for participation in SOME]


def best(choir: Choir, size: int, contender: str, epsilon: float) -> tuple[float, float, float]:
    """p, accuracy and gain; the larger p of equals."""
    accuracies = curve(choir, size, contender, epsilon)
    place = max(range(len(SOME)), key=lambda i: (accuracies[i], i))
    return SOME[place], accuracies[place], accuracies[place] - accuracies[-1]


def cases(choirs: list[Choir]) -> list[tuple[Choir, int]]:
    return [*((choir, choir.clients) for choir in choirs), *((choir, 2) for choir in choirs)]


def test_the_grid_ends_with_everyone() -> None:
    assert list(PARTICIPATIONS) == sorted(set(PARTICIPATIONS))
    assert PARTICIPATIONS[-1] == 1.0


def test_each_row_is_what_evaluate_says(two_tasks: list[Choir]) -> None:
    rows = SMALL.run(two_tasks).rows
    assert len(rows) == 2 * 2 * 4 * 2 * 4
    choirs = {choir.task: choir for choir in two_tasks}
    for row in rows:
        place = choirs[row["task"]], row["clients"], row["contender"], row["epsilon"], row["participation"]
        assert row["accuracy"] == pytest.approx(direct(*place), rel=1e-12), place


def test_the_figures_show_the_best_and_the_curves(two_tasks: list[Choir]) -> None:
    tops, curves = SMALL.run(two_tasks).figures
    assert [panel.title for panel in tops.panels] == ["alpha, n = 6", "beta, n = 4", "alpha, n = 2", "beta, n = 2"]
    for (choir, size), top, drawn in zip(cases(two_tasks), tops.panels, curves.panels, strict=True):
        assert [line.label for line in top.curves] == [line.label for line in drawn.curves] == list(WANTED)
        low, high = top.y_limits
        for best_line, line in zip(top.curves, drawn.curves, strict=True):
            assert best_line.x == EPSILONS
            assert best_line.y == tuple(best(choir, size, line.label, epsilon)[0] for epsilon in EPSILONS)
            assert all(low < p < high for p in best_line.y)
            assert line.x == SOME
            assert line.y == pytest.approx([100 * value for value in curve(choir, size, line.label, 4.0)], rel=1e-12)


def test_the_table_says_p_accuracy_and_gain_and_marks_the_highest(two_tasks: list[Choir]) -> None:
    (table,) = SMALL.run(two_tasks).tables
    assert table.header[3:] == tuple(WANTED)
    assert table.sections == (2, 4, 6)
    rows = iter(table.rows)
    for choir, size in cases(two_tasks):
        for epsilon in EPSILONS:
            row = next(rows)
            assert [cell.text for cell in row[:3]] == [choir.task, str(size), f"{epsilon:g}"]
            found = [best(choir, size, contender, epsilon) for contender in WANTED]
            for cell, (p, accuracy, gain) in zip(row[3:], found, strict=True):
                numbers = re.fullmatch(r"([\d.]+): ([\d.]+) \((\+?[\d.]+)\)", cell.text)
                assert numbers is not None, cell.text
                assert [float(number) for number in numbers.groups()] == [
                    p,
                    round(100 * accuracy, 2),
                    round(100 * gain, 2),
                ]
                assert cell.bold == (accuracy == pytest.approx(max(top[1] for top in found), abs=1e-15))


def test_every_number_in_every_sentence(two_tasks: list[Choir], numbers: Numbers) -> None:
    counts, most, close, reason = SMALL.run(two_tasks).summary
    every = [(choir, size, epsilon) for choir, size in cases(two_tasks) for epsilon in EPSILONS]
    top = {name: [best(choir, size, name, epsilon) for choir, size, epsilon in every] for name in WANTED}
    assert numbers(counts) == [
        0.01,
        1.0,
        *(number for name in WANTED for number in (sum(gain < 1e-4 for _, _, gain in top[name]), 8)),
    ]

    gain, name, place = max(
        ((gain, name, place) for name in WANTED for place, (_, _, gain) in enumerate(top[name])),
        key=lambda found: found[0],
    )
    choir, size, epsilon = every[place]
    assert numbers(most) == [round(100 * gain, 2), top[name][place][0], size, epsilon]
    assert f"{name} at p" in most
    assert f"({choir.task})" in most

    wanted = []
    for name in WANTED:
        for choir in two_tasks:
            accuracies = curve(choir, choir.clients, name, 4.0)
            wanted.append(
                next(p for i, p in enumerate(SOME) if all(a >= max(accuracies) - 0.02 for a in accuracies[i:]))
            )
    assert numbers(close) == [4.0, 2.0, *wanted]

    wanted = [1.0, 6]
    for access, accountant in WANTED.values():
        ratios = []
        for epsilon in EPSILONS:
            privacy = Privacy(epsilon, 1e-3, accountant=accountant)
            sigmas = [
                Scheme(access=access, privacy=privacy, participation=p).link(two_tasks[0].banks[0]).sigma for p in SOME
            ]
            always = isinstance(access, AlwaysOn)
            voices = [6 * p / (1.0 if always else 1 - (1 - p) ** 6) for p in SOME]  # METHOD, expected |P_t|
            ratios += [
                (voice / sigma * sigmas[-1] / 6, p, epsilon)
                for voice, sigma, p in zip(voices[:-1], sigmas, SOME, strict=False)
            ]
        ratio, p, epsilon = max(ratios)
        wanted += [round(ratio, 3), p, epsilon]
    assert numbers(reason) == wanted


def test_a_steady_curve_that_never_comes_close_is_nowhere(two_tasks: list[Choir]) -> None:
    findings = BestParticipation(epsilons=(1.0,), participations=(0.5, 1.0), sizes=(), close=-0.1).run(two_tasks[:1])
    assert findings.summary[2].count("nowhere") == 4


def test_less_noise_for_the_same_promise_is_more_accurate(make_bank: MakeBank) -> None:
    choir = Choir("task", (), (make_bank(clients=10),))
    findings = BestParticipation(epsilons=(1.0,), participations=(0.5, 1.0), sizes=()).run([choir])
    at = {row["contender"]: row for row in findings.rows if row["participation"] == 0.5}
    paper, tight, counted, always = (at[name] for name in WANTED)
    assert always["sigma"] <= tight["sigma"] < paper["sigma"] < counted["sigma"]
    assert counted["accuracy"] < paper["accuracy"] < tight["accuracy"]


def test_with_everyone_all_contenders_are_one(make_bank: MakeBank) -> None:
    choir = Choir("task", (), (make_bank(),))
    rows = BestParticipation(epsilons=(1.0,), participations=(0.5, 1.0), sizes=()).run([choir]).rows
    accuracies = [row["accuracy"] for row in rows if row["participation"] == 1.0]
    assert len(accuracies) == 4
    assert max(accuracies) - min(accuracies) < 1e-12


def test_another_rule_may_be_asked_for(make_bank: MakeBank) -> None:
    choir = Choir("task", (), (make_bank(),))
    findings = BestParticipation(epsilons=(1.0,), participations=(0.5, 1.0), sizes=(), rule=CentredVote()).run([choir])
    assert {row["scheme"]["rule"] for row in findings.rows} == {"centred-vote"}


def test_progress_counts_every_point(make_bank: MakeBank) -> None:
    told: list[tuple[int, int]] = []
    choir = Choir("task", (), (make_bank(),))
    BestParticipation(epsilons=(1.0,), participations=SOME, sizes=(2,)).run([choir], progress=lambda *s: told.append(s))
    assert told == [(done, 32) for done in range(1, 33)]


def test_on_the_digits_five_voices_do_better_where_each_stays_away_now_and_then(
    digits_bank: Callable[[int], ScoreBank],
) -> None:
    """The finding itself: with a tighter theorem than the paper's the best participation is not always 1."""
    choir = Choir("digits", (), (digits_bank(0),))
    findings = BestParticipation(epsilons=(4.0,), participations=(0.9, 0.95, 1.0), sizes=(5,)).run([choir])
    small = findings.figures[0].panels[1]
    assert small.title.endswith("n = 5")
    top = {line.label: line.y[0] for line in small.curves}
    assert top["over the air, paper"] == top["over the air, counted"] == 1.0
    assert top["over the air, tight"] < 1.0
    assert top["always-on, tight"] < 1.0


def test_of_equal_participations_the_one_with_the_most_voices_is_best() -> None:
    labels = np.arange(6) % 2
    agreed = ScoreBank(np.tile(np.eye(2, dtype=np.float32)[labels], (4, 1, 1)), labels)
    experiment = BestParticipation(epsilons=(1e5,), participations=(0.9, 1.0), sizes=(), snr_db=60.0)
    findings = experiment.run([Choir("agreed", (), (agreed,))])
    over_the_air = [row["accuracy"] for row in findings.rows if row["contender"] == "over the air, paper"]
    assert over_the_air == [1.0, 1.0]
    assert findings.figures[0].panels[0].curves[0].y == (1.0,)
