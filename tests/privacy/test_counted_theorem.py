"""The accountant for a server that counts the transmitters: every set enumerated, and choirs that attain the bound."""

import math
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.participation import Participation
from airchoir.privacy import Accountant, delta_for, epsilon_for, sigma_for
from airchoir.privacy.counted import Counted
from airchoir.privacy.gaussian import log_delta as gaussian_log_delta
from airchoir.privacy.paper import Paper
from airchoir.privacy.tight import Tight
from airchoir.rules import SIMPLEX, Geometry
from airchoir.rules.centred import centred_simplex

CLAIM = 1e-9
INSTRUMENT = 3e-9
"""What brute-force integration may be off, relatively."""

deterministic = settings(derandomize=True, deadline=None, max_examples=100)
epsilons = st.floats(0.0, 1000.0) | st.floats(-8.0, 1.0).map(lambda exponent: 10.0**exponent)
sigmas = st.floats(-1.5, 5.0).map(lambda exponent: 10.0**exponent)
laws = st.builds(Participation, st.integers(1, 2000), st.floats(-4.0, 0.0).map(lambda exponent: 10.0**exponent))


def log_delta(
    epsilon: float, sigma: float, law: Participation, geometry: Geometry = SIMPLEX, by: type[Accountant] = Counted
) -> float:
    return by().log_delta(epsilon, sigma, geometry=geometry, hidden=law)


def known(known_answers: dict[str, Any], start: str) -> list[list[float]]:
    (heading,) = (name for name in known_answers if name.startswith(start))
    return known_answers[heading]


def one_against(exact: Any, share: Any, distance: Any, alpha: Any) -> Any:
    """The divergence of (1 - share) N(0, 1) + share N(distance, 1) from N(0, 1) at alpha: two tails from where they cross."""
    mp = exact.mp
    crossing = mp.log((alpha - 1 + share) / share) / distance + distance / 2
    return (1 - share - alpha) * mp.ncdf(-crossing) + share * mp.ncdf(distance - crossing)


@pytest.mark.parametrize("clients", [1, 2, 3, 5])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 4.0])
def test_it_is_what_every_set_adds_up_to_where_the_others_send_client_1s_other_symbol(
    exact: Any, clients: int, p: float, epsilon: float
) -> None:
    """The server learns (|P_t|, sum). In one world all send the same symbol, in the other client 1 does not."""
    mp, chance_p, law = exact.mp, exact.number(p), Participation(clients, p)
    alpha = mp.exp(exact.number(epsilon))
    for sigma in (0.3, 1.0, 4.0):
        distance = mp.sqrt(2) / exact.number(sigma)
        total, reached = mp.mpf(0), mp.mpf(0)
        for size in range(1, clients + 1):
            sets = list(combinations(range(clients), size))
            chance = len(sets) * chance_p**size * (1 - chance_p) ** (clients - size)
            share = mp.mpf(sum(0 in chosen for chosen in sets)) / len(sets)
            total += chance
            reached += chance * one_against(exact, share, distance, alpha)
        truth = reached / total
        if truth > mp.mpf("1e-40"):  # below, 50 digits cancel
            excess = float(exact.number(log_delta(epsilon, sigma, law)) - mp.log(truth))
            assert 0.0 <= excess <= CLAIM


def counted_by_the_server(symbols: np.ndarray, p: float) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """For every size the sums of the sets of that size, with their chance (over all sizes)."""
    present = np.array(list(product((0, 1), repeat=len(symbols))))[1:]
    sizes = present.sum(axis=1)
    chance = p**sizes * (1.0 - p) ** (len(symbols) - sizes)
    chance /= chance.sum()
    return {m: (present[sizes == m] @ symbols, chance[sizes == m]) for m in range(1, len(symbols) + 1)}


