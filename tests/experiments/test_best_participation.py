"""The best participation: every point is a direct evaluation, and the best is the highest."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from airchoir import OverTheAir, Privacy, Scheme, ScoreBank, evaluate
from airchoir.access.always_on import AlwaysOn
from airchoir.experiments.best_participation import CONTENDERS, PARTICIPATIONS, best, best_participation

MakeBank = Callable[..., ScoreBank]

WANTED = {
    "over the air, paper": (OverTheAir(), "paper"),
    "over the air, tight": (OverTheAir(), "tight"),
    "over the air, counted": (OverTheAir(), "counted"),
    "always-on, tight": (AlwaysOn(), "tight"),
}
SOME = (0.1, 0.55, 1.0)


def direct(contender: str, participation: float, bank: ScoreBank, epsilon: float, delta: float) -> dict[str, object]:
    access, accountant = WANTED[contender]
    privacy = Privacy(epsilon, delta, accountant=accountant)
    return vars(evaluate(Scheme(access=access, privacy=privacy, participation=participation), bank))


def test_the_grid_ends_with_everyone() -> None:
    assert PARTICIPATIONS[0] == 0.05
    assert PARTICIPATIONS[-1] == 1.0
    assert np.allclose(np.diff(PARTICIPATIONS), 0.05)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (4.0, 1e-3)])
def test_each_point_is_what_evaluate_says(make_bank: MakeBank, epsilon: float, delta: float) -> None:
    bank = make_bank(clients=6)
    points = best_participation([bank], epsilon=epsilon, delta=delta, participations=SOME)
    assert [(point.contender, point.participation) for point in points] == [(name, p) for name in WANTED for p in SOME]
    for point in points:
        found = vars(point.estimate)
        for name, value in direct(point.contender, point.participation, bank, epsilon, delta).items():
            np.testing.assert_array_equal(found[name], value, err_msg=f"{point.contender}: {name}")
        assert evaluate(point.scheme, bank).accuracy == point.estimate.accuracy, (
            "the scheme it names is the one that ran"
        )


def test_over_several_banks_a_point_is_their_mean(make_bank: MakeBank) -> None:
    banks = [make_bank(clients=4, seed=seed) for seed in range(3)]
    for point in best_participation(banks, participations=(0.5,)):
        own = [direct(point.contender, 0.5, bank, 1.0, 1e-6)["accuracy"] for bank in banks]
        assert point.estimate.accuracy == pytest.approx(np.mean(own), rel=1e-12)


def test_best_is_the_highest_of_each_contender(make_bank: MakeBank) -> None:
    points = best_participation([make_bank()], participations=SOME)
    accuracies = {name: iter((0.3, 0.5, 0.4)) for name in CONTENDERS}
    mixed = [replace(p, estimate=replace(p.estimate, accuracy=next(accuracies[p.contender]))) for p in points]
    found = best(mixed)
    assert list(found) == list(WANTED)
    assert all(top.contender == name and top.participation == 0.55 for name, top in found.items())


def test_less_noise_for_the_same_promise_is_more_accurate(make_bank: MakeBank) -> None:
    at = {p.contender: p.estimate for p in best_participation([make_bank(clients=10)], participations=(0.5,))}
    paper, tight, counted, always = (at[name] for name in WANTED)
    assert always.sigma <= tight.sigma < paper.sigma < counted.sigma
    assert counted.accuracy < paper.accuracy < tight.accuracy


def test_with_everyone_all_contenders_are_one(make_bank: MakeBank) -> None:
    found = {p.estimate.accuracy for p in best_participation([make_bank()], participations=(1.0,))}
    assert max(found) - min(found) < 1e-12


def test_progress_counts_every_point(make_bank: MakeBank) -> None:
    seen: list[tuple[int, int]] = []
    best_participation([make_bank()], participations=SOME, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 12) for done in range(1, 13)]
