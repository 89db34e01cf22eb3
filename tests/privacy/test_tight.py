"""The tighter theorem: its coupling in exact rationals, its bound against whole mechanisms, its order and its limits."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.participation import Participation
from airchoir.privacy import delta_for, sigma_for
from airchoir.privacy.counted import Counted
from airchoir.privacy.paper import Paper
from airchoir.privacy.tight import Tight, others_differ
from airchoir.rules import SIMPLEX, Geometry

CLAIM = 1e-9
"""The 9 digits that are promised."""
ROUNDING = 2e-15
"""What the rounding of Phi leaves of a probability in the brute-force integrals."""

deterministic = settings(derandomize=True, deadline=None, max_examples=100)
epsilons = st.floats(0.0, 20.0)
sigmas = st.floats(-1.3, 3.0).map(lambda exponent: 10.0**exponent)
laws = st.builds(
    Participation,
    st.one_of(st.integers(1, 30), st.integers(31, 100_000)),
    st.floats(-4.0, 0.0).map(lambda exponent: 10.0**exponent),
    at_least=st.integers(0, 1),
)


def log_delta(epsilon: float, sigma: float, law: Participation, geometry: Geometry = SIMPLEX) -> float:
    return Tight().log_delta(epsilon, sigma, geometry=geometry, hidden=law)


def centred(classes: int) -> Geometry:
    return Geometry(math.sqrt(2.0), math.sqrt(1.0 - 1.0 / classes), -1.0 / classes)


# --- the coupling, without rounding -----------------------------------------------------------------------------------

PROBABILITIES = [Fraction(1, 1000), Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(5, 7), Fraction(99, 100)]


def survival(others: int, p: Fraction) -> list[Fraction]:
    """P(K >= j) for j = 0, ..., others + 1."""
    law = [math.comb(others, k) * p**k * (1 - p) ** (others - k) for k in range(others + 1)]
    return [sum(law[j:], Fraction(0)) for j in range(others + 2)]


@pytest.mark.parametrize("others", [*range(1, 12), 30])
@pytest.mark.parametrize("p", PROBABILITIES, ids=str)
def test_given_not_empty_there_are_as_many_others_or_one_more(others: int, p: Fraction) -> None:
    usual = survival(others, p)
    not_empty = [min(Fraction(1), tail / usual[1]) for tail in usual]
    assert all(few <= many for few, many in zip(usual, not_empty, strict=True))  # K <= K'
    assert all(more <= less for more, less in zip(not_empty[1:], usual, strict=False))  # K' <= K + 1


@pytest.mark.parametrize("others", [*range(1, 12), 30])
@pytest.mark.parametrize("p", PROBABILITIES, ids=str)
def test_the_others_differ_as_often_as_their_numbers_do_on_average(others: int, p: Fraction) -> None:
    usual = survival(others, p)
    not_empty = [min(Fraction(1), tail / usual[1]) for tail in usual]
    rho = sum(not_empty[1:], Fraction(0)) - sum(usual[1:], Fraction(0))  # E K' - E K
    empty = (1 - p) ** others
    assert rho == others * p * empty / (1 - empty)
    assert others_differ(Participation(others + 1, float(p))) == pytest.approx(float(rho), rel=1e-12)


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(5, 7)], ids=str)
def test_nested_sets_have_the_right_laws(p: Fraction) -> None:
    """Prefixes of one random permutation, of coupled lengths: the shorter is any set, the longer any set but the empty."""
    others = 3
    usual = survival(others, p)
    quantiles = sorted({*usual, *(min(Fraction(1), tail / usual[1]) for tail in usual)})
    short: dict[frozenset[int], Fraction] = {}
    long: dict[frozenset[int], Fraction] = {}
    for low, high in itertools.pairwise(quantiles):
        few = sum(tail >= high for tail in usual[1:])  # K at every quantile level in (low, high)
        many = sum(min(Fraction(1), tail / usual[1]) >= high for tail in usual[1:])
        assert few <= many <= few + 1
        for order in itertools.permutations(range(others)):
            for law, size in ((short, few), (long, many)):
                members = frozenset(order[:size])
                law[members] = law.get(members, Fraction(0)) + (high - low) / math.factorial(others)
    for members, probability in short.items():
        assert probability == p ** len(members) * (1 - p) ** (others - len(members))
    assert frozenset() not in long
    for members, probability in long.items():
        assert probability == short[members] / usual[1]


def test_nobody_else_nobody_differs() -> None:
    assert others_differ(Participation(1, 0.3)) == 0.0
    assert others_differ(Participation(20, 0.3, at_least=0)) == 0.0


def test_the_others_differ_for_certain_as_participation_vanishes() -> None:
    assert others_differ(Participation(20, 1e-12)) == pytest.approx(1.0, rel=1e-10)
    assert others_differ(Participation(100_000, 0.5)) == 0.0


# --- known answers ----------------------------------------------------------------------------------------------------


def test_known_sigmas_over_the_air(known_answers: Any) -> None:
    for p, known in known_answers["tight_sigma n=20 epsilon=1 delta=1e-6 [participation, sigma]"]:
        sigma = sigma_for(1.0, 1e-6, accountant="tight", geometry=SIMPLEX, hidden=Participation(20, p))
        assert sigma == pytest.approx(known, rel=0, abs=6e-10)  # given to 9 decimals


@pytest.mark.parametrize("clients", [1, 20, 100_000])
def test_known_sigmas_always_on_whatever_the_number_of_clients(known_answers: Any, clients: int) -> None:
    known_pairs = known_answers["always_on_tight_sigma any n, epsilon=1 delta=1e-6 [participation, sigma]"]
    for p, known in [*known_pairs, (0.1, 1.4456111239), (0.9, 5.3606365979)]:
        hidden = Participation(clients, p, at_least=0)
        sigma = sigma_for(1.0, 1e-6, accountant="tight", geometry=SIMPLEX, hidden=hidden)
        assert sigma == pytest.approx(known, rel=1e-10 if known in (1.4456111239, 5.3606365979) else 1e-12)


@pytest.mark.parametrize(("classes", "known"), [(2, 2.97), (10, 3.17), (100, 3.21)])
def test_centred_symbols_need_less_noise(classes: int, known: float) -> None:
    sigma = sigma_for(1.0, 1e-6, accountant="tight", geometry=centred(classes), hidden=Participation(20, 0.5))
    assert round(sigma, 2) == known


# --- whole mechanisms never exceed it ---------------------------------------------------------------------------------


def all_sets(clients: int, law: Participation) -> Iterator[tuple[np.ndarray, float]]:
    """Who is present, and how likely, by enumeration."""
    p = law.probability
    possible = 1.0 - (1.0 - p) ** clients if law.at_least == 1 else 1.0
    for present in itertools.product([False, True], repeat=clients):
        size = sum(present)
        if size >= law.at_least:
            yield np.array(present), p**size * (1.0 - p) ** (clients - size) / possible


def mechanism(symbols: np.ndarray, law: Participation) -> tuple[np.ndarray, np.ndarray]:
    """The mixture of the sum's means over all participant sets."""
    sets = list(all_sets(len(symbols), law))
    means = np.array([present @ symbols for present, _ in sets])
    return means, np.array([probability for _, probability in sets])


