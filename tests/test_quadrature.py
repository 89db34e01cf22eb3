"""Decision probabilities against direct quadrature of their definition: every probability within 1e-6, ties included.

The definition: P_j is the integral of phi(x - s_j) times the product over l != j of Phi(x - s_l), in standard deviations.
"""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from airchoir.quadrature import decision_probabilities

ERROR = 1e-6
CLASSES = (2, 3, 5, 10, 11, 32, 33, 64, 100, 101, 128, 129, 256, 257, 320, 321, 1000, 1500)
X = np.arange(-13.0, 13.0, 0.05)
repeatable = settings(deadline=None, derandomize=True, max_examples=100)


def oracle(sums: np.ndarray, noise_std: float) -> np.ndarray:
    """One query's probabilities in float64; the product over the others is taken in logarithms."""
    levels, of_class, multiplicity = np.unique((sums - sums.max()) / noise_std, return_inverse=True, return_counts=True)
    levels = np.maximum(levels, -50.0)  # further down nobody wins
    log_phi = special.log_ndtr(X - levels[:, None])
    log_density = -0.5 * (X - levels[:, None]) ** 2 - np.log(np.sqrt(2.0 * np.pi))
    others = multiplicity @ log_phi - log_phi
    return 0.05 * np.exp(log_density + others).sum(axis=1)[of_class]


def worst_error(gaps: np.ndarray, noise_std: float = 1.0) -> float:
    """The largest error of any probability where the classes lie `gaps` below the top."""
    solved = decision_probabilities(-gaps[None, :], noise_std)[0]
    return float(np.abs(solved - oracle(-gaps, noise_std)).max())


def groups(classes: int, *members: tuple[int, float]) -> np.ndarray:
    """Gaps: one class on top, then (how many, how far below), the last group repeated until `classes` are full."""
    gaps = np.full(classes, members[-1][1])
    gaps[0] = 0.0
    start = 1
    for size, gap in members[:-1]:
        gaps[start : start + size] = gap
        start += size
    return gaps


@pytest.mark.parametrize("sums", [(0.3, 0.1, 0.0), (2.0, 2.0, -1.0, 1.9), (0.0, 7.0, 6.5)])
def test_the_oracle_is_the_definition_integrated_to_20_digits(sums: tuple[float, ...]) -> None:
    def win(j: int) -> float:
        def density(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x - sums[j]) * mpmath.fprod(mpmath.ncdf(x - s) for i, s in enumerate(sums) if i != j)

        return float(mpmath.quad(density, range(-12, 20, 4)))

    with mpmath.workdps(20):
        exact = [win(j) for j in range(len(sums))]
    np.testing.assert_allclose(oracle(np.array(sums), 1.0), exact, rtol=0, atol=1e-14)
    np.testing.assert_allclose(decision_probabilities(np.array([sums]), 1.0)[0], exact, rtol=0, atol=ERROR)


@pytest.mark.parametrize("classes", CLASSES)
def test_error_is_below_1e_6_where_one_class_leads_a_crowd(classes: int) -> None:
    """The worst case: the rounding of many equal classes adds up in the same direction."""
    on_table, between = np.linspace(0.0, 11.0, 45), (np.arange(500, 5000, 181) + 0.5) / 1024.0
    errors = [worst_error(groups(classes, (1, gap))) for gap in (*on_table, *between)]
    assert max(errors) < ERROR


@pytest.mark.parametrize("classes", [100, 128])
def test_error_is_below_1e_6_where_single_precision_is_at_its_limit(classes: int) -> None:
    """Summed in float32 throughout, some of these would err by 1.1e-6."""
    on_table = np.linspace(1.5, 4.5, 301)
    between = (np.floor(1024.0 * on_table) + 0.5) / 1024.0
    assert max(worst_error(groups(classes, (1, gap))) for gap in (*on_table, *between)) < ERROR


