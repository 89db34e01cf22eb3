"""What every registered rule promises: symbols within its geometry, and the first largest sum wins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from airchoir import ScoreBank
from airchoir.registry import plugins
from airchoir.rules import Rule, first_largest

RULES = [pytest.param(plugin(), id=name) for name, plugin in plugins(Rule).items()]
every_rule = pytest.mark.parametrize("rule", RULES)
PROPERTY = settings(deadline=None, derandomize=True, max_examples=100)

scores_of_two = st.builds(
    lambda weights, dtype: valid(weights, dtype),
    hnp.arrays(
        np.float64,
        st.tuples(st.just(2), st.integers(1, 6), st.integers(2, 9)),
        elements=st.sampled_from([0.0, 1e-9, 1e-5, 1e-3, 0.1, 0.5, 1.0, 1.0, 7.0, 1e4]) | st.floats(0.0, 1.0),
    ),
    st.sampled_from(["float16", "float32"]),
)


def valid(weights: np.ndarray, dtype: str) -> np.ndarray:
    """Rows that a bank accepts: anything non-negative, divided by its sum and rounded to the type."""
    weights = np.where(weights.sum(axis=-1, keepdims=True) < 1e-6, 1.0, weights)
    scores = (weights / weights.sum(axis=-1, keepdims=True)).astype(dtype)
    ScoreBank(scores, np.zeros(scores.shape[1], dtype=np.int64))
    return scores


def one_hots(classes: int) -> np.ndarray:
    return np.eye(classes, dtype="float32")[None]


def rounding(classes: int) -> float:
    """What float64 may add to a norm: every entry and the sum of a row carry a relative error of one rounding each."""
    return 1.0 + (classes + 2) * float(np.finfo(np.float64).eps)


@every_rule
@PROPERTY
@given(scores=scores_of_two)
def test_symbols_stay_within_the_declared_geometry(rule: Rule, scores: np.ndarray) -> None:
    symbols = rule.encode(scores)
    classes = scores.shape[2]
    geometry, slack = rule.geometry(classes), rounding(classes)
    assert symbols.shape == scores.shape
    assert symbols.dtype == np.float64
    every = np.concatenate([*symbols, *rule.encode(one_hots(classes))])
    distances = np.linalg.norm(every[:, None] - every[None], axis=-1)
    assert distances.max() <= geometry.sensitivity * slack
    assert np.linalg.norm(every, axis=-1).max() <= geometry.largest_norm * slack
    assert (every @ every.T).min() >= geometry.smallest_inner_product - (slack - 1.0)


@every_rule
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_declared_sensitivity_is_reached_so_no_noise_is_wasted(rule: Rule, classes: int) -> None:
    symbols = rule.encode(one_hots(classes))[0]
    geometry = rule.geometry(classes)
    assert np.linalg.norm(symbols[0] - symbols[1]) == pytest.approx(geometry.sensitivity, rel=1e-15)
    assert np.linalg.norm(symbols[0]) == pytest.approx(geometry.largest_norm, rel=1e-15)
    assert symbols[0] @ symbols[1] == pytest.approx(geometry.smallest_inner_product, abs=1e-15)


@every_rule
@PROPERTY
@given(scores=scores_of_two)
def test_a_rule_that_says_one_hot_sends_a_one_hot_vector_up_to_a_constant(rule: Rule, scores: np.ndarray) -> None:
    symbols = rule.encode(scores)
    if rule.one_hot:
        one_hot = np.sort(symbols - symbols.min(axis=-1, keepdims=True), axis=-1)
        expected = np.zeros_like(symbols)
        expected[..., -1] = 1.0
        np.testing.assert_allclose(one_hot, expected, rtol=0.0, atol=1e-15)


@every_rule
@PROPERTY
@given(scores=scores_of_two)
def test_each_symbol_depends_on_its_own_client_and_query_alone(rule: Rule, scores: np.ndarray) -> None:
    together = rule.encode(scores)
    for client in range(scores.shape[0]):
        for query in range(scores.shape[1]):
            alone = rule.encode(scores[client : client + 1, query : query + 1])
            np.testing.assert_allclose(together[client, query], alone[0, 0], rtol=rounding(scores.shape[2]) - 1.0)


@every_rule
@PROPERTY
@given(sums=hnp.arrays(np.float64, (4, 5), elements=st.sampled_from([-1e300, -2.0, 0.0, 0.5, 0.5, 1.0, 3.0])))
def test_the_label_is_the_first_index_of_the_largest_sum(rule: Rule, sums: np.ndarray) -> None:
    labels = rule.decide(sums)
    assert labels.dtype == np.int64
    for row, label in zip(sums.tolist(), labels, strict=True):
        assert label == row.index(max(row))


@every_rule
def test_encoding_leaves_the_scores_as_they_are(rule: Rule) -> None:
    scores = np.random.default_rng(0).dirichlet(np.ones(4), (3, 5)).astype("float32")
    before = scores.copy()
    scores.setflags(write=False)  # a loaded bank is read-only
    assert rule.encode(scores).flags.writeable
    np.testing.assert_array_equal(scores, before)


@every_rule
def test_rules_of_one_kind_are_equal_so_that_a_bank_remembers_their_sums(rule: Rule) -> None:
    assert rule == type(rule)()
    assert hash(rule) == hash(type(rule)())


def test_different_rules_are_never_taken_for_each_other() -> None:
    rules = [plugin() for plugin in plugins(Rule).values()]
    assert len(set(rules)) == len(rules)


def test_first_largest_picks_the_first_of_equals() -> None:
    np.testing.assert_array_equal(first_largest(np.array([[1.0, 1.0], [0.0, 2.0], [-3.0, -3.0]])), [0, 1, 0])