def exact_delta(
    hockey_stick: Any, choir: np.ndarray, changed: np.ndarray, law: Participation, *, epsilon: float, sigma: float
) -> float:
    """The larger of both directions' delta, integrated in full."""
    one, other, along = mechanism(choir, law), mechanism(changed, law), choir[0] - changed[0]
    alpha = math.exp(epsilon)
    return max(
        hockey_stick(one, other, alpha, sigma, along),
        hockey_stick(other, one, alpha, sigma, along),
    )


def random_choir(rng: np.random.Generator, clients: int, classes: int, *, beliefs: bool) -> tuple[Any, Any]:
    def draw(count: int) -> np.ndarray:
        if beliefs:
            return rng.dirichlet(np.full(classes, rng.choice([0.1, 0.5, 1.0])), size=count)
        return np.eye(classes)[rng.integers(0, classes, count)]

    choir = draw(clients)
    changed = choir.copy()
    while np.array_equal(changed[0], choir[0]):
        changed[0] = draw(1)[0]
    return choir, changed


@pytest.mark.parametrize("at_least", [0, 1])
@pytest.mark.parametrize(("classes", "clients", "trials"), [(2, 3, 80), (2, 5, 25), (3, 2, 25), (3, 3, 10)])
def test_no_mechanism_on_the_simplex_exceeds_the_bound(
    hockey_stick: Any, at_least: int, classes: int, clients: int, trials: int
) -> None:
    rng = np.random.default_rng([at_least, classes, clients])
    for trial in range(trials):
        choir, changed = random_choir(rng, clients, classes, beliefs=trial % 2 == 0)
        law = Participation(clients, float(rng.choice([0.1, 0.3, 0.5, 0.8])), at_least=at_least)
        epsilon, sigma = float(rng.choice([0.0, 0.1, 0.5, 1.0])), float(rng.uniform(0.4, 2.0))
        exact = exact_delta(hockey_stick, choir, changed, law, epsilon=epsilon, sigma=sigma)
        assert exact <= math.exp(log_delta(epsilon, sigma, law)) + ROUNDING, (choir, changed, law, epsilon, sigma)


