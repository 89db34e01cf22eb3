"""What holds when the server counts the transmitters: exact for one query, against enumeration over every set."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.participation import Participation
from airchoir.privacy import sigma_for
from airchoir.privacy.counted import Counted
from airchoir.privacy.paper import Paper
from airchoir.privacy.tight import Tight
from airchoir.rules import SIMPLEX, Geometry

ROUNDING = 2e-15
"""What the rounding of Phi leaves of a probability in the brute-force integrals."""

deterministic = settings(derandomize=True, deadline=None, max_examples=60)


def log_delta(epsilon: float, sigma: float, law: Participation, geometry: Geometry = SIMPLEX) -> float:
    return Counted().log_delta(epsilon, sigma, geometry=geometry, hidden=law)


def counting_servers_delta(
    hockey_stick: Any, choir: np.ndarray, changed: np.ndarray, law: Participation, *, epsilon: float, sigma: float
) -> float:
    """E over |P_t| of the larger direction's delta of the sum given |P_t|, over every set."""
    clients, p = len(choir), law.probability
    possible = sum(math.comb(clients, m) * p**m * (1 - p) ** (clients - m) for m in range(law.at_least, clients + 1))
    directions = np.zeros(2)
    for size in range(max(1, law.at_least), clients + 1):
        sets = np.array(
            [[i in chosen for i in range(clients)] for chosen in itertools.combinations(range(clients), size)]
        )
        weights = np.full(len(sets), 1.0 / len(sets))
        one, other, along = (sets @ choir, weights), (sets @ changed, weights), choir[0] - changed[0]
        chance = math.comb(clients, size) * p**size * (1 - p) ** (clients - size) / possible
        for direction, (first, second) in enumerate([(one, other), (other, one)]):
            directions[direction] += chance * hockey_stick(first, second, math.exp(epsilon), sigma, along)
    return float(directions.max())


def test_known_sigmas(known_answers: Any) -> None:
    for p, known in known_answers["counted_sigma n=20 epsilon=1 delta=1e-6 [participation, sigma]"]:
        sigma = sigma_for(1.0, 1e-6, accountant="counted", geometry=SIMPLEX, hidden=Participation(20, p))
        assert sigma == pytest.approx(known, rel=1e-12)


@pytest.mark.parametrize(("sigma", "known"), [(3.9989322364912, 4.6e-6), (3.213057541, 9.1e-5)])
def test_the_other_theorems_noise_does_not_keep_the_promise_once_transmitters_are_counted(
    sigma: float, known: float
) -> None:
    assert math.exp(log_delta(1.0, sigma, Participation(20, 0.5))) == pytest.approx(known, rel=0.02)


@pytest.mark.parametrize(("clients", "p"), [(20, 0.5), (5, 0.1), (300, 0.02), (3, 0.999), (1500, 0.5), (4000, 0.9)])
@pytest.mark.parametrize(("epsilon", "sigma"), [(1.0, 3.0), (0.0, 2.0), (0.1, 10.0), (8.0, 0.5), (0.3, 25.0)])
def test_delta_is_the_mean_over_the_number_of_transmitters(
    exact: Any, clients: int, p: float, epsilon: float, sigma: float
) -> None:
    """In 50 digits, term by term; from 512 likely sizes on the library takes a quadrature instead."""
    mp, q = exact.mp, 1 - exact.number(p)
    odds = exact.number(p) / q
    chance, total, weight = q**clients, exact.number(0), exact.number(0)
    for size in range(1, clients + 1):
        chance *= odds * (clients - size + 1) / size
        weight += chance
        if chance > 1e-40:
            eta = exact.number(size) / clients
            total += (
                chance * eta * exact.gaussian_delta(exact.inner_epsilon(epsilon, eta), mp.sqrt(2) / exact.number(sigma))
            )
    excess = exact.number(log_delta(epsilon, sigma, Participation(clients, p))) - mp.log(total / weight)
    assert excess >= 0
    assert excess <= 2e-11 or total / weight < 1e-40  # sizes rarer than 1e-60 are rounded up to all


@pytest.mark.parametrize(
    ("epsilon", "sigma", "p"), [(0.5, 1.0, 0.5), (0.1, 2.0, 0.3), (1.0, 0.7, 0.8), (0.0, 1.5, 0.1)]
)
def test_the_bound_is_attained_by_all_others_sending_what_the_client_might(
    hockey_stick: Any, epsilon: float, sigma: float, p: float
) -> None:
    law = Participation(5, p)
    choir, changed = np.eye(2)[[0, 1, 1, 1, 1]], np.eye(2)[[1, 1, 1, 1, 1]]
    found = counting_servers_delta(hockey_stick, choir, changed, law, epsilon=epsilon, sigma=sigma)
    assert found == pytest.approx(math.exp(log_delta(epsilon, sigma, law)), rel=1e-10)