@pytest.mark.parametrize("classes", CLASSES)
def test_error_is_below_1e_6_on_ties_and_staircases(classes: int) -> None:
    half = classes // 2 - 1
    steps = (0.01, 0.1, 0.3, 1.0, 3.0, 11.0)
    cases = [
        groups(classes, (1, 0.0)),
        *(groups(classes, (1, 0.0), (1, gap)) for gap in (0.5, 2.0, 3.0, 6.0)),
        *(groups(classes, (half, 0.0), (1, gap)) for gap in (0.01, 0.5, 2.0, 4.0)),
        *(groups(classes, (1, first), (1, gap)) for first in (1.0, 1.9, 2.8) for gap in (1.2, 2.3, 3.9)),
        *(np.minimum(np.arange(classes) * step, 40.0) for step in steps),
    ]
    assert max(worst_error(gaps) for gaps in cases) < ERROR


@pytest.mark.parametrize("noise_std", [1e-300, 1e-160, 1e-9, 0.05, 0.3, 1.0, 3.0, 20.0, 1e3, 1e6])
def test_error_is_below_1e_6_on_votes_and_beliefs_whatever_the_noise(noise_std: float) -> None:
    rng = np.random.default_rng(1)
    for classes in CLASSES:
        taste = rng.dirichlet(np.full(classes, 0.3))
        votes = rng.multinomial(20, taste, 3).astype(np.float64)
        beliefs = rng.dirichlet(20.0 * taste + 1e-3, (20, 2)).sum(axis=0)
        for sums in (votes, beliefs):
            solved = decision_probabilities(sums, noise_std)
            exact = np.array([oracle(row, noise_std) for row in sums])
            np.testing.assert_allclose(solved, exact, rtol=0, atol=ERROR)


@repeatable
@given(
    classes=st.sampled_from((3, 4, 7, 10, 20, 32, 64, 100, 128, 256, 1000)),
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 99)),
    gaps=st.lists(st.floats(0.0, 6.0), min_size=3, max_size=3),
)
def test_error_is_below_1e_6_on_any_few_groups(classes: int, sizes: tuple[int, int], gaps: list[float]) -> None:
    near, middle, far = sorted(gaps)
    assert worst_error(groups(classes, (sizes[0], near), (sizes[1], middle), (1, far))) < ERROR


@repeatable
@given(sums=st.lists(st.floats(-50.0, 50.0), min_size=2, max_size=40), noise_std=st.floats(1e-6, 1e6))
def test_error_is_below_1e_6_on_any_sums(sums: list[float], noise_std: float) -> None:
    solved = decision_probabilities(np.array([sums]), noise_std)[0]
    np.testing.assert_allclose(solved, oracle(np.array(sums), noise_std), rtol=0, atol=ERROR)


def test_two_classes_equal_the_closed_form() -> None:
    gaps = np.linspace(-12.0, 12.0, 97)
    solved = decision_probabilities(np.stack([gaps, np.zeros_like(gaps)], axis=1), 2.0)
    closed = [float(mpmath.ncdf(mpmath.mpf(gap) / mpmath.sqrt(8))) for gap in gaps]
    np.testing.assert_allclose(solved[:, 0], closed, rtol=1e-12)
    np.testing.assert_allclose(solved[:, 1], closed[::-1], rtol=1e-12)


@pytest.mark.parametrize("noise_std", [5e-324, 1e-300, 1e-12])
@pytest.mark.parametrize("classes", [2, 3, 10, 200, 1000])
def test_the_least_noise_splits_ties_evenly_and_leaves_winners_alone(classes: int, noise_std: float) -> None:
    sums = np.zeros((3, classes))
    sums[0, -1] = 1.0
    sums[1, [0, -1]] = 1.0
    expected = np.stack([sums[0], sums[1] / 2.0, np.full(classes, 1.0 / classes)])
    np.testing.assert_allclose(decision_probabilities(sums, noise_std), expected, rtol=0, atol=ERROR)