@pytest.mark.parametrize("at_least", [0, 1])
def test_no_mechanism_of_any_geometry_exceeds_the_bound(hockey_stick: Any, at_least: int) -> None:
    """Symbols from random finite sets in the plane, longer than they differ included: any set has a geometry."""
    rng = np.random.default_rng(at_least)
    longer = 0
    for _ in range(40):
        alphabet = rng.normal(0.0, 1.0, 2) * rng.choice([0.0, 3.0]) + rng.normal(0.0, 1.0, (4, 2))
        products = alphabet @ alphabet.T
        distances = np.linalg.norm(alphabet[:, None] - alphabet[None, :], axis=-1)
        geometry = Geometry(float(distances.max()), float(np.sqrt(np.diag(products).max())), float(products.min()))
        longer += geometry.largest_norm > geometry.sensitivity
        choir = alphabet[rng.integers(0, 4, 4)]
        choir[0], changed = alphabet[0], choir.copy()
        changed[0] = alphabet[1]
        law = Participation(4, float(rng.choice([0.1, 0.4, 0.8])), at_least=at_least)
        epsilon, sigma = float(rng.choice([0.0, 0.3, 1.0])), float(rng.uniform(0.7, 3.0)) * geometry.largest_norm
        exact = exact_delta(hockey_stick, choir, changed, law, epsilon=epsilon, sigma=sigma)
        assert exact <= math.exp(log_delta(epsilon, sigma, law, geometry)) + ROUNDING, (alphabet, choir, law, epsilon)
    assert longer >= 5


@pytest.mark.parametrize("at_least", [0, 1])
@pytest.mark.parametrize(("epsilon", "sigma", "p"), [(1.0, 0.8, 0.5), (0.2, 1.5, 0.1), (0.5, 0.6, 0.8)])
def test_no_vote_of_the_others_exceeds_the_bound(
    hockey_stick: Any, at_least: int, epsilon: float, sigma: float, p: float
) -> None:
    """Three clients and three classes, every way in which the others can vote: the worst are among them."""
    law = Participation(3, p, at_least=at_least)
    bound = math.exp(log_delta(epsilon, sigma, law))
    ratios = []
    for others in itertools.product(range(3), repeat=2):
        choir, changed = np.eye(3)[[0, *others]], np.eye(3)[[1, *others]]
        ratios.append(exact_delta(hockey_stick, choir, changed, law, epsilon=epsilon, sigma=sigma) / bound)
    assert max(ratios) <= 1.0 + ROUNDING / bound
    assert max(ratios) >= (0.8 if at_least else 1.0 - 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "sigma", "p"), [(1.0, 1.0, 0.5), (0.3, 2.0, 0.1), (0.0, 1.5, 0.3), (2.0, 0.6, 0.8)]
)
def test_always_on_the_bound_is_attained(hockey_stick: Any, epsilon: float, sigma: float, p: float) -> None:
    """By a client alone, and by three classes with all others on the third."""
    for clients in (1, 3):
        law = Participation(clients, p, at_least=0)
        votes = [2] * (clients - 1)
        choir, changed = np.eye(3)[[0, *votes]], np.eye(3)[[1, *votes]]
        exact = exact_delta(hockey_stick, choir, changed, law, epsilon=epsilon, sigma=sigma)
        assert exact == pytest.approx(math.exp(log_delta(epsilon, sigma, law)), rel=1e-9)