def test_no_mechanism_exceeds_the_bound(hockey_stick: Any) -> None:
    rng = np.random.default_rng(0)
    for trial in range(40):
        clients = int(rng.integers(2, 5))
        alphabet = np.eye(2) if trial % 2 else rng.dirichlet([0.5, 0.5], size=4)
        choir = alphabet[rng.integers(0, len(alphabet), clients)]
        choir[0], changed = alphabet[0], choir.copy()
        changed[0] = alphabet[1]
        law = Participation(clients, float(rng.choice([0.1, 0.5, 0.8])))
        epsilon, sigma = float(rng.choice([0.0, 0.2, 1.0])), float(rng.uniform(0.4, 2.0))
        found = counting_servers_delta(hockey_stick, choir, changed, law, epsilon=epsilon, sigma=sigma)
        assert found <= math.exp(log_delta(epsilon, sigma, law)) + ROUNDING, (choir, changed, law, epsilon, sigma)


def test_rounds_of_at_least_two_are_covered_too(hockey_stick: Any) -> None:
    law = Participation(4, 0.4, at_least=2)
    choir, changed = np.eye(2)[[0, 1, 1, 1]], np.eye(2)[[1, 1, 1, 1]]
    found = counting_servers_delta(hockey_stick, choir, changed, law, epsilon=0.5, sigma=1.0)
    assert found == pytest.approx(math.exp(log_delta(0.5, 1.0, law)), rel=1e-10)


@pytest.mark.parametrize("p", [0.01, 0.5, 0.999])
def test_it_lies_between_theorem_2_and_theorem_1(p: float) -> None:
    for clients in [2, 20, 5000, 100_000]:
        law = Participation(clients, p)
        paper = Paper().log_delta(1.0, 3.0, geometry=SIMPLEX, hidden=law)
        everyone = Paper().log_delta(1.0, 3.0, geometry=SIMPLEX, hidden=Participation(1, 1.0))
        assert paper < log_delta(1.0, 3.0, law) < everyone


def test_with_ever_more_clients_counting_tells_ever_less() -> None:
    laws = [Participation(clients, 0.5) for clients in (10, 100, 1000, 10_000, 100_000)]
    gaps = [log_delta(1.0, 4.0, law) - Paper().log_delta(1.0, 4.0, geometry=SIMPLEX, hidden=law) for law in laws]
    assert all(more > less for more, less in itertools.pairwise(gaps))
    assert 0.0 < gaps[-1] < 1e-3


@deterministic
@given(st.floats(0.0, 20.0), st.floats(-1.3, 3.0).map(lambda e: 10.0**e), st.integers(1, 300), st.floats(0.001, 1.0))
def test_always_on_there_is_nothing_to_count(epsilon: float, sigma: float, clients: int, p: float) -> None:
    law = Participation(clients, p, at_least=0)
    assert log_delta(epsilon, sigma, law) == Tight().log_delta(epsilon, sigma, geometry=SIMPLEX, hidden=law)
    assert Counted().theorem(law) == Tight().theorem(law)


@deterministic
@given(st.floats(0.0, 20.0), st.floats(-1.3, 3.0).map(lambda e: 10.0**e), st.integers(1, 100_000))
def test_full_participation_is_theorem_1(epsilon: float, sigma: float, clients: int) -> None:
    hidden = Participation(clients, 1.0)
    assert log_delta(epsilon, sigma, hidden) == Paper().log_delta(epsilon, sigma, geometry=SIMPLEX, hidden=hidden)
    assert Counted().theorem(hidden) == "Theorem 1"


@deterministic
@given(
    st.floats(0.0, 20.0),
    st.floats(0.0, 20.0),
    st.floats(-1.3, 3.0).map(lambda e: 10.0**e),
    st.floats(1.0, 10.0),
    st.builds(Participation, st.integers(2, 5000), st.floats(-4.0, -0.01).map(lambda e: 10.0**e)),
)
def test_delta_falls_with_epsilon_and_noise(
    one: float, other: float, sigma: float, factor: float, law: Participation
) -> None:
    less, more = sorted([one, other])
    bound = log_delta(less, sigma, law)
    assert log_delta(more, sigma, law) <= bound + 1e-10 * max(1.0, -bound)
    assert log_delta(less, factor * sigma, law) <= bound + 1e-10 * max(1.0, -bound)


def test_symbols_longer_than_they_differ_are_covered() -> None:
    longer = Geometry(math.sqrt(2.0), 5.0, 20.0)
    assert log_delta(1.0, 3.0, Participation(20, 0.5), longer) == log_delta(1.0, 3.0, Participation(20, 0.5))


def test_no_noise_and_infinite_epsilon() -> None:
    law = Participation(20, 0.1)
    assert log_delta(1000.0, 0.0, law) == pytest.approx(math.log(law.inclusion), rel=1e-12)
    assert log_delta(math.inf, 0.0, law) == -math.inf