@pytest.mark.parametrize("kind", ["one-hot", "beliefs"])
def test_no_random_choir_exceeds_the_bound_in_either_direction(hockey_stick: Callable[..., float], kind: str) -> None:
    rng = np.random.default_rng(21)
    worst = 0.0
    for index in range(16):
        classes, others = 2 + index % 2, int(rng.integers(1, 4))
        if kind == "one-hot":
            mine = np.eye(classes)[rng.permutation(classes)[:2]]
            rest = np.eye(classes)[rng.integers(0, classes, others)] if index % 4 else mine[[1] * others]
        else:
            mine, rest = rng.dirichlet(np.full(classes, 0.2), 2), rng.dirichlet(np.full(classes, 0.3), others)
        p, epsilon, sigma = rng.choice([0.05, 0.3, 0.8]), rng.choice([0.0, 0.3, 1.0]), rng.choice([0.5, 1.0, 2.0])
        bound = math.exp(log_delta(epsilon, sigma, Participation(others + 1, p)))
        for here, there in (mine, mine[::-1]):
            one, other = (counted_by_the_server(np.vstack([m, rest]), p) for m in (here, there))
            reached = sum(hockey_stick(one[m], other[m], math.exp(epsilon), sigma, here - there) for m in one)
            worst = max(worst, reached / bound)
            assert reached <= bound * (1 + INSTRUMENT) + 1e-14
    assert worst > (1 - 1e-8 if kind == "one-hot" else 0.3), "this test sees nothing"


def test_known_sigmas(known_answers: dict[str, Any]) -> None:
    for p, sigma in [*known(known_answers, "counted_sigma"), (0.9, 5.6816)]:
        found = sigma_for(1.0, 1e-6, accountant="counted", geometry=SIMPLEX, hidden=Participation(20, p))
        assert found == pytest.approx(sigma, rel=1e-11 if p != 0.9 else 1e-5)


def test_what_the_other_theorems_noise_is_worth_to_a_server_that_counts() -> None:
    law = Participation(20, 0.5)
    for accountant, delta in (("paper", 4.6e-6), ("tight", 9.1e-5)):
        sigma = sigma_for(1.0, 1e-6, accountant=accountant, geometry=SIMPLEX, hidden=law)
        found = delta_for(1.0, sigma, accountant="counted", geometry=SIMPLEX, hidden=law)
        assert found == pytest.approx(delta, rel=0.011)  # given to two digits


@deterministic
@given(epsilons, sigmas, laws)
def test_it_lies_between_theorem_2_and_theorem_1(epsilon: float, sigma: float, law: Participation) -> None:
    found = log_delta(epsilon, sigma, law)
    slack = 1e-10 + 1e-12 * abs(found)
    theorem_1 = gaussian_log_delta(epsilon, SIMPLEX.sensitivity / sigma)
    assert log_delta(epsilon, sigma, law, by=Paper) - slack <= found <= theorem_1 + slack


