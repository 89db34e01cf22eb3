"""Clopper-Pearson rates against their definition, and what rates prove against the mechanism whose rates they are."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from airchoir.audit.evidence import at_least, at_most, epsilon_of, epsilon_shown, mu_shown
from airchoir.privacy.gaussian import log_delta
from airchoir.rules import SIMPLEX
from airchoir.rules.centred import centred_simplex

RISKS = [0.4, 0.025, 1e-3, 1e-9]
deterministic = settings(derandomize=True, deadline=None, max_examples=60)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("runs", [1, 7, 1000, 10**6])
def test_at_the_bounds_the_hits_are_just_as_unlikely_as_the_risk(runs: int, risk: float) -> None:
    """The definition: P(at least so many) = risk at the lower bound, P(at most so many) = risk at the upper one."""
    hits = np.unique(np.linspace(0, runs, 20).astype(int))
    tail = stats.binom.sf(hits[1:] - 1, runs, at_least(hits[1:], runs, risk))
    np.testing.assert_allclose(tail, risk, rtol=1e-8)
    tail = stats.binom.cdf(hits[:-1], runs, at_most(hits[:-1], runs, risk))
    np.testing.assert_allclose(tail, risk, rtol=1e-6)  # 1 - risk is all that betaincinv is told


@pytest.mark.parametrize("risk", RISKS[:3])  # scipy is told 1 - 2 risk
def test_the_bounds_are_scipys_exact_intervals(risk: float) -> None:
    for runs in (1, 7, 1000):
        hits = np.unique(np.linspace(0, runs, 20).astype(int))
        for hit, low, high in zip(hits, at_least(hits, runs, risk), at_most(hits, runs, risk), strict=True):
            expected = stats.binomtest(int(hit), runs).proportion_ci(1.0 - 2.0 * risk, method="exact")
            assert low == pytest.approx(expected.low, rel=1e-9, abs=0)
            assert high == pytest.approx(expected.high, rel=1e-9, abs=0)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("runs", [1, 10, 200])
def test_no_bound_is_wrong_more_often_than_its_risk(runs: int, risk: float) -> None:
    """Exactly, by the binomial law of the hits, for a grid of true rates."""
    hits = np.arange(runs + 1)
    low, high = at_least(hits, runs, risk), at_most(hits, runs, risk)
    for rate in np.concatenate([np.geomspace(1e-9, 0.5, 40), 1.0 - np.geomspace(1e-9, 0.5, 40)]):
        law = stats.binom.pmf(hits, runs, rate)
        assert law[low > rate].sum() <= risk * (1.0 + 1e-9)
        assert law[high < rate].sum() <= risk * (1.0 + 1e-9)


@deterministic
@given(st.integers(1, 10**7), st.floats(0.0, 1.0), st.floats(1e-6, 0.5))
def test_upper_and_lower_bounds_mirror_each_other(runs: int, share: float, risk: float) -> None:
    hits = np.array([round(share * runs)])
    assert at_most(hits, runs, risk)[0] == pytest.approx(
        1.0 - at_least(runs - hits, runs, risk)[0], rel=1e-6, abs=1e-12
    )
    assert at_least(hits, runs, risk)[0] <= hits[0] / runs <= at_most(hits, runs, risk)[0]


def test_certainty_is_never_concluded() -> None:
    assert at_least(np.array([0, 50]), 50, 0.05).tolist() == [0.0, pytest.approx(0.05 ** (1 / 50))]
    assert at_most(np.array([0, 50]), 50, 0.05).tolist() == [pytest.approx(1.0 - 0.05 ** (1 / 50)), 1.0]


@pytest.mark.parametrize("mu", [0.05, 0.2367, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.01])
def test_exact_rates_of_two_gaussians_prove_their_epsilon_and_no_more(mu: float, delta: float) -> None:
    """Over all thresholds the assumption-free bound reaches epsilon(delta); the Gaussian one is mu at each of them."""
    thresholds = np.linspace(-8.0, 12.0, 200_001)
    true, false = special.ndtr(mu - thresholds), special.ndtr(-thresholds)
    epsilon = epsilon_of(mu, delta, SIMPLEX)
    shown = max(0.0, float(epsilon_shown(true, false, delta).max()))
    assert shown <= epsilon * (1.0 + 1e-9) + 1e-12
    assert shown == pytest.approx(epsilon, abs=1e-6)
    middle = np.abs(thresholds - mu / 2) < 2.0  # further out a rate near 1 has no digits left
    np.testing.assert_allclose(mu_shown(true, false)[middle], mu, rtol=1e-9)


def test_no_rate_above_delta_proves_nothing() -> None:
    assert epsilon_shown(np.array([0.01]), np.array([1e-9]), 0.01)[0] == -math.inf
    assert mu_shown(np.array([0.0]), np.array([0.5]))[0] == -math.inf
    assert mu_shown(np.array([0.5]), np.array([1.0]))[0] == -math.inf


@pytest.mark.parametrize("mu", [-math.inf, -1.0, 0.0])
def test_gaussians_that_are_not_apart_cost_nothing(mu: float) -> None:
    assert epsilon_of(mu, 1e-6, SIMPLEX) == 0.0


@deterministic
@given(st.floats(0.01, 10.0), st.floats(-12.0, -0.5).map(lambda e: 10.0**e))
def test_the_price_of_mu_is_that_of_the_gaussian_mechanism_whatever_the_rule(mu: float, delta: float) -> None:
    epsilon = epsilon_of(mu, delta, SIMPLEX)
    assert log_delta(epsilon, mu) == pytest.approx(min(math.log(delta), log_delta(0.0, mu)), rel=1e-9)
    assert epsilon_of(mu, delta, centred_simplex(2)) == pytest.approx(epsilon, rel=1e-12)
