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
from airchoir.experiments import bootstrap, paper
from airchoir.experiments.choirs import Choir
from airchoir.experiments.table1 import Row, Table1, insights, table1
from airchoir.metrics import pool
from airchoir.report.findings import Findings, Table

MakeBank = Callable[..., ScoreBank]
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"

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
    assert numbers(cost) == [1.0, bank.queries, math.ceil(10 * total) / 10, 1e-6]


def test_all_answers_of_100_queries_cost_the_known_composition(make_bank: MakeBank) -> None:
    bank = make_bank(queries=100)
    cost = insights(table1([bank]), bank)[-1]
    assert "epsilon = 13.6 at delta = 1e-06" in cost  # 13.50700311625564, by another accountant: never told too small
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


# --- the experiment


def choir(*banks: ScoreBank, task: str = "synthetic") -> Choir:
    return Choir(task, (), banks)


def without_validation(bank: ScoreBank) -> ScoreBank:
    return ScoreBank(bank.test_scores, bank.test_labels)


def body(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def named(findings: Findings, name: str) -> Table:
    return next(table for table in findings.tables if table.name == name)


def shown(estimate: Estimate) -> str:
    return f"{100 * estimate.macro_f1:.2f} ± {100 * estimate.macro_f1_std:.2f}"


def test_the_table_holds_every_tasks_rows_and_what_a_query_costs(make_bank: MakeBank) -> None:
    seeds = [make_bank(seed=seed, clients=4, classes=3) for seed in range(2)]
    other = make_bank(seed=7, clients=4, classes=3)
    table = Table1(resamples=20).run([choir(*seeds), choir(other, task="imdb")]).tables[0]
    assert table.header == ("Privacy", "Method", "synthetic", "IMDB", "Channel uses")
    wanted = []
    for epsilon, label in ((math.inf, "ε = ∞"), (1.0, "ε = 1")):
        for method in PAPER:
            both = pool([direct(method, epsilon, bank) for bank in seeds])
            uses = "12" if method.startswith("Orthogonal") else "3"
            wanted.append([label, method, shown(both), shown(direct(method, epsilon, other)), uses])
    assert body(table) == wanted
    assert table.sections == (5,)


def test_channel_uses_are_multiples_of_the_classes_where_these_differ(make_bank: MakeBank) -> None:
    tasks = [choir(make_bank()), choir(make_bank(classes=2), task="b"), choir(make_bank(), task="c")]
    table = Table1(resamples=20).run(tasks).tables[0]
    assert [row[-1] for row in body(table)] == ["k", "5 k", "5 k", "k", "k"] * 2
    assert table.notes[0].endswith(" k is 4 for synthetic and c and 2 for b.")
    more = Table1(resamples=20).run([*tasks, choir(make_bank(clients=3), task="d")]).tables[0]
    assert [row[-1] for row in body(more)] == ["k", "5 k and 3 k", "5 k and 3 k", "k", "k"] * 2


def test_bold_is_the_best_of_each_half_as_far_as_it_is_shown(make_bank: MakeBank) -> None:
    table = Table1(resamples=20).run([choir(make_bank()), choir(make_bank(seed=3), task="b")]).tables[0]
    for column in (2, 3):
        for half in (table.rows[:5], table.rows[5:]):
            means = [float(row[column].text.split(" ± ")[0]) for row in half]
            assert [row[column].bold for row in half] == [mean == max(means) for mean in means]
    assert not any(row[column].bold for row in table.rows for column in (0, 1, 4))


def test_differences_are_to_the_vote_over_the_air_at_the_same_promise(make_bank: MakeBank) -> None:
    bank = make_bank()
    findings = Table1(resamples=200).run([choir(bank)])
    table = named(findings, "table1_differences")
    others = [method for method in PAPER if method != "Majority Voting with OAC"]
    assert [row[:3] for row in body(table)] == [
        ["synthetic", label, method] for label in ("ε = ∞", "ε = 1") for method in others
    ]
    schemes = [Scheme(*PAPER[m], Awgn(10.0), Privacy(e)) for e in (math.inf, 1.0) for m in PAPER]
    resampled = bootstrap.resample(choir(bank), schemes, resamples=200).resampled
    for row, place in zip(table.rows, [0, 1, 2, 4, 5, 6, 7, 9], strict=True):
        epsilon, reference = ((math.inf, 3), (1.0, 8))[place > 4]
        value = direct(row[2].text, epsilon, bank).macro_f1 - direct("Majority Voting with OAC", epsilon, bank).macro_f1
        told = float(row[3].text.replace(MINUS, "-"))
        low, high = map(float, row[4].text.replace(MINUS, "-").split(" to "))
        assert told == pytest.approx(100 * value, abs=0.006)
        spread = np.quantile(100 * (resampled[:, place] - resampled[:, reference]), [0.025, 0.975])
        assert high - low == pytest.approx(spread[1] - spread[0], abs=0.02)
        assert row[4].bold == (not low <= 0.0 <= high)
    assert table.header[4] == "95 % interval"


def test_beside_the_paper_stand_its_numbers_and_the_distance_in_its_deviations(make_bank: MakeBank) -> None:
    bank = make_bank(clients=6)
    findings = Table1(resamples=20).run([choir(make_bank(seed=2)), choir(bank, task="imdb")])
    table = named(findings, "table1_paper")
    assert {row[0] for row in body(table)} == {"IMDB"}
    row = next(row for row in body(table) if row[1:3] == ["ε = 1", "Majority Voting with OAC"])
    ours = 100 * direct("Majority Voting with OAC", 1.0, bank).macro_f1
    assert row[4] == "89.32 ± 0.07"
    assert float(row[5].replace(MINUS, "-")) == pytest.approx(ours - 89.32, abs=0.006)
    assert float(row[6].replace(MINUS, "-")) == pytest.approx((ours - 89.32) / 0.07, abs=0.06)
    record = next(r for r in findings.rows if r["task"] == "imdb" and (r["method"], r["epsilon"]) == (row[2], 1.0))
    assert (record["paper_percent"], record["paper_std_percent"]) == (89.32, 0.07)


def test_where_the_paper_says_nothing_there_is_no_such_table(make_bank: MakeBank) -> None:
    findings = Table1(resamples=20).run([choir(make_bank())])
    assert [table.name for table in findings.tables] == ["table1", "table1_differences"]
    assert not any("paper" in sentence for sentence in findings.summary)


def test_a_bank_without_validation_has_all_rows_but_the_best_clients(make_bank: MakeBank) -> None:
    bank = make_bank()
    alone = Table1(resamples=20).run([choir(without_validation(bank))])
    methods = [row[1] for row in body(alone.tables[0])]
    assert methods == [method for method in PAPER if method != "Best Client Model"] * 2
    assert any("no validation scores" in note for note in alone.notes)
    both = Table1(resamples=20).run([choir(without_validation(bank)), choir(bank, task="b")])
    first = body(both.tables[0])[0]
    assert first[1:3] == ["Best Client Model", DASH]
    assert first[4] == "4"
    told = [row[0] for row in body(named(both, "table1_differences")) if row[2] == "Best Client Model"]
    assert told == ["b", "b"]


def test_the_note_says_what_the_deviations_are_of(make_bank: MakeBank) -> None:
    one, two = (choir(*[make_bank(seed=seed) for seed in range(count)], task=f"of {count}") for count in (1, 2))

    def note(*choirs: Choir) -> str:
        return Table1(resamples=20).run(choirs).tables[0].notes[0]

    assert "on the one bank of each task" in note(one)
    assert "over 2 banks" in note(two)
    assert "of 1 1, of 2 2" in note(one, two)


def test_the_caption_says_it_in_short(make_bank: MakeBank) -> None:
    for count, words in ((1, "(± within the one bank of each task)"), (2, "(± over the banks of each task)")):
        banks = [make_bank(seed=seed) for seed in range(count)]
        assert words in Table1(resamples=20).run([choir(*banks)]).tables[0].caption


SUMMARISED: dict[str, dict[str, object]] = {
    "small": {},
    "skilled": {"skill": 6.0, "queries": 200},
    "many classes": {"classes": 7},
}


@pytest.mark.parametrize("kind", SUMMARISED)
def test_every_sentence_of_the_experiment_is_true(make_bank: MakeBank, kind: str) -> None:
    bank = make_bank(**SUMMARISED[kind])
    check_summary(bank, Table1(resamples=100).run([choir(bank, task="imdb")]))


def check_summary(bank: ScoreBank, findings: Findings) -> None:
    kept, alone, air, reason, best_open, best_private, private, public, beside, cost = findings.summary
    at = {(method, epsilon): direct(method, epsilon, bank) for method in PAPER for epsilon in (math.inf, 1.0)}
    vote, apart, best = "Majority Voting with OAC", "Orthogonal Majority Voting", "Best Client Model"
    own = [accuracy_score(bank.test_labels, scores.argmax(axis=-1)) for scores in bank.test_scores]
    wanted = percent(min(own), max(own), sum(own) / len(own), at[vote, math.inf].accuracy)
    assert numbers(alone) == wanted
    uses = [bank.classes, bank.clients * bank.classes]
    assert numbers(air.replace("F1", "F")) == [
        *uses,
        *percent(at[vote, math.inf].macro_f1, at[apart, math.inf].macro_f1),
    ]
    assert numbers(kept.replace("F1", "F")) == [
        1.0,
        *percent(*(at[method, 1.0].macro_f1 for method in (vote, apart, best))),
    ]
    assert numbers(reason) == [1.0, 5.97, round(5.9745981819573 / math.sqrt(bank.clients), 2), bank.clients, 1.0]
    for sentence, epsilon in ((best_open, math.inf), (best_private, 1.0)):
        highest = max(at[method, epsilon].macro_f1 for method in PAPER)
        assert numbers(sentence)[-1] == float(f"{100 * highest:.2f}")
        for method in PAPER:
            told = re.search(rf"(IMDB|,|and) {method}", sentence) is not None
            assert told == (round(100 * at[method, epsilon].macro_f1, 2) == round(100 * highest, 2))
    for sentence, epsilon in ((private, 1.0), (public, math.inf)):
        gain = at["Belief Summation with OAC", epsilon].macro_f1 - at[vote, epsilon].macro_f1
        assert ("IMDB votes" if gain < 0 else "IMDB beliefs") in sentence
        assert f"by {100 * abs(gain):.2f} points" in sentence
        interval = re.search(r"interval (-?\d+\.\d+) to (-?\d+\.\d+)", sentence.replace(MINUS, "-"))
        assert interval
        low, high = map(float, interval.groups())
        assert low <= float(f"{100 * abs(gain):.2f}") <= high
        assert ("another test set may undo" in sentence) == (low <= 0.0)
    check_beside(beside, at)
    total = total_epsilon(bank.queries, 5.9745981819573, 1e-6)
    assert numbers(cost) == [1.0, math.ceil(10 * total) / 10, bank.queries]


def check_beside(sentence: str, at: dict[tuple[str, float], Estimate]) -> None:
    said = {key: (row.mean, row.std) for key in at if (row := paper.in_table1(key[0], key[1], "imdb")) is not None}
    near = sum(abs(100 * at[key].macro_f1 - mean) <= 2 * std for key, (mean, std) in said.items())
    far = max(said, key=lambda key: abs(100 * at[key].macro_f1 - said[key][0]))
    assert [int(x) for x in re.findall(r"Of (\d+) .*?, (\d+) lie", sentence)[0]] == [10, near]
    assert far[0] in sentence
    assert sentence.endswith(f"ours {100 * at[far].macro_f1:.2f}, the paper's {said[far][0]:.2f}.")


def test_the_noise_of_a_published_mean_is_that_of_five_runs(make_bank: MakeBank) -> None:
    banks = [make_bank(seed=seed) for seed in range(2)]
    findings = Table1(resamples=20).run([choir(*banks, task="imdb")])
    own = np.mean([direct("Majority Voting with OAC", 1.0, bank).macro_f1_std ** 2 for bank in banks])
    assert findings.notes[-1].endswith(f": IMDB {100 * math.sqrt(own / 5):.2f}.")


def test_progress_of_the_experiment_ends_where_it_says(make_bank: MakeBank) -> None:
    seen: list[tuple[int, int]] = []
    choirs = [choir(make_bank()), choir(without_validation(make_bank()), task="b")]
    Table1(resamples=20).run(choirs, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_without_a_bank_it_says_so() -> None:
    with pytest.raises(ValueError, match="table1 needs at least one score bank, got none"):
        Table1().run([])
