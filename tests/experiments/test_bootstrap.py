"""The paired bootstrap: scikit-learn's macro-F1 on every resample, one set of weights for all, and intervals that cover."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import f1_score

from airchoir import Awgn, BeliefSum, MajorityVote, OverTheAir, Privacy, Scheme, ScoreBank, evaluate
from airchoir.exact import decisions
from airchoir.experiments.bootstrap import LEVEL, Counted, Difference, Resamples, resample, weights
from airchoir.experiments.choirs import Choir

MakeBank = Callable[..., ScoreBank]
SCHEMES = [
    Scheme(rule, OverTheAir(), Awgn(10.0), Privacy(epsilon, 0.05))
    for epsilon in (math.inf, 1.0)
    for rule in (MajorityVote(), BeliefSum())
]


def choir_of(*banks: ScoreBank) -> Choir:
    return Choir("synthetic", (), banks)


def one_hot(decided: np.ndarray, classes: int) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[decided]


@pytest.mark.parametrize("classes", [2, 5])
def test_with_certain_decisions_it_is_scikit_learns_weighted_macro_f1(classes: int) -> None:
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, 40)
    decided = [np.where(rng.random(40) < 0.7, labels, rng.integers(0, classes, 40)) for _ in range(3)]
    weight = np.concatenate(list(weights(40, 25, np.random.SeedSequence(1))))
    found = Counted.of([one_hot(each, classes) for each in decided], labels).macro_f1(weight)
    for resampled, row in zip(found, weight, strict=True):
        wanted = [
            f1_score(labels, each, labels=range(classes), average="macro", zero_division=0, sample_weight=row)
            for each in decided
        ]
        np.testing.assert_allclose(resampled, wanted, atol=1e-6)


def test_a_resample_is_the_same_as_taking_the_queries_out_one_by_one(make_bank: MakeBank) -> None:
    bank = make_bank(classes=3)
    rows = [decisions(scheme, bank).probabilities.astype(np.float32) for scheme in SCHEMES]
    weight = np.concatenate(list(weights(bank.queries, 7, np.random.SeedSequence(2))))
    found = Counted.of(rows, bank.test_labels).macro_f1(weight)
    for resampled, row in zip(found, weight, strict=True):
        taken = np.repeat(np.arange(bank.queries), row.astype(int))
        for method, value in zip(rows, resampled, strict=True):
            f1 = []
            for label in range(bank.classes):
                hits = sum(float(method[q, label]) for q in taken if bank.test_labels[q] == label)
                total = sum(float(method[q, label]) + float(bank.test_labels[q] == label) for q in taken)
                f1.append(2 * hits / total if total > 0 else 0.0)
            assert value == pytest.approx(sum(f1) / len(f1), abs=1e-6)


def test_a_class_that_a_resample_misses_and_nobody_decides_has_f1_0() -> None:
    labels = np.array([0, 0, 1])
    counted = Counted.of([one_hot(labels, 3)], labels)
    assert counted.macro_f1(np.array([[2, 1, 0]], dtype=np.float32))[0, 0] == pytest.approx(1 / 3)


def test_every_resample_is_as_large_as_the_test_set_and_its_weights_are_multinomial() -> None:
    queries, resamples = 30, 4000
    drawn = np.concatenate(list(weights(queries, resamples, np.random.SeedSequence(3))))
    assert drawn.shape == (resamples, queries)
    assert np.all(drawn.sum(axis=1) == queries)
    error = 4 * math.sqrt(1 / resamples)
    np.testing.assert_allclose(drawn.mean(axis=0), 1.0, atol=error)
    covariance = np.cov(drawn.T)
    np.testing.assert_allclose(np.diag(covariance), 1 - 1 / queries, atol=8 * math.sqrt(2 / resamples))
    off = covariance[~np.eye(queries, dtype=bool)]
    assert off.mean() == pytest.approx(-1 / queries, abs=4 * math.sqrt(1 / resamples / queries))


@pytest.mark.parametrize("resamples", [1, 999])
def test_blocks_change_nothing(resamples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(weights(50, resamples, np.random.SeedSequence(4))))
    monkeypatch.setattr("airchoir.experiments.bootstrap._BLOCK_BYTES", 1)
    np.testing.assert_array_equal(np.concatenate(list(weights(50, resamples, np.random.SeedSequence(4)))), whole)


def test_observed_is_evaluates_up_to_its_second_order_term(make_bank: MakeBank) -> None:
    bank = make_bank(queries=400)
    found = resample(choir_of(bank), SCHEMES, resamples=2)
    for observed, scheme in zip(found.observed, SCHEMES, strict=True):
        assert observed == pytest.approx(evaluate(scheme, bank).macro_f1, abs=2.0 / bank.queries)


def test_the_same_seed_gives_the_same_intervals_and_another_one_others(make_bank: MakeBank) -> None:
    choir = choir_of(make_bank())
    first, again, other = (resample(choir, SCHEMES, resamples=50, seed=seed).resampled for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_banks_of_one_test_set_share_their_resamples_and_others_do_not(make_bank: MakeBank) -> None:
    bank, stranger = make_bank(), make_bank(seed=5)
    alone, twice = (resample(choir_of(*banks), SCHEMES, resamples=300) for banks in ([bank], [bank, bank]))
    np.testing.assert_allclose(twice.resampled, alone.resampled, atol=1e-12)
    same_labels = ScoreBank(stranger.test_scores, bank.test_labels)
    shared = resample(choir_of(bank, same_labels), SCHEMES, resamples=300).resampled
    second = resample(choir_of(same_labels), SCHEMES, resamples=300).resampled
    np.testing.assert_allclose(shared, (alone.resampled + second) / 2, atol=1e-12)
    apart = resample(choir_of(bank, stranger), SCHEMES, resamples=300).resampled
    own = 2 * apart - alone.resampled  # the stranger's, by weights of its own
    assert abs(np.corrcoef(own[:, 0], alone.resampled[:, 0])[0, 1]) < 4 / math.sqrt(300)


def test_a_method_does_not_differ_from_itself(make_bank: MakeBank) -> None:
    found = resample(choir_of(make_bank()), [SCHEMES[0], SCHEMES[0]], resamples=40)
    same = found.difference(0, 1, 0.0)
    assert same == Difference(0.0, 0.0, 0.0)
    assert not same.clear


def test_what_rounds_to_0_is_not_clear() -> None:
    assert Difference(3e-4, 1e-4, 5e-4).clear
    assert Difference(-3e-4, -5e-4, -1e-4).clear
    assert not Difference(3e-4, 4e-5, 5e-4).clear
    assert not Difference(-1e-5, -2e-5, -1e-6).clear
    assert not Difference(0.0, -0.1, 0.1).clear


def test_the_interval_lies_around_the_value_that_is_shown() -> None:
    moved = np.linspace(-0.1, 0.1, 2001)
    found = Resamples(np.column_stack([0.5 + moved, np.full(2001, 0.4)]), np.array([0.5, 0.4]))
    one = found.difference(0, 1, 0.11)
    assert (one.value, one.low, one.high) == pytest.approx((0.11, 0.11 - 0.1 * LEVEL, 0.11 + 0.1 * LEVEL))
    assert one.clear
    other = found.difference(1, 0, -0.01)
    assert not other.clear


def test_intervals_cover_the_difference_of_the_whole_population_as_often_as_they_claim() -> None:
    """Test sets of 300 queries from a population in which two methods' probabilities are known."""
    rng = np.random.default_rng(6)
    size, classes, queries, sets = 20_000, 3, 300, 400
    labels = rng.integers(0, classes, size)

    def method(skill: float) -> np.ndarray:
        logits = rng.normal(0, 1.5, (size, classes))
        logits[np.arange(size), labels] += skill
        odds = np.exp(logits)
        return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)

    rows = [method(1.5), method(1.2)]
    whole = Counted.of(rows, labels).macro_f1(np.ones((1, size), dtype=np.float32))[0]
    truth, covered = whole[0] - whole[1], 0
    for seed in range(sets):
        some = rng.choice(size, queries, replace=False)
        counted = Counted.of([each[some] for each in rows], labels[some])
        observed = counted.macro_f1(np.ones((1, queries), dtype=np.float32))[0]
        blocks = weights(queries, 400, np.random.SeedSequence(seed))
        found = Resamples(np.concatenate([counted.macro_f1(block) for block in blocks]), observed)
        interval = found.difference(0, 1, observed[0] - observed[1])
        covered += interval.low <= truth <= interval.high
    error = math.sqrt(LEVEL * (1 - LEVEL) / sets)
    assert covered / sets == pytest.approx(LEVEL, abs=4 * error)