@deterministic
@given(epsilons, sigmas, st.integers(1, 100_000))
def test_full_participation_and_one_client_are_theorem_1(epsilon: float, sigma: float, clients: int) -> None:
    theorem_1 = gaussian_log_delta(epsilon, SIMPLEX.sensitivity / sigma)
    assert log_delta(epsilon, sigma, Participation(clients, 1.0)) == theorem_1
    assert log_delta(epsilon, sigma, Participation(1, 0.3)) == pytest.approx(theorem_1, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize("share", [1e-4, 1e-8])
def test_rare_participation_approaches_theorem_2(share: float) -> None:
    """|P_t| is then 1, save with probability below n p / 2, and eta is 1/n."""
    for clients in (2, 20, 2000):
        law = Participation(clients, share / clients)
        for epsilon, sigma in ((0.5, 0.5), (2.0, 0.3)):
            paper, everyone = (
                log_delta(epsilon, sigma, law, by=Paper),
                gaussian_log_delta(epsilon, math.sqrt(2) / sigma),
            )
            found = log_delta(epsilon, sigma, law)
            assert paper - 1e-9 <= found <= math.log(math.exp(paper) + share * math.exp(everyone))


@pytest.mark.parametrize(
    ("clients", "p"), [(20, 0.5), (700, 0.3), (3000, 0.02), (100_000, 0.003), (100_000, 1e-4), (100_000, 0.5)]
)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("target", [1e-5, 1e-12])
def test_many_clients_agree_with_the_sum_over_every_size_in_50_digits(
    exact: Any, clients: int, p: float, epsilon: float, target: float
) -> None:
    """Sizes less likely than 1e-30 of the likeliest are left out of the truth."""
    mp, law = exact.mp, Participation(clients, p)
    sigma = sigma_for(epsilon, target, accountant="counted", geometry=SIMPLEX, hidden=law)
    chance_p = exact.number(p)
    odds = chance_p / (1 - chance_p)
    mode = max(int((clients + 1) * p), 1)
    weights = {mode: mp.mpf(1)}
    for direction in (1, -1):
        size, weight = mode, mp.mpf(1)
        while weight > mp.mpf("1e-30") and 1 <= size + direction <= clients:
            ratio = (
                (clients - size) / mp.mpf(size + 1) * odds
                if direction > 0
                else size / mp.mpf(clients - size + 1) / odds
            )
            size, weight = size + direction, weight * ratio
            weights[size] = weight
    if len(weights) > 600:  # a smooth bell: a coarser sum of it is as exact
        weights = {size: weight for size, weight in weights.items() if size % 20 == 0}
    total, distance = sum(weights.values()), mp.sqrt(2) / exact.number(sigma)
    alpha = mp.exp(exact.number(epsilon))
    truth = sum(w * one_against(exact, mp.mpf(m) / clients, distance, alpha) for m, w in weights.items()) / total
    assert float(truth) == pytest.approx(target, rel=1e-6)
    excess = float(exact.number(log_delta(epsilon, sigma, law)) - mp.log(truth))
    assert 0.0 <= excess <= CLAIM


@pytest.mark.parametrize("law", [Participation(100_000, 1e-4), Participation(100_000, 0.5), Participation(2, 0.5)])
def test_delta_falls_with_sigma_and_with_epsilon_and_is_always_a_number(law: Participation) -> None:
    grid = np.array([0.0, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0, 300.0, 699.0, 700.0, 709.0, 710.0, 711.0, 800.0, 1000.0])
    noises = [0.0, 1e-4, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4, 1e8]
    logs = np.array([Counted().log_deltas(grid, sigma, geometry=SIMPLEX, hidden=law) for sigma in noises])
    assert not np.isnan(logs).any()
    assert (logs <= 0.0).all()
    with np.errstate(invalid="ignore"):  # -inf less -inf
        slack = 1e-10 + 1e-12 * np.where(np.isinf(logs), 0.0, np.abs(logs))
        assert not (np.diff(logs, axis=0) > slack[1:]).any(), "more noise, more delta"
        assert not (np.diff(logs, axis=1) > slack[:, 1:]).any(), "a weaker promise, more delta"


@pytest.mark.parametrize("law", [Participation(20, 0.3), Participation(100_000, 1e-4)])
def test_sigma_delta_and_epsilon_are_each_others_inverse(law: Participation) -> None:
    terms: dict[str, Any] = {"accountant": "counted", "geometry": SIMPLEX, "hidden": law}
    for epsilon, target in product((0.1, 8.0, 1000.0), (1e-5, 1e-15)):
        sigma = sigma_for(epsilon, target, **terms)
        assert delta_for(epsilon, sigma, **terms) <= target
        assert log_delta(epsilon, sigma * (1 - 1e-9), law) > math.log(target)
        assert epsilon_for(target, sigma, **terms) == pytest.approx(epsilon, rel=1e-9)


@deterministic
@given(epsilons, sigmas, laws)
def test_centring_changes_nothing_because_only_distances_count(
    epsilon: float, sigma: float, law: Participation
) -> None:
    assert log_delta(epsilon, sigma, law, centred_simplex(3)) == log_delta(epsilon, sigma, law)


@deterministic
@given(epsilons, sigmas, laws)
def test_always_on_leaves_nothing_to_count(epsilon: float, sigma: float, law: Participation) -> None:
    always_on = Participation(law.clients, law.probability, at_least=0)
    for geometry in (SIMPLEX, centred_simplex(3)):
        expected = log_delta(epsilon, sigma, always_on, geometry, by=Tight)
        assert log_delta(epsilon, sigma, always_on, geometry) == expected


def test_it_says_which_theorem_ran() -> None:
    assert Counted().theorem(Participation(20, 1.0)) == "Theorem 1"
    assert Counted().theorem(Participation(20, 0.5)) == "Theorem 2 given |P_t|"
    assert Counted().theorem(Participation(20, 0.5, at_least=0)) == Tight().theorem(Participation(20, 0.5, at_least=0))
