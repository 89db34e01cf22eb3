"""Friedman and Nemenyi: Demsar's example, scipy's statistic, brute-force orders, tables of critical values."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from airchoir.experiments.friedman import critical_difference, datasets_needed, exact_p_value, friedman

DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],  # alike as printed, but ranked 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)
"""AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets [Demsar 2006, Table 6]."""
NAMES = ("a", "b", "c", "d", "e")
scores = hnp.arrays(np.float64, st.tuples(st.integers(2, 4), st.integers(2, 5)), elements=st.integers(0, 3).map(float))


def untied(ranks: np.ndarray) -> float:
    """Demsar's formula, which knows no ties."""
    datasets, methods = ranks.shape
    means = ranks.mean(axis=0)
    return 12 * datasets / (methods * (methods + 1)) * (np.sum(means**2) - methods * (methods + 1) ** 2 / 4)


def test_demsars_example() -> None:
    found = friedman(DEMSAR, NAMES[:4])
    np.testing.assert_allclose(found.mean_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)  # his table's last line
    assert untied(found.ranks) == pytest.approx(9.28, abs=0.005)  # his chi2
    assert found.statistic >= untied(found.ranks)  # ties make the same ranks more telling
    assert not found.exact
    assert round(critical_difference(4, 14, 0.05), 2) == 1.25  # his CD
    assert round(critical_difference(4, 14, 0.10), 2) == 1.12


@pytest.mark.parametrize(
    ("methods", "value"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (10, 3.164)]
)
def test_the_critical_values_are_the_tables(methods: int, value: float) -> None:
    found = critical_difference(methods, 1, 0.05) / math.sqrt(methods * (methods + 1) / 6)
    assert found == pytest.approx(value, abs=1e-3)  # Demsar 2006, Table 5 (a)


@given(scores)
def test_the_statistic_is_scipys(values: np.ndarray) -> None:
    found = friedman(values, NAMES[: values.shape[1]])
    if all(len(set(row)) == 1 for row in values):
        assert math.isnan(found.statistic)
        assert math.isnan(found.p_value)
        return
    if values.shape[1] >= 3:  # scipy wants three
        other = stats.friedmanchisquare(*(-values).T)
        assert found.statistic == pytest.approx(other.statistic, rel=1e-9, abs=1e-9)


def test_with_many_data_sets_the_p_value_is_scipys() -> None:
    found = friedman(DEMSAR, NAMES[:4])
    assert found.p_value == pytest.approx(stats.friedmanchisquare(*(-DEMSAR).T).pvalue, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(2, 4)), elements=st.integers(0, 3).map(float)))
def test_the_exact_p_value_counts_every_order(values: np.ndarray) -> None:
    ranks = stats.rankdata(-values, axis=1)
    middle = (values.shape[1] + 1) / 2
    observed = np.sum((ranks.mean(axis=0) - middle) ** 2)
    orders = [list(itertools.permutations(row)) for row in ranks]
    as_large = [
        np.sum((np.mean(choice, axis=0) - middle) ** 2) >= observed - 1e-9 for choice in itertools.product(*orders)
    ]
    assert exact_p_value(ranks) == pytest.approx(np.mean(as_large), rel=1e-9)


def test_four_data_sets_that_agree_are_the_least_likely_order() -> None:
    agreeing = np.tile(np.arange(5.0), (4, 1))
    found = friedman(agreeing, NAMES)
    assert found.exact
    assert found.p_value == pytest.approx(1 / math.factorial(5) ** 3, rel=1e-9)
    assert found.statistic == pytest.approx(16.0)  # N (k - 1), the largest there is


@pytest.mark.parametrize(
    ("statistic", "datasets", "p_value"), [(6.0, 3, 0.028), (4.67, 3, 0.194), (6.5, 4, 0.042), (8.0, 4, 0.0046)]
)
def test_the_exact_p_value_of_published_tables(statistic: float, datasets: int, p_value: float) -> None:
    """k = 3, the small-sample table of Friedman's statistic."""
    for values in itertools.product(itertools.permutations((1.0, 2.0, 3.0)), repeat=datasets):
        found = friedman(np.array(values), NAMES[:3])
        if found.statistic == pytest.approx(statistic, abs=0.005):
            assert found.p_value == pytest.approx(p_value, abs=5e-4)
            return
    pytest.fail("no order has this statistic")


def test_one_data_set_tests_nothing() -> None:
    found = friedman(np.array([[0.2, 0.5, 0.3]]), NAMES[:3])
    assert math.isnan(found.p_value)
    np.testing.assert_array_equal(found.mean_ranks, [3.0, 1.0, 2.0])


@pytest.mark.parametrize("methods", [2, 3, 4, 5])
def test_the_data_sets_needed_are_the_fewest_that_tell_one_rank_apart(methods: int) -> None:
    needed = datasets_needed(methods, 0.05)
    assert critical_difference(methods, needed, 0.05) <= 1.0 < critical_difference(methods, needed - 1, 0.05)


def test_under_the_null_the_exact_test_rejects_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    p_values = np.array([friedman(rng.random((3, 4)), NAMES[:4]).p_value for _ in range(400)])
    for alpha in (0.05, 0.2):
        assert np.mean(p_values <= alpha) <= alpha + 4 * math.sqrt(alpha * (1 - alpha) / 400)
