"""The paper's accountant: Theorem 2 where sampling is hidden, Theorem 1 where it is not."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.participation import Participation
from airchoir.privacy.gaussian import log_delta as gaussian_log_delta
from airchoir.privacy.paper import Paper
from airchoir.privacy.sampling import inner_epsilons
from airchoir.rules import SIMPLEX, Geometry

EPSILONS = [0.0, 1e-6, 0.1, 1.0, 8.0, 100.0, 700.0, 709.0, 710.0, 800.0, 1000.0]
LAWS = [
    Participation(1, 1.0),
    Participation(2, 0.5),
    Participation(3, 1e-6),
    Participation(20, 0.1),
    Participation(20, 0.9),
    Participation(1000, 1e-6),
    Participation(1000, 0.999999),
    Participation(100_000, 1e-6),
    Participation(20, 1e-6, at_least=0),
    Participation(20, 1e-11, at_least=0),
]
CLAIM = 1e-12

deterministic = settings(derandomize=True, deadline=None, max_examples=100)
epsilons = st.floats(0.0, 1000.0)
sigmas = st.floats(-1.5, 6.0).map(lambda exponent: 10.0**exponent)
laws = st.builds(
    Participation,
    st.integers(1, 1000),
    st.floats(-6.0, 0.0).map(lambda exponent: 10.0**exponent),
    at_least=st.integers(0, 1),
)


def log_delta(epsilon: float, sigma: float, law: Participation, geometry: Geometry = SIMPLEX) -> float:
    return Paper().log_delta(epsilon, sigma, geometry=geometry, hidden=law)


@pytest.mark.parametrize("epsilon", [*EPSILONS, 5e-324, 1e-300, 699.9, 709.78, 1e5, 1e308])
def test_inner_epsilon_agrees_with_50_digits_and_never_overflows(exact: Any, epsilon: float) -> None:
    for eta in [1e-12, 1e-6, 0.11384, 0.5, 0.999999, 1 - 2**-53]:
        if epsilon < 1e6:
            truth = exact.inner_epsilon(epsilon, exact.number(eta))
        else:
            truth = exact.number(epsilon) - exact.mp.log(eta)
        assert inner_epsilons(np.array([epsilon]), eta)[0] == pytest.approx(float(truth), rel=4 * math.ulp(1.0), abs=0)


def test_inner_epsilon_of_infinity_is_infinite() -> None:
    assert inner_epsilons(np.array([math.inf]), 0.5)[0] == math.inf


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_delta_is_never_below_the_exact_one_and_agrees_to_12_digits(exact: Any, law: Participation) -> None:
    for epsilon in EPSILONS:
        inner = float(exact.inner_epsilon(epsilon, exact.eta(law)))
        for quantile in [-7.5, -4.0, -1.0, 0.0, 1.5]:
            mu = quantile + math.hypot(quantile, math.sqrt(2 * inner))
            sigma = math.sqrt(2.0) / (mu if mu > 0 else 1e-9)
            excess = exact.number(log_delta(epsilon, sigma, law)) - exact.mp.log(exact.delta(epsilon, sigma, law))
            assert 0 <= excess <= CLAIM, (epsilon, sigma, float(excess))


@deterministic
@given(epsilons, sigmas)
def test_one_client_is_theorem_1(epsilon: float, sigma: float) -> None:
    theorem_1 = gaussian_log_delta(epsilon, SIMPLEX.sensitivity / sigma)
    assert log_delta(epsilon, sigma, Participation(1, 0.3)) == theorem_1


@deterministic
@given(epsilons, sigmas, st.integers(1, 1000))
def test_full_participation_is_theorem_1(epsilon: float, sigma: float, clients: int) -> None:
    theorem_1 = gaussian_log_delta(epsilon, SIMPLEX.sensitivity / sigma)
    assert log_delta(epsilon, sigma, Participation(clients, 1.0)) == theorem_1


@deterministic
@given(epsilons, sigmas, laws)
def test_sampling_never_costs_delta(epsilon: float, sigma: float, law: Participation) -> None:
    everyone = log_delta(epsilon, sigma, Participation(law.clients, 1.0))
    assert log_delta(epsilon, sigma, law) <= everyone + CLAIM * max(1.0, -everyone)


@deterministic
@given(sigmas, laws)
def test_delta_at_epsilon_zero_is_eta_times_that_of_theorem_1(sigma: float, law: Participation) -> None:
    everyone = log_delta(0.0, sigma, Participation(law.clients, 1.0))
    assert log_delta(0.0, sigma, law) == pytest.approx(math.log(law.inclusion) + everyone, rel=0, abs=CLAIM)


@deterministic
@given(epsilons, sigmas, laws, st.sampled_from([0.25, 0.5, 2.0, 8.0]))
def test_only_the_ratio_of_sensitivity_to_noise_matters(
    epsilon: float, sigma: float, law: Participation, scale: float
) -> None:
    scaled = Geometry(SIMPLEX.sensitivity * scale, SIMPLEX.largest_norm * scale, 0.0)
    assert log_delta(epsilon, sigma * scale, law, scaled) == log_delta(epsilon, sigma, law)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 1000.0])
def test_no_noise_gives_away_as_much_as_there_are_answers_with_the_client(epsilon: float) -> None:
    law = Participation(20, 0.1)
    assert log_delta(epsilon, 0.0, law) == pytest.approx(math.log(0.11384032599155), rel=0, abs=CLAIM)


def test_infinite_epsilon_asks_for_no_delta() -> None:
    assert log_delta(math.inf, 0.0, Participation(20, 0.1)) == -math.inf


@pytest.mark.parametrize("probability", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("sigma", [0.7, 1.5])
def test_no_choir_of_two_exceeds_theorem_2(probability: float, sigma: float) -> None:
    """Two classes; the other client votes for class 0, and this one changes its vote: integrated on a grid in full."""
    steps = np.arange(-8.0, 9.0, 0.05)
    first, second = np.meshgrid(steps, steps, indexing="ij")

    def density(mine: tuple[float, float]) -> np.ndarray:
        alone, other = probability * (1 - probability), np.array([1.0, 0.0])
        symbol = np.array(mine)
        worlds = [(alone, symbol), (alone, other), (probability**2, symbol + other)]
        total = sum(weight for weight, _ in worlds)
        squares = [(weight / total, (first - m[0]) ** 2 + (second - m[1]) ** 2) for weight, m in worlds]
        return sum(w * np.exp(-square / (2 * sigma**2)) for w, square in squares) / (2 * np.pi * sigma**2)

    agree, differ = density((1.0, 0.0)), density((0.0, 1.0))
    for epsilon in [0.0, 0.3, 1.0, 2.0]:
        bound = math.exp(log_delta(epsilon, sigma, Participation(2, probability)))
        for one, other in [(agree, differ), (differ, agree)]:
            assert np.maximum(one - math.exp(epsilon) * other, 0.0).sum() * 0.05**2 <= bound + 1e-6


def test_it_says_which_theorem_ran() -> None:
    assert Paper().theorem(Participation(20, 1.0)) == "Theorem 1"
    assert Paper().theorem(Participation(1, 0.3)) == "Theorem 1"
    assert Paper().theorem(Participation(20, 0.3)) == "Theorem 2"
    assert Paper().theorem(Participation(1, 0.3, at_least=0)) == "Theorem 2"


def test_symbols_longer_than_they_differ_are_refused_where_the_proof_does_not_cover_them() -> None:
    long = Geometry(sensitivity=1.0, largest_norm=2.0, smallest_inner_product=0.0)
    assert log_delta(1.0, 1.0, Participation(20, 1.0), long) < 0.0
    with pytest.raises(ValueError, match=r"Theorem 2 .* norm 2 .* at most 1; use participation 1"):
        log_delta(1.0, 1.0, Participation(20, 0.5), long)