def test_over_the_air_the_bound_is_nearly_attained(hockey_stick: Any) -> None:
    """n = 20, p = 0.6, all others on a third class: exact over bound is 1 - 7e-6 at delta near 1e-6."""
    n, p, sigma = 20, 0.6, 3.697974013
    sizes = np.arange(n)
    others = np.array([math.comb(n - 1, k) * p**k * (1 - p) ** (n - 1 - k) for k in sizes])
    means, weights = [], []
    for takes_part, chance in ((1.0, p), (0.0, 1.0 - p)):
        for size, probability in zip(sizes, others, strict=True):
            if takes_part or size:
                means.append([takes_part, 0.0, float(size)])
                weights.append(chance * probability / (1.0 - (1.0 - p) ** n))
    one = np.array(means)
    exact = hockey_stick(
        (one, np.array(weights)), (one[:, [1, 0, 2]], np.array(weights)), math.e, sigma, np.array([1.0, -1.0, 0.0])
    )
    bound = math.exp(log_delta(1.0, sigma, Participation(n, p)))
    assert bound == pytest.approx(1e-6, rel=1e-6)
    assert 1.0 - 1e-5 <= exact / bound <= 1.0 + ROUNDING / bound


# --- order and limits -------------------------------------------------------------------------------------------------


@deterministic
@given(
    epsilons, sigmas, laws, st.sampled_from([SIMPLEX, centred(2), centred(3), centred(100), Geometry(1.0, 1.0, 0.2)])
)
def test_tight_is_never_above_the_paper(epsilon: float, sigma: float, law: Participation, geometry: Geometry) -> None:
    paper = Paper().log_delta(epsilon, sigma, geometry=geometry, hidden=law)
    assert log_delta(epsilon, sigma, law, geometry) <= paper + 1e-14 * max(1.0, -paper)


@deterministic
@given(epsilons, sigmas, laws)
def test_the_paper_is_never_above_what_holds_when_transmitters_are_counted(
    epsilon: float, sigma: float, law: Participation
) -> None:
    if law.at_least == 0:
        return
    paper = Paper().log_delta(epsilon, sigma, geometry=SIMPLEX, hidden=law)
    counted = Counted().log_delta(epsilon, sigma, geometry=SIMPLEX, hidden=law)
    everyone = Paper().log_delta(epsilon, sigma, geometry=SIMPLEX, hidden=Participation(law.clients, 1.0))
    slack = 1e-12 * max(1.0, -paper)
    assert paper <= counted + slack
    assert counted <= everyone + 1e-10 * max(1.0, -everyone)


@deterministic
@given(epsilons, epsilons, sigmas, laws)
def test_delta_falls_as_epsilon_grows(one: float, other: float, sigma: float, law: Participation) -> None:
    less, more = sorted([one, other])
    bound = log_delta(less, sigma, law)
    assert log_delta(more, sigma, law) <= bound + 1e-10 * max(1.0, -bound)


@deterministic
@given(epsilons, sigmas, st.floats(1.0, 10.0), laws)
def test_delta_falls_as_noise_grows(epsilon: float, sigma: float, factor: float, law: Participation) -> None:
    bound = log_delta(epsilon, sigma, law)
    assert log_delta(epsilon, factor * sigma, law) <= bound + 1e-10 * max(1.0, -bound)


@deterministic
@given(epsilons, sigmas, st.integers(1, 100_000))
def test_full_participation_is_theorem_1(epsilon: float, sigma: float, clients: int) -> None:
    hidden = Participation(clients, 1.0)
    assert log_delta(epsilon, sigma, hidden) == Paper().log_delta(epsilon, sigma, geometry=SIMPLEX, hidden=hidden)


def test_one_client_over_the_air_is_certain_but_always_on_is_not() -> None:
    theorem_1 = Paper().log_delta(1.0, 2.0, geometry=SIMPLEX, hidden=Participation(1, 1.0))
    assert log_delta(1.0, 2.0, Participation(1, 0.3)) == theorem_1
    assert log_delta(1.0, 2.0, Participation(1, 0.3, at_least=0)) < theorem_1


@pytest.mark.parametrize("law", [Participation(20, 0.1), Participation(3, 0.5), Participation(100_000, 1e-4)], ids=str)
def test_at_epsilon_zero_delta_is_eta_times_the_total_variation(law: Participation) -> None:
    for sigma in [0.3, 2.0, 100.0]:
        everyone = Paper().log_delta(0.0, sigma, geometry=SIMPLEX, hidden=Participation(1, 1.0))
        assert log_delta(0.0, sigma, law) == pytest.approx(math.log(law.inclusion) + everyone, rel=0, abs=2e-11)


