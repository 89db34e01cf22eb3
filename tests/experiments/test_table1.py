"""Table 1: the paper's ten rows are what the library gives, and every sentence drawn from them is true."""

import dataclasses
import math
import re
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from airchoir import (
    Awgn,
    BeliefSum,
    BestClient,
    Estimate,
    MajorityVote,
    Orthogonal,
    OverTheAir,
    Privacy,
    Scheme,
    ScoreBank,
    evaluate,
)
from airchoir.experiments.table1 import Row, insights, table1

MakeBank = Callable[..., ScoreBank]

PAPER = {
    "Best Client Model": (MajorityVote(), BestClient()),
    "Orthogonal Majority Voting": (MajorityVote(), Orthogonal()),
    "Orthogonal Belief Summation": (BeliefSum(), Orthogonal()),
    "Majority Voting with OAC": (MajorityVote(), OverTheAir()),
    "Belief Summation with OAC": (BeliefSum(), OverTheAir()),
}
"""The paper's row names in its order, and what METHOD says they are."""


def direct(method: str, epsilon: float, bank: ScoreBank, delta: float = 1e-6) -> Estimate:
    rule, access = PAPER[method]
    return evaluate(Scheme(rule, access, Awgn(10.0), Privacy(epsilon, delta), 1.0), bank)


# --- rows


def test_the_rows_are_the_papers_in_its_order(make_bank: MakeBank) -> None:
    rows = table1([make_bank()])
    assert [(row.epsilon, row.method) for row in rows] == [(e, m) for e in (math.inf, 1.0) for m in PAPER]


@pytest.mark.parametrize("delta", [1e-6, 1e-3])
def test_each_row_is_what_evaluate_says_of_its_method(make_bank: MakeBank, delta: float) -> None:
    bank = make_bank(clients=6)
    for row in table1([bank], delta=delta):
        found, expected = vars(row.estimate), vars(direct(row.method, row.epsilon, bank, delta))
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=f"{row.method}: {name}")


def test_over_several_banks_a_row_holds_means_and_the_spread_of_one_run(make_bank: MakeBank) -> None:
    banks = [make_bank(seed=seed, skill=1.0 + seed) for seed in range(3)]
    for row in table1(banks):
        own = [direct(row.method, row.epsilon, bank) for bank in banks]
        f1 = np.array([one.macro_f1 for one in own])
        assert row.estimate.macro_f1 == pytest.approx(f1.mean(), rel=1e-12)
        spread = math.sqrt(np.mean([one.macro_f1_std**2 for one in own]) + f1.var())
        assert row.estimate.macro_f1_std == pytest.approx(spread, rel=1e-12)
        assert row.estimate.sigma == pytest.approx(np.mean([one.sigma for one in own]), rel=1e-12)


def test_only_separate_answers_cost_channel_uses_for_every_client(make_bank: MakeBank) -> None:
    for row in table1([make_bank(clients=7, classes=4)]):
        assert row.estimate.channel_uses == pytest.approx(28 if row.method.startswith("Orthogonal") else 4)


def test_noise_is_added_only_in_the_private_half(make_bank: MakeBank) -> None:
    for row in table1([make_bank()]):
        expected = 0.0 if row.epsilon == math.inf else 5.9745981819573  # known answer of Theorem 1
        assert row.estimate.sigma == pytest.approx(expected, rel=1e-12)


def test_progress_counts_to_ten(make_bank: MakeBank) -> None:
    seen: list[tuple[int, int]] = []
    table1([make_bank()], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 10) for done in range(1, 11)]


# --- insights


def numbers(sentence: str) -> list[float]:
    return [float(word.replace(",", "").rstrip(".")) for word in re.findall(r"\d[\d.,]*(?:e-?\d+)?", sentence)]


def percent(*shares: float) -> list[float]:
    return [float(f"{100 * share:.1f}") for share in shares]


def total_epsilon(queries: int, sigma: float, delta: float) -> float:
    """Where delta(epsilon) of a Gaussian with mu = sqrt(2 T) / sigma falls to delta, by bisection with 30 digits."""
    with mpmath.workdps(30):
        mu = mpmath.sqrt(2 * queries) / sigma
        low, high = mpmath.mpf(0), mu**2 / 2 + 40 * mu
        for _ in range(90):
            middle = (low + high) / 2
            bound = mpmath.ncdf(mu / 2 - middle / mu) - mpmath.exp(middle) * mpmath.ncdf(-mu / 2 - middle / mu)
            low, high = (middle, high) if bound > delta else (low, middle)
        return float(high)


