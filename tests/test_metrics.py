"""Metrics against scikit-learn and against the exact law of the counts."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from airchoir.metrics import DenseTally, Estimate, count, gradient, macro_f1, per_class_f1, pool, summarise

repeatable = settings(deadline=None, derandomize=True, max_examples=100)
REMAINDER = 0.07
"""Of a class's expected F1, times the squared number of its queries [summarise]."""


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, np.ndarray, np.ndarray]:
    """Classes, labels and decisions; many classes never occur or are never decided."""
    classes, queries = draw(st.integers(2, 6)), draw(st.integers(1, 30))
    few = st.integers(0, draw(st.integers(0, classes - 1)))
    labels, decisions = (draw(st.lists(few, min_size=queries, max_size=queries)) for _ in range(2))
    return classes, np.array(labels), np.array(decisions)


def random_rows(*, queries: int, classes: int, seed: int, sharpness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Decision probabilities that favour the truth, and the truth."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, queries)
    logits = rng.normal(0.0, sharpness, (queries, classes)) + 2.0 * np.eye(classes)[labels]
    rows = np.exp(logits)
    return rows / rows.sum(axis=1, keepdims=True), labels


def law_of_count(chances: np.ndarray) -> np.ndarray:
    """The law of how many of some independent events happen."""
    laws = [np.array([1.0 - p, p]) for p in chances] or [np.ones(1)]
    while len(laws) > 1:
        pairs = zip(laws[::2], laws[1::2], strict=False)
        laws = [np.convolve(a, b) for a, b in pairs] + laws[len(laws) // 2 * 2 :]
    return laws[0]


def expected_f1(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """E[2 T / (n + T + U)] per class: T, right, and U, wrongly decided, are independent counts."""
    f1 = []
    for c in range(rows.shape[1]):
        own = labels == c
        right, wrong = law_of_count(rows[own, c]), law_of_count(rows[~own, c])
        u = np.flatnonzero(wrong > 1e-18)
        t = np.arange(len(right))[:, None]
        f1.append(right @ (2.0 * t / np.maximum(own.sum() + t + u, 1)) @ wrong[u])
    return np.array(f1)


@repeatable
@given(runs())
def test_macro_and_per_class_f1_equal_scikit_learns(run: tuple[int, np.ndarray, np.ndarray]) -> None:
    classes, labels, decisions = run
    oracle = {"y_true": labels, "y_pred": decisions, "labels": range(classes), "zero_division": 0}
    assert macro_f1(labels, decisions, classes) == pytest.approx(f1_score(**oracle, average="macro"), abs=1e-15)
    hits, decided, support = count(labels, decisions, classes)
    np.testing.assert_allclose(per_class_f1(hits, decided, support), f1_score(**oracle, average=None), atol=1e-15)


@repeatable
@given(runs())
def test_counts_are_those_of_the_confusion_matrix(run: tuple[int, np.ndarray, np.ndarray]) -> None:
    classes, labels, decisions = run
    confusion = np.zeros((classes, classes))
    for truth, decision in zip(labels, decisions, strict=True):
        confusion[truth, decision] += 1.0
    hits, decided, support = count(labels, decisions, classes)
    np.testing.assert_array_equal(hits, confusion.diagonal())
    np.testing.assert_array_equal(decided, confusion.sum(axis=0))
    np.testing.assert_array_equal(support, confusion.sum(axis=1))


@repeatable
@given(runs())
def test_certain_decisions_give_their_own_metrics_and_no_spread(run: tuple[int, np.ndarray, np.ndarray]) -> None:
    classes, labels, decisions = run
    estimate = summarise(DenseTally.of(np.eye(classes)[decisions], labels))
    assert estimate.macro_f1 == pytest.approx(macro_f1(labels, decisions, classes), abs=1e-14)
    assert estimate.accuracy == pytest.approx(np.mean(labels == decisions), abs=1e-14)
    assert (estimate.macro_f1_std, estimate.accuracy_std, estimate.macro_f1_se) == (0.0, 0.0, 0.0)
    np.testing.assert_array_equal(estimate.per_class_f1_std, 0.0)


def brute_force(rows: np.ndarray, labels: np.ndarray) -> SimpleNamespace:
    """Every possible outcome of a tiny bank with its chance: the exact laws of accuracy and F1."""
    queries, classes = rows.shape
    outcomes = np.array(list(itertools.product(range(classes), repeat=queries)))
    chance = np.prod(rows[np.arange(queries), outcomes], axis=1)
    f1 = np.array([per_class_f1(*count(labels, outcome, classes)) for outcome in outcomes])
    accuracy = (outcomes == labels).mean(axis=1)
    return SimpleNamespace(f1=chance @ f1, accuracy=chance @ accuracy, accuracy_squared=chance @ accuracy**2)


@pytest.mark.parametrize("seed", range(4))
def test_the_law_of_counts_gives_the_mean_over_all_outcomes(seed: int) -> None:
    rows, labels = random_rows(queries=7, classes=3, seed=seed)
    np.testing.assert_allclose(expected_f1(rows, labels), brute_force(rows, labels).f1, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_accuracy_and_its_spread_are_exact(seed: int) -> None:
    rows, labels = random_rows(queries=7, classes=3, seed=seed)
    exact, estimate = brute_force(rows, labels), summarise(DenseTally.of(rows, labels))
    assert estimate.accuracy == pytest.approx(exact.accuracy, rel=1e-13)
    assert estimate.accuracy_std**2 == pytest.approx(exact.accuracy_squared - exact.accuracy**2, rel=1e-10)


@repeatable
@given(queries=st.integers(3, 60), classes=st.integers(2, 5), sharpness=st.floats(0.0, 6.0), seed=st.integers(0, 10**6))
def test_f1_of_small_banks_is_within_the_stated_remainder(
    queries: int, classes: int, sharpness: float, seed: int
) -> None:
    rows, labels = random_rows(queries=queries, classes=classes, seed=seed, sharpness=sharpness)
    tally = DenseTally.of(rows, labels)
    allowed = np.where(tally.support > 0.0, REMAINDER / np.maximum(tally.support, 1.0) ** 2, 1e-15)
    assert (np.abs(summarise(tally).per_class_f1 - expected_f1(rows, labels)) <= allowed).all()


@pytest.mark.parametrize("members", [1, 2, 5, 20])
@pytest.mark.parametrize("right", [0.02, 0.1, 0.15, 0.5])
@pytest.mark.parametrize("wrong", [0.0, 0.01, 0.3])
def test_f1_of_a_rarely_decided_class_is_within_the_stated_remainder(members: int, right: float, wrong: float) -> None:
    """Where the remainder is largest: a class decided rightly one time in ten and hardly ever wrongly."""
    chances = np.concatenate([np.full(members, right), np.full(30, wrong)])
    rows, labels = np.stack([chances, 1.0 - chances], axis=1), np.repeat([0, 1], [members, 30])
    error = summarise(DenseTally.of(rows, labels)).per_class_f1 - expected_f1(rows, labels)
    assert abs(error[0]) <= REMAINDER / members**2


@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_macro_f1_is_within_5e_5_at_10_000_queries_and_10_classes(sharpness: float) -> None:
    rows, labels = random_rows(queries=10_000, classes=10, seed=1, sharpness=sharpness)
    exact = expected_f1(rows, labels)
    estimate = summarise(DenseTally.of(rows, labels))
    assert abs(estimate.macro_f1 - exact.mean()) <= 5e-5
    np.testing.assert_allclose(estimate.per_class_f1, exact, rtol=0, atol=5e-5)


def test_the_correction_matters() -> None:
    """Without it the plug-in is off by more than the remainder allows."""
    rows, labels = random_rows(queries=100, classes=4, seed=3)
    tally, exact = DenseTally.of(rows, labels), expected_f1(rows, labels)
    plug_in = per_class_f1(tally.hits, tally.decided, tally.support)
    assert np.abs(summarise(tally).per_class_f1 - exact).max() < 0.1 * np.abs(plug_in - exact).max()


def test_mean_and_spread_meet_a_simulation() -> None:
    """Over R runs the mean errs by std / sqrt(R), the standard deviation by std / sqrt(2 R): the metrics are near normal."""
    queries, classes, repeats = 1500, 5, 3000
    rows, labels = random_rows(queries=queries, classes=classes, seed=4)
    rng, cumulative = np.random.default_rng(5), rows.cumsum(axis=1)[:, :-1]
    f1, accuracy = np.empty((repeats, classes)), np.empty(repeats)
    for r in range(repeats):
        decisions = (rng.random(queries)[:, None] > cumulative).sum(axis=1)
        f1[r], accuracy[r] = per_class_f1(*count(labels, decisions, classes)), np.mean(labels == decisions)
    estimate = summarise(DenseTally.of(rows, labels))
    for mean, std, simulated in (
        (estimate.macro_f1, estimate.macro_f1_std, f1.mean(axis=1)),
        (estimate.accuracy, estimate.accuracy_std, accuracy),
        *zip(estimate.per_class_f1, estimate.per_class_f1_std, f1.T, strict=True),
    ):
        measured = simulated.std(ddof=1)
        assert abs(mean - simulated.mean()) <= 4.0 * measured / np.sqrt(repeats)
        assert abs(std - measured) <= 4.0 * measured / np.sqrt(2.0 * repeats)


@pytest.mark.parametrize("absent", [0, 2])
def test_a_class_that_never_occurs_counts_with_f1_zero(absent: int) -> None:
    rows, labels = random_rows(queries=80, classes=3, seed=6)
    labels = np.where(labels == absent, 1, labels)
    estimate = summarise(DenseTally.of(rows, labels))
    assert estimate.per_class_f1[absent] == 0.0
    assert estimate.per_class_f1_std[absent] == 0.0
    assert estimate.macro_f1 == pytest.approx(np.delete(estimate.per_class_f1, absent).sum() / 3.0, rel=1e-13)


@pytest.mark.parametrize("support", [0, 4])
@pytest.mark.parametrize("chance", [0.0, 1e-150, 1e-300])
def test_a_class_that_is_next_to_never_decided_has_f1_zero(chance: float, support: int) -> None:
    labels = np.repeat([0, 1], [6, support])
    rows = np.tile([0.7, chance, 0.3], (len(labels), 1))
    estimate = summarise(DenseTally.of(rows, labels))
    assert estimate.per_class_f1[1] == pytest.approx(0.0, abs=1e-100)
    assert np.isfinite([estimate.macro_f1, estimate.macro_f1_std]).all()


def literal_tally(rows: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    own = np.eye(rows.shape[1])[labels]
    return {
        "support": own.sum(axis=0),
        "hits": (rows * own).sum(axis=0),
        "hits_squared": (rows**2 * own).sum(axis=0),
        "decided": rows.sum(axis=0),
        "decided_squared": (rows**2).sum(axis=0),
    }


@pytest.mark.parametrize("classes", [2, 5, 40])
def test_dense_tally_equals_its_definition_and_adds_up(classes: int) -> None:
    rows, labels = random_rows(queries=120, classes=classes, seed=classes)
    labels = np.minimum(labels, classes - 2)
    whole = DenseTally.of(rows, labels)
    parts = DenseTally.of(rows[:1], labels[:1]) + DenseTally.of(rows[1:], labels[1:])
    on_hits, on_decided = np.random.default_rng(7).normal(size=(2, classes))
    gains = on_decided + on_hits * np.eye(classes)[labels]
    for tally in (whole, parts):
        for name, expected in literal_tally(rows, labels).items():
            np.testing.assert_allclose(getattr(tally, name), expected, rtol=1e-12, atol=1e-13, err_msg=name)
        expected_squares = ((rows * gains).sum(axis=1) ** 2).sum()
        assert tally.mean_squares(on_hits, on_decided) == pytest.approx(expected_squares, rel=1e-11)


def test_gradient_is_the_change_of_macro_f1_per_decision() -> None:
    rows, labels = random_rows(queries=90, classes=4, seed=8)
    tally = DenseTally.of(rows, labels)

    def macro(hits: np.ndarray, decided: np.ndarray) -> float:
        return float(per_class_f1(hits, decided, tally.support).mean())

    on_hits, on_decided = gradient(tally)
    for c, step in enumerate(1e-4 * np.eye(4)):
        by_hits = macro(tally.hits + step, tally.decided) - macro(tally.hits - step, tally.decided)
        by_decided = macro(tally.hits, tally.decided + step) - macro(tally.hits, tally.decided - step)
        assert on_hits[c] == pytest.approx(by_hits / 2e-4, rel=1e-6)
        assert on_decided[c] == pytest.approx(by_decided / 2e-4, rel=1e-6)


def test_what_drawing_leaves_is_the_standard_error_and_belongs_to_the_spread() -> None:
    tally = DenseTally.of(*random_rows(queries=90, classes=4, seed=9))
    plain = summarise(tally)
    drawn = summarise(
        tally,
        drawn_f1_variance=1e-4,
        drawn_accuracy_variance=4e-4,
        drawn_class_f1_variance=np.array([0.0, 1e-4, 4e-4, 9e-4]),
    )
    assert (drawn.macro_f1_se, drawn.accuracy_se) == (pytest.approx(1e-2), pytest.approx(2e-2))
    assert drawn.macro_f1_std == pytest.approx(np.hypot(plain.macro_f1_std, 1e-2))
    assert drawn.accuracy_std == pytest.approx(np.hypot(plain.accuracy_std, 2e-2))
    np.testing.assert_allclose(drawn.per_class_f1_std, np.hypot(plain.per_class_f1_std, [0.0, 1e-2, 2e-2, 3e-2]))
    assert drawn.macro_f1 == plain.macro_f1


def estimate_of(seed: int) -> Estimate:
    estimate = summarise(DenseTally.of(*random_rows(queries=50, classes=3, seed=seed)))
    rng = np.random.default_rng(seed)
    costs = dict(zip(("sigma", "channel_noise_variance", "channel_uses"), rng.random(3), strict=True))
    return replace(estimate, macro_f1_se=0.01 * (seed + 1), accuracy_se=0.02 * (seed + 1), accountant="paper", **costs)


def test_pooled_spread_is_that_of_one_run_on_a_random_bank() -> None:
    banks = [estimate_of(seed) for seed in range(3)]
    pooled = pool(banks)
    for name in ("macro_f1", "accuracy", "per_class_f1"):
        means, stds = (np.array([getattr(bank, name + end) for bank in banks]) for end in ("", "_std"))
        np.testing.assert_allclose(getattr(pooled, name), means.mean(axis=0))
        variance = (stds**2).mean(axis=0) + ((means - means.mean(axis=0)) ** 2).mean(axis=0)
        np.testing.assert_allclose(getattr(pooled, f"{name}_std"), np.sqrt(variance))


@pytest.mark.parametrize("name", ["sigma", "channel_noise_variance", "channel_uses", "hits", "decided"])
def test_pooled_costs_and_counts_are_means(name: str) -> None:
    banks = [estimate_of(seed) for seed in range(3)]
    np.testing.assert_allclose(getattr(pool(banks), name), np.mean([getattr(bank, name) for bank in banks], axis=0))


def test_pooled_standard_error_is_that_of_a_mean_of_independent_draws() -> None:
    pooled = pool([estimate_of(seed) for seed in range(3)])
    assert pooled.macro_f1_se == pytest.approx(0.01 * np.sqrt(1 + 4 + 9) / 3)
    assert pooled.accuracy_se == pytest.approx(0.02 * np.sqrt(1 + 4 + 9) / 3)
    assert pooled.accountant == "paper"


def test_one_bank_pools_to_itself() -> None:
    estimate = estimate_of(0)
    assert pool([estimate]) is estimate


def test_pooling_copies_of_one_bank_changes_no_mean_and_no_spread() -> None:
    banks = [estimate_of(1)] * 3
    pooled = pool(banks)
    assert pooled.macro_f1 == pytest.approx(banks[0].macro_f1)
    assert pooled.macro_f1_std == pytest.approx(banks[0].macro_f1_std)
    assert pooled.macro_f1_se == pytest.approx(banks[0].macro_f1_se / np.sqrt(3.0))
