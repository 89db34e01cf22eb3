"""D3 against two other formulas in 30 digits, a two-dimensional integral, its limits and its monotonicity."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.privacy.divergence import log_divergences
from airchoir.privacy.gaussian import log_delta
from airchoir.rules import SIMPLEX, Geometry

CLAIM = 2e-11
"""More than the stated allowance, less than the 9 digits that are promised."""

SETTINGS = [
    (1.0, 0.5, 3.2),
    (1.0, 0.1, 1.5),
    (0.1, 0.3, 10.0),
    (8.0, 0.5, 0.6),
    (1.0, 1e-3, 0.7),
    (1.0, 1.0 - 1e-9, 5.0),
    (5.0, 0.99, 1.0),
    (1e-3, 0.5, 50.0),
    (20.0, 0.1, 0.5),
    (1e-5, 1e-4, 1.0),
    (1e-3, 0.5, 1000.0),
]
"""epsilon', eta, sigma: delta from 1e-30 to 0.7."""

deterministic = settings(derandomize=True, deadline=None, max_examples=60)
epsilons = st.floats(0.0, 20.0)
etas = st.floats(-4.0, -1e-6).map(lambda exponent: 10.0**exponent)
sigmas = st.floats(-1.3, 3.0).map(lambda exponent: 10.0**exponent)


def centred(classes: int) -> Geometry:
    return Geometry(math.sqrt(2.0), math.sqrt(1.0 - 1.0 / classes), -1.0 / classes)


def raised(norm: float, product: float) -> Geometry:
    return Geometry(math.sqrt(2 * (norm**2 - product)), norm, product)


GEOMETRIES = [SIMPLEX, centred(3), centred(10), raised(1.0, 0.5), raised(2.0, -3.0), raised(1.0, 0.9)]


def divergence(epsilon: float, eta: float, sigma: float, geometry: Geometry = SIMPLEX) -> float:
    return float(log_divergences(np.array([epsilon]), eta, sigma, geometry)[0])


def trapezoid(exact: Any, function: Callable[[Any], Any], *, step: str, reach: int) -> Any:
    h = exact.number(step)
    return h * sum(function(i * h) for i in range(int(-reach / h), int(reach / h) + 1))


def given_the_other(exact: Any, epsilon: float, eta: float, sigma: float, geometry: Geometry) -> Any:
    """D3 = E_V of a scaled Gaussian-mechanism delta, U given V being Gaussian; with c = 0, r = 1 the textbook form."""
    mp = exact.mp
    e, eta, sigma = exact.number(epsilon), exact.number(eta), exact.number(sigma)
    square, product = exact.number(geometry.largest_norm) ** 2, exact.number(geometry.smallest_inner_product)
    s, cosine = mp.sqrt(square) / sigma, product / square
    left = s * mp.sqrt(1 - cosine**2)
    a, b = mp.expm1(e) * (1 - eta) / eta, mp.exp(e)

    def integrand(t: Any) -> Any:
        v = -s * s / 2 + s * t
        scale = cosine * s * t - cosine**2 * s * s / 2
        return mp.npdf(t - cosine * s) * exact.gaussian_delta(mp.log(b * mp.exp(v) + a) - scale, left)

    return trapezoid(exact, integrand, step="0.04", reach=30)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_d3_on_the_simplex_agrees_with_the_textbook_form_and_is_rounded_up(exact: Any, setting: Any) -> None:
    excess = exact.number(divergence(*setting)) - exact.mp.log(given_the_other(exact, *setting, SIMPLEX))
    assert 0 <= excess <= CLAIM


@pytest.mark.parametrize("geometry", GEOMETRIES[1:5], ids=str)
def test_d3_of_other_geometries_agrees_with_the_conditional_form(exact: Any, geometry: Geometry) -> None:
    for setting in SETTINGS[:3]:
        truth = exact.mp.log(given_the_other(exact, *setting, geometry))
        assert 0 <= exact.number(divergence(*setting, geometry)) - truth <= CLAIM, setting


@pytest.mark.parametrize("geometry", [*GEOMETRIES, centred(2)], ids=str)
def test_d3_is_the_two_dimensional_integral(hockey_stick: Any, geometry: Geometry) -> None:
    square, product = geometry.largest_norm**2, geometry.smallest_inner_product
    x = np.array([geometry.largest_norm, 0.0])
    y = np.array([product, math.sqrt(max(square**2 - product**2, 0.0))]) / geometry.largest_norm
    for epsilon, eta, sigma in [(1.0, 0.5, 1.0), (0.1, 0.3, 2.0), (2.0, 0.9, 0.7), (0.0, 0.2, 1.5)]:
        means = np.zeros((2, 2))
        weights = np.array([eta, 1.0 - eta])
        one, other = (means + np.outer([1.0, 0.0], symbol) for symbol in (x, y))
        brute = hockey_stick((one, weights), (other, weights), math.exp(epsilon), sigma, x - y)
        found = eta * math.exp(divergence(epsilon, eta, sigma, geometry))
        # What Phi's rounding leaves of a probability.
        assert found == pytest.approx(brute, rel=CLAIM, abs=1e-15)


@pytest.mark.parametrize("geometry", [*GEOMETRIES, centred(2)], ids=str)
def test_at_epsilon_zero_hiding_does_not_help(geometry: Geometry) -> None:
    distance = math.sqrt(2 * (geometry.largest_norm**2 - geometry.smallest_inner_product))
    for sigma in [0.3, 1.0, 5.0, 1e3]:
        assert divergence(0.0, 0.3, sigma, geometry) == pytest.approx(
            log_delta(0.0, distance / sigma), rel=0, abs=CLAIM
        )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 300.0])