BANKS: dict[str, dict[str, int]] = {
    "small": {},
    "two clients, two classes": {"clients": 2, "classes": 2},
    "a thousand and more queries": {"queries": 1200, "clients": 9},
}


@pytest.mark.parametrize("size", BANKS)
def test_every_number_in_the_insights_is_true(make_bank: MakeBank, size: str) -> None:
    bank = make_bank(**BANKS[size])
    check_insights(bank)


def test_every_number_in_the_insights_of_the_digits_is_true(digits_bank: Callable[[int], ScoreBank]) -> None:
    check_insights(digits_bank(0))


def check_insights(bank: ScoreBank) -> None:
    better, free, shared, reason, stronger, cost = insights(table1([bank]), bank)
    at = {(method, epsilon): direct(method, epsilon, bank) for method in PAPER for epsilon in (math.inf, 1.0)}
    vote, apart = at["Majority Voting with OAC", math.inf], at["Orthogonal Majority Voting", math.inf]
    alone = [accuracy_score(bank.test_labels, scores.argmax(axis=-1)) for scores in bank.test_scores]
    shares = percent(min(alone), max(alone), sum(alone) / len(alone), vote.accuracy)
    assert numbers(better) == [bank.clients, *shares]
    uses = [bank.classes, bank.clients * bank.classes]
    f1 = percent(vote.macro_f1, apart.macro_f1)
    assert [number for number in numbers(free) if number != 1.0] == [*uses, *f1]

    private = [
        at[method, 1.0].macro_f1
        for method in ("Majority Voting with OAC", "Orthogonal Majority Voting", "Best Client Model")
    ]
    assert numbers(shared) == [1.0, 1.0, *percent(*private)]
    share = round(5.9745981819573 / math.sqrt(bank.clients), 2)
    assert numbers(reason) == [5.97, share, 5.97, 1.0]
    beliefs = at["Belief Summation with OAC", 1.0].macro_f1
    assert stronger.startswith(
        "Votes stand noise better than beliefs" if private[0] > beliefs else "Beliefs stand noise"
    )
    assert numbers(stronger) == [*percent(private[0], beliefs), 1.0]
    total = total_epsilon(bank.queries, 5.9745981819573, 1e-6)
    assert numbers(cost) == [1.0, bank.queries, float(f"{total:.1f}"), 1e-6]


def test_all_answers_of_100_queries_cost_the_known_composition(make_bank: MakeBank) -> None:
    bank = make_bank(queries=100)
    cost = insights(table1([bank]), bank)[-1]
    assert "epsilon = 13.5 at delta = 1e-06" in cost  # 13.50700311625564, by another accountant
    assert total_epsilon(100, 5.974598181957, 1e-6) == pytest.approx(13.50700311625564, rel=1e-9)


def test_the_stronger_of_votes_and_beliefs_is_named_whichever_it_is(make_bank: MakeBank) -> None:
    bank = make_bank()
    rows = table1([bank])

    def with_private_f1(**f1: float) -> list[Row]:
        return [
            dataclasses.replace(row, estimate=dataclasses.replace(row.estimate, macro_f1=f1[word]))
            if row.epsilon == 1.0 and (word := row.method.split()[0].lower()) in f1
            else row
            for row in rows
        ]

    assert insights(with_private_f1(majority=0.6, belief=0.5), bank)[4].startswith(
        "Votes stand noise better than beliefs"
    )
    assert insights(with_private_f1(majority=0.5, belief=0.6), bank)[4].startswith(
        "Beliefs stand noise better than votes"
    )


def test_on_the_digits_the_lessons_hold(digits_bank: Callable[[int], ScoreBank]) -> None:
    """What the words claim beside the numbers: together they know more, adding costs no accuracy, privacy is shared."""
    for seed in range(5):
        bank = digits_bank(seed)
        at = {(row.method, row.epsilon): row.estimate for row in table1([bank])}
        vote, apart = at["Majority Voting with OAC", math.inf], at["Orthogonal Majority Voting", math.inf]
        alone = [accuracy_score(bank.test_labels, scores.argmax(axis=-1)) for scores in bank.test_scores]
        assert vote.accuracy > max(alone)
        assert vote.macro_f1 > apart.macro_f1 - vote.macro_f1_std
        private = [at[method, 1.0].macro_f1 for method in PAPER]
        assert private[3] > 2 * max(private[:3])
