"""Accuracy against channel uses: what separate answers pay and get, and every number in every sentence."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from airchoir import Awgn, BestClient, MajorityVote, Orthogonal, OverTheAir, Privacy, Scheme, ScoreBank, evaluate
from airchoir.experiments.channel_uses import ChannelUses
from airchoir.experiments.choirs import Choir
from airchoir.experiments.subsets import hands

Numbers, Mean = Callable[[str], list[float]], Callable[..., float]
SMALL = ChannelUses(sizes=(1, 3), epsilon=2.0, delta=1e-3, snr_db=5.0, hands=3, close=0.01)
APART, CHOIR, BEST = "Orthogonal Majority Voting", "Majority Voting with OAC", "Best Client Model"


def separate(choir: Choir, epsilon: float, size: int) -> float:
    scheme = Scheme(MajorityVote(), Orthogonal(), Awgn(5.0), Privacy(epsilon, 1e-3))
    return float(
        np.mean(
            [
                evaluate(scheme, ScoreBank(bank.test_scores[list(hand)], bank.test_labels)).macro_f1
                for hand in hands(choir.clients, size, least=3)
                for bank in choir.banks
            ]
        )
    )


def alone(access: OverTheAir | BestClient, epsilon: float) -> Scheme:
    return Scheme(MajorityVote(), access, Awgn(5.0), Privacy(epsilon, 1e-3))


def test_separate_answers_pay_for_each_client_and_the_others_once(two_tasks: list[Choir], mean: Mean) -> None:
    (figure,) = SMALL.run(two_tasks).figures
    for panel, choir in zip(figure.panels, two_tasks, strict=True):
        k, sizes = choir.classes, (1, 3, choir.clients)
        curves = {curve.label: curve for curve in panel.curves}
        assert len(curves) == 6 == len({curve.style for curve in panel.curves})
        for promise, epsilon in (("ε = ∞", math.inf), ("ε = 2", 2.0)):
            apart, together, best = (curves[f"{method}, {promise}"] for method in (APART, CHOIR, BEST))
            assert apart.x == tuple(k * size for size in sizes)
            assert apart.y == pytest.approx([100 * separate(choir, epsilon, size) for size in sizes], rel=1e-12)
            assert together.x == best.x == (k,)
            assert together.y[0] == pytest.approx(100 * mean(alone(OverTheAir(), epsilon), choir), rel=1e-12)
            assert best.y[0] == pytest.approx(100 * mean(alone(BestClient(), epsilon), choir), rel=1e-12)
            assert (apart.line, together.line, best.line) == (True, False, False)


def test_every_number_in_every_sentence(two_tasks: list[Choir], mean: Mean, numbers: Numbers) -> None:
    summary = SMALL.run(two_tasks).summary
    for sentence, epsilon in zip(summary, (math.inf, 2.0), strict=False):
        wanted: list[float] = [] if epsilon == math.inf else [2.0]
        for choir in two_tasks:
            k, sizes = choir.classes, (1, 3, choir.clients)
            together = mean(alone(OverTheAir(), epsilon), choir)
            apart = [separate(choir, epsilon, size) for size in sizes]
            reached = [i for i in range(3) if all(f1 >= together - 0.01 for f1 in apart[i:])]
            shown = reached[0] if reached else 2
            wanted += [round(100 * together, 1), k, 1.0, k * sizes[shown], round(100 * apart[shown], 1)]
        assert numbers(sentence) == wanted
        assert sentence.startswith("Without privacy" if epsilon == math.inf else "At ε = 2")
    wanted = [
        number
        for choir in two_tasks
        for number in (
            *(round(100 * mean(alone(BestClient(), epsilon), choir), 1) for epsilon in (math.inf, 2.0)),
            choir.classes,
        )
    ]
    assert numbers(summary[2]) == [*wanted, 2.0]


def test_whether_separate_answers_reach_the_choir_is_said_either_way(two_tasks: list[Choir]) -> None:
    easy = ChannelUses(sizes=(1,), close=1.0).run(two_tasks).summary
    hard = ChannelUses(sizes=(1,), close=-1.0).run(two_tasks).summary
    assert all("at none up to" not in sentence for sentence in easy[:2])
    assert all(sentence.count("at none up to") == 2 for sentence in hard[:2])


def test_without_validation_scores_there_is_no_best_client(make_bank: Callable[..., ScoreBank]) -> None:
    bank = make_bank()
    findings = SMALL.run([Choir("bare", (), (ScoreBank(bank.test_scores, bank.test_labels),))])
    assert {row["method"] for row in findings.rows} == {APART, CHOIR}
    assert findings.summary[2].startswith("No best client")
