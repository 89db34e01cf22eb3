"""The number of clients: every point is an average of direct evaluations, and every number in every sentence is true."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from airchoir import Awgn, BeliefSum, MajorityVote, Orthogonal, OverTheAir, Privacy, Scheme, ScoreBank, evaluate
from airchoir.experiments.choirs import Choir
from airchoir.experiments.clients import Clients, spaced
from airchoir.experiments.subsets import hands

Numbers = Callable[[str], list[float]]
METHODS = {
    "Majority Voting with OAC": (MajorityVote(), OverTheAir()),
    "Belief Summation with OAC": (BeliefSum(), OverTheAir()),
    "Orthogonal Majority Voting": (MajorityVote(), Orthogonal()),
}
SMALL = Clients(sizes=(1, 3), epsilon=2.0, delta=1e-3, snr_db=5.0, hands=3)


def per_hand(choir: Choir, method: str, epsilon: float, size: int) -> list[float]:
    """Macro-F1 of every hand, its mean over the banks, by banks made from nothing but the arrays."""
    scheme = Scheme(*METHODS[method], Awgn(5.0), Privacy(epsilon, 1e-3))
    return [
        float(
            np.mean(
                [
                    evaluate(scheme, ScoreBank(bank.test_scores[list(hand)], bank.test_labels)).macro_f1
                    for bank in choir.banks
                ]
            )
        )
        for hand in hands(choir.clients, size, least=3)
    ]


def f1(choir: Choir, method: str, epsilon: float, size: int) -> float:
    return float(np.mean(per_hand(choir, method, epsilon, size)))


def test_every_point_and_band_is_what_direct_evaluation_says(two_tasks: list[Choir]) -> None:
    (figure,) = SMALL.run(two_tasks).figures
    for panel, choir in zip(figure.panels, two_tasks, strict=True):
        assert panel.title == choir.task
        assert len({curve.style for curve in panel.curves}) == 6 == len({curve.label for curve in panel.curves})
        for curve in panel.curves:
            method, promise = curve.label.split(", ")
            epsilon = {"ε = ∞": math.inf, "ε = 2": 2.0}[promise]
            sizes = (1, 3, choir.clients)
            wanted = [per_hand(choir, method, epsilon, size) for size in sizes]
            assert curve.x == sizes
            assert curve.y == pytest.approx([100 * np.mean(hands) for hands in wanted], rel=1e-12)
            assert curve.low == pytest.approx([100 * min(hands) for hands in wanted], rel=1e-12)
            assert curve.high == pytest.approx([100 * max(hands) for hands in wanted], rel=1e-12)


def test_every_row_is_one_of_the_points(two_tasks: list[Choir]) -> None:
    rows = SMALL.run(two_tasks).rows
    assert len(rows) == 2 * 3 * 2 * 3
    choirs = {choir.task: choir for choir in two_tasks}
    for row in rows:
        wanted = f1(choirs[row["task"]], row["method"], float(row["epsilon"]), row["clients"])
        assert row["macro_f1"] == pytest.approx(wanted, rel=1e-12)


def test_every_number_in_every_sentence(two_tasks: list[Choir], numbers: Numbers) -> None:
    grows, prices, apart, reason = SMALL.run(two_tasks).summary
    vote, separate = "Majority Voting with OAC", "Orthogonal Majority Voting"

    def percent(value: float) -> float:
        return float(f"{100 * value:.1f}")

    wanted = [
        number
        for choir in two_tasks
        for size in (1, 3, choir.clients)
        for number in (percent(f1(choir, vote, 2.0, size)), size)
    ]
    assert numbers(grows) == [*wanted, 2.0]
    wanted = [
        number
        for choir in two_tasks
        for size in (1, choir.clients)
        for number in (percent(f1(choir, vote, math.inf, size) - f1(choir, vote, 2.0, size)), size)
    ]
    assert numbers(prices) == [2.0, *wanted]
    wanted = [
        number
        for choir in two_tasks
        for size in (1, choir.clients)
        for number in (percent(f1(choir, separate, 2.0, size)), size)
    ]
    assert numbers(apart) == [*wanted, 2.0]
    sigma = evaluate(Scheme(privacy=Privacy(2.0, 1e-3)), two_tasks[0].banks[0]).sigma
    assert numbers(reason) == [2.0, round(sigma, 2), round(sigma, 2), 1, round(sigma / math.sqrt(6), 2), 6]


def test_the_noise_in_the_sum_is_the_same_for_every_n(two_tasks: list[Choir]) -> None:
    rows = [row for row in SMALL.run(two_tasks).rows if row["epsilon"] == 2.0]
    assert len({row["sigma"] for row in rows}) == 1


def test_ticks_have_room_and_end_with_all() -> None:
    assert spaced((1, 2, 3, 5, 7, 10, 14, 20)) == (1, 5, 10, 14, 20)
    assert spaced((4,)) == (4,)
    assert spaced((1, 2)) == (1, 2)