@pytest.mark.parametrize("classes", [2, 3, 10, 200])
def test_no_noise_takes_the_first_largest(classes: int) -> None:
    sums = np.zeros((3, classes))
    sums[1, -1] = 1.0
    sums[2, [-2, -1]] = 1.0
    expected = np.zeros((3, classes))
    expected[[0, 1, 2], [0, classes - 1, classes - 2]] = 1.0
    np.testing.assert_array_equal(decision_probabilities(sums, 0.0), expected)


@pytest.mark.parametrize("classes", CLASSES)
def test_endless_noise_decides_evenly(classes: int) -> None:
    sums = np.linspace(0.0, 20.0, classes)[None, :]
    np.testing.assert_allclose(decision_probabilities(sums, 1e9), 1.0 / classes, rtol=0, atol=ERROR)


@pytest.mark.parametrize("classes", CLASSES)
def test_rows_are_distributions(classes: int) -> None:
    sums = np.random.default_rng(2).dirichlet(np.full(classes, 0.1), (40, 20)).sum(axis=1)
    rows = decision_probabilities(sums, np.geomspace(1e-3, 1e3, 40)).astype(np.float64)
    assert rows.shape == (40, classes)
    assert (rows >= 0.0).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=ERROR)


@pytest.mark.parametrize("classes", [2, 3, 10, 100, 300])
def test_every_query_has_its_own_noise(classes: int) -> None:
    sums = np.random.default_rng(3).normal(0.0, 2.0, (6, classes))
    noise_std = np.array([0.0, 1e-300, 0.1, 1.0, 30.0, 1e6])
    together = decision_probabilities(sums, noise_std)
    alone = np.concatenate([decision_probabilities(sums[i : i + 1], float(noise_std[i])) for i in range(6)])
    np.testing.assert_allclose(together, alone, rtol=0, atol=ERROR)
    np.testing.assert_array_equal(together.argmax(axis=1)[:2], sums.argmax(axis=1)[:2])


@repeatable
@given(sums=st.lists(st.integers(0, 20), min_size=2, max_size=12), data=st.data())
def test_permuting_classes_permutes_the_probabilities(sums: list[int], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(sums))))
    rows = np.array([sums, [sums[j] for j in order]], dtype=np.float64)
    first, second = decision_probabilities(rows, 1.7)
    np.testing.assert_allclose(second, first[order], rtol=0, atol=ERROR)


@repeatable
@given(
    sums=st.lists(st.floats(0.0, 20.0), min_size=2, max_size=12),
    shift=st.floats(-1e3, 1e3),
    scale=st.floats(0.01, 100.0),
)
def test_shifting_or_scaling_everything_changes_nothing(sums: list[float], shift: float, scale: float) -> None:
    rows = np.array([sums])
    expected = decision_probabilities(rows, 1.3)
    np.testing.assert_allclose(decision_probabilities(rows + shift, 1.3), expected, rtol=0, atol=ERROR)
    np.testing.assert_allclose(decision_probabilities(rows * scale, 1.3 * scale), expected, rtol=0, atol=ERROR)


def test_a_query_does_not_depend_on_its_neighbours() -> None:
    sums = np.random.default_rng(4).dirichlet(np.full(10, 0.2), (5000, 20)).sum(axis=1)
    together = decision_probabilities(sums, 0.8)
    np.testing.assert_allclose(decision_probabilities(sums[4990:], 0.8), together[4990:], rtol=0, atol=ERROR)
    np.testing.assert_allclose(together[2500], oracle(sums[2500], 0.8), rtol=0, atol=ERROR)


def test_the_callers_sums_are_left_alone() -> None:
    sums = np.random.default_rng(5).normal(0.0, 1.0, (20, 5))
    before = sums.copy()
    decision_probabilities(sums, 0.5)
    np.testing.assert_array_equal(sums, before)