def test_where_nobody_else_could_be_meant_d3_is_the_gaussian_mechanism(epsilon: float) -> None:
    for sigma in [0.05, 0.5, 3.0]:
        gaussian = log_delta(epsilon, math.sqrt(2.0) / sigma)
        slack = CLAIM * max(1.0, -gaussian)
        assert divergence(epsilon, 1.0, sigma) == pytest.approx(gaussian, rel=0, abs=slack)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_opposite_symbols_have_a_closed_form(exact: Any, setting: Any) -> None:
    """x = -y: U = -s^2/2 + s w and V = -s^2/2 - s w of one w ~ N(0, 1), and e^U - B e^V - A rises with w."""
    mp = exact.mp
    epsilon, eta, sigma = (exact.number(value) for value in setting)
    norm = exact.number(centred(2).largest_norm)
    s = norm / sigma
    a, b = mp.expm1(epsilon) * (1 - eta) / eta * mp.exp(s * s / 2), mp.exp(epsilon)
    w = mp.log((a + mp.sqrt(a * a + 4 * b)) / 2) / s
    closed = exact.phi(s - w) - b * exact.phi(-s - w) - a * mp.exp(-s * s / 2) * exact.phi(-w)
    assert 0 <= exact.number(divergence(*setting, centred(2))) - mp.log(closed) <= CLAIM


def test_equal_symbols_do_not_differ() -> None:
    assert divergence(0.5, 0.3, 1.0, Geometry(0.0, 1.0, 1.0)) == -math.inf
    assert divergence(0.0, 0.3, 1.0, Geometry(0.0, 0.0, 0.0)) == -math.inf


@deterministic
@given(epsilons, etas, sigmas, st.floats(0.1, 3.0), st.floats(-1.0, 0.99), st.floats(0.0, 1.0))
def test_the_smallest_inner_product_is_the_worst(
    epsilon: float, eta: float, sigma: float, norm: float, cosine: float, share: float
) -> None:
    larger = cosine + share * (0.99 - cosine)
    worst = divergence(epsilon, eta, sigma, raised(norm, cosine * norm**2))
    assert divergence(epsilon, eta, sigma, raised(norm, larger * norm**2)) <= worst + CLAIM * max(1.0, -worst)


@deterministic
@given(epsilons, etas, sigmas, st.floats(0.1, 3.0), st.floats(-1.0, 0.99), st.floats(1.0, 4.0))
def test_the_largest_norm_is_the_worst_at_a_fixed_inner_product(
    epsilon: float, eta: float, sigma: float, norm: float, cosine: float, factor: float
) -> None:
    product = cosine * norm**2
    worst = divergence(epsilon, eta, sigma, raised(factor * norm, product))
    assert divergence(epsilon, eta, sigma, raised(norm, product)) <= worst + CLAIM * max(1.0, -worst)


@deterministic
@given(epsilons, epsilons, etas, sigmas, st.sampled_from(GEOMETRIES))
def test_d3_falls_as_epsilon_grows(one: float, other: float, eta: float, sigma: float, geometry: Geometry) -> None:
    less, more = log_divergences(np.sort([one, other]), eta, sigma, geometry)
    assert more <= less + CLAIM * max(1.0, -less)


@deterministic
@given(epsilons, etas, sigmas, st.floats(1.0, 10.0), st.sampled_from(GEOMETRIES))
def test_d3_falls_as_noise_grows(epsilon: float, eta: float, sigma: float, factor: float, geometry: Geometry) -> None:
    bound = divergence(epsilon, eta, sigma, geometry)
    assert divergence(epsilon, eta, factor * sigma, geometry) <= bound + CLAIM * max(1.0, -bound)


@deterministic
@given(epsilons, etas, sigmas)
def test_d3_is_below_what_joint_convexity_alone_gives(epsilon: float, eta: float, sigma: float) -> None:
    inner = math.log1p(math.expm1(epsilon) / eta)
    plain = log_delta(inner, math.sqrt(2.0) / sigma)
    assert divergence(epsilon, eta, sigma) <= plain + CLAIM * max(1.0, -plain)


@pytest.mark.parametrize("geometry", [*GEOMETRIES, centred(2), raised(1.0, 1.0 - 1e-12)], ids=str)
@pytest.mark.parametrize("sigma", [5e-324, 1e-160, 1e-8, 1e-3, 1e8, 1e160, 1.7e308])
def test_extreme_noise_and_epsilon_never_overflow(geometry: Geometry, sigma: float) -> None:
    bounds = log_divergences(np.array([0.0, 5e-324, 1e-9, 1.0, 1e3, 1e7, 1e300]), 0.5, sigma, geometry)
    assert np.all(bounds <= 0.0)
    assert np.all(bounds[1:] <= bounds[:-1])


def test_many_epsilons_are_worth_as_much_as_one_at_a_time() -> None:
    many = np.linspace(0.0, 8.0, 3001)
    together = log_divergences(many, 0.5, 0.7, SIMPLEX)
    alone = [divergence(epsilon, 0.5, 0.7) for epsilon in many[::500]]
    assert together[::500] == pytest.approx(alone, rel=0, abs=1e-13)