def test_as_participation_vanishes_it_is_theorem_2() -> None:
    law = Participation(20, 1e-7)
    paper = Paper().log_delta(1.0, 2.0, geometry=SIMPLEX, hidden=law)
    assert log_delta(1.0, 2.0, law) == pytest.approx(paper, rel=0, abs=1e-4)
    assert log_delta(1.0, 2.0, Participation(20, 0.1)) < Paper().log_delta(
        1.0, 2.0, geometry=SIMPLEX, hidden=Participation(20, 0.1)
    )


def test_always_on_never_needs_more_than_over_the_air() -> None:
    for p in [1e-3, 0.1, 0.5, 0.9]:
        for clients in [2, 20, 1000]:
            on = log_delta(1.0, 3.0, Participation(clients, p, at_least=0))
            assert on <= log_delta(1.0, 3.0, Participation(clients, p))


@pytest.mark.parametrize(
    ("clients", "p", "epsilon", "sigma"),
    [
        (100_000, 1e-4, 0.5, 1.0),
        (100_000, 0.5, 3.0, 2.0),
        (2, 1e-4, 0.01, 20.0),
        (50, 0.999, 5.0, 1.5),
        (7, 0.02, 12.0, 0.35),
    ],
)
def test_nine_digits_at_the_ends_of_the_range(exact: Any, clients: int, p: float, epsilon: float, sigma: float) -> None:
    mp, law = exact.mp, Participation(clients, p)
    eta, e, s = exact.eta(law), exact.number(epsilon), exact.number(sigma)
    a, b = mp.expm1(e) * (1 - eta) / eta, mp.exp(e)
    h = exact.number("0.04")
    d3 = h * sum(
        mp.npdf(i * h) * exact.gaussian_delta(mp.log(b * mp.exp(i * h / s - 1 / (2 * s * s)) + a), 1 / s)
        for i in range(-700, 700)
    )
    empty = (1 - exact.number(p)) ** (clients - 1)
    rho = (clients - 1) * exact.number(p) * empty / (1 - empty)
    truth = eta * ((1 - rho) * d3 + rho * exact.gaussian_delta(exact.inner_epsilon(e, eta), mp.sqrt(2) / s))
    found = delta_for(epsilon, sigma, accountant="tight", geometry=SIMPLEX, hidden=law)
    assert truth <= found <= truth * (1 + exact.number(CLAIM))


def test_no_noise_hides_only_who_did_not_take_part() -> None:
    law = Participation(20, 0.1)
    assert log_delta(1000.0, 0.0, law) == pytest.approx(math.log(law.inclusion), rel=1e-12)
    assert log_delta(math.inf, 0.0, law) == -math.inf
    assert log_delta(math.inf, 1.0, law) == -math.inf


# --- what it does not cover -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("geometry", "match"),
    [
        (Geometry(math.sqrt(2.0), 1.0, -1.5), "inner product -1.5"),
        (Geometry(0.0, 1.0, 1.5), "inner product 1.5"),
        # A rule that forgot how far below zero its inner products reach.
        (Geometry(math.sqrt(2.0), math.sqrt(0.9), 0.0), "sensitivity is 1.41421"),
        (Geometry(2.5, 1.0, -1.0), "sensitivity is 2.5"),
        (Geometry(math.nan, 1.0, 0.0), "sensitivity is nan"),
        (Geometry(1.0, math.nan, 0.0), "norm at most nan"),
    ],
)
def test_a_geometry_that_no_symbols_have_is_refused(geometry: Geometry, match: str) -> None:
    with pytest.raises(ValueError, match=match) as error:
        log_delta(1.0, 1.0, Participation(20, 0.5), geometry)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("classes", [2, 3, 7, 10, 100, 1000, 99_991])
def test_centred_geometries_survive_their_rounding(classes: int) -> None:
    assert log_delta(1.0, 1.0, Participation(20, 0.5), centred(classes)) < 0.0


def test_rounds_of_at_least_two_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 0 or 1 clients, got 2"):
        log_delta(1.0, 1.0, Participation(20, 0.5, at_least=2))


def test_every_result_says_which_theorem_it_is() -> None:
    names = {Tight().theorem(Participation(20, 0.5)), Paper().theorem(Participation(20, 0.5))}
    assert len(names) == 2
    assert Tight().theorem(Participation(20, 1.0)) == "Theorem 1"
