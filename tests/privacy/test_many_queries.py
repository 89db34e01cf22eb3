"""What many queries cost together, under every accountant: known answers, closed forms, and dp-accounting as the oracle.

The oracle is given the accountant's profile as numbers and discretises it on grids of its own; its error falls like the
step squared, so that two grids tell the limit of ever finer ones.
"""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir import Privacy
from airchoir.participation import Participation
from airchoir.privacy import Accountant, composition, delta_for, epsilon_for, find_accountant, sigma_for
from airchoir.privacy.gaussian import log_delta as gaussian_log_delta
from airchoir.privacy.gaussian import log_deltas as gaussian_log_deltas
from airchoir.registry import plugins
from airchoir.rules import SIMPLEX, Geometry
from airchoir.rules.centred import centred_simplex

WITHIN = 1e-4
"""How far above the limit of ever finer grids an answer may be, relatively."""
EXTRAPOLATED = 2e-8
"""How far off the oracle's limit may be, relatively, in this range; the tests below see answers 1e-6 above it."""
ACCOUNTANTS = sorted(plugins(Accountant))
LAWS = [Participation(20, 0.5), Participation(20, 0.1), Participation(20, 0.3, at_least=0), Participation(1000, 0.9)]

deterministic = settings(derandomize=True, deadline=None, max_examples=4)


def terms(accountant: str, hidden: Participation, geometry: Geometry = SIMPLEX) -> dict[str, Any]:
    return {"accountant": accountant, "geometry": geometry, "hidden": hidden}


def known(known_answers: dict[str, Any], start: str) -> list[list[float]]:
    (heading,) = (name for name in known_answers if name.startswith(start))
    return known_answers[heading]


# --- known answers


@pytest.mark.parametrize(
    ("heading", "accountant", "sigma"),
    [
        ("composition delta=1e-6, n=20, p=0.5, tight", "tight", 3.2130581),
        ("composition delta=1e-6, n=20, p=0.5, counted", "counted", 4.3774173459763),
    ],
)
def test_known_answers_at_half_participation(
    known_answers: dict[str, Any], heading: str, accountant: str, sigma: float
) -> None:
    """They too were rounded up, on a fine grid, but by less than 1e-8 (T = 1 shows: 0.9999997906 is the single query's)."""
    for queries, epsilon in known(known_answers, heading):
        found = epsilon_for(1e-6, sigma, queries=int(queries), **terms(accountant, Participation(20, 0.5)))
        assert epsilon * (1 - 1e-8) <= found <= epsilon * (1 + WITHIN)


def test_known_answers_at_full_participation(known_answers: dict[str, Any]) -> None:
    """Given by a grid, too, so a little above the closed form."""
    for queries, epsilon in known(known_answers, "composition delta=1e-6, p=1"):
        for accountant in ACCOUNTANTS:
            found = epsilon_for(1e-6, 5.974598181957, queries=int(queries), **terms(accountant, Participation(20, 1.0)))
            assert epsilon * (1 - 1e-9) <= found <= epsilon


def test_a_hundred_queries_of_the_papers_noise_cost_what_the_method_says() -> None:
    found = epsilon_for(1e-6, 3.9989, queries=100, **terms("tight", Participation(20, 0.5)))
    assert found == pytest.approx(9.50, abs=0.005)


# --- closed forms


def closed_form(epsilon: float, mu: float, queries: int) -> float:
    """log delta of T Gaussian mechanisms [Dong, Roth and Su 2022, Corollary 2]."""
    return gaussian_log_delta(epsilon, mu * math.sqrt(queries))


def closed_epsilon(delta: float, mu: float, queries: int) -> float:
    low, high = 0.0, 1.0
    while closed_form(high, mu, queries) > math.log(delta):
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if closed_form(middle, mu, queries) > math.log(delta) else (low, middle)
    return low


@pytest.mark.parametrize("queries", [1, 2, 100, 100_000])
@pytest.mark.parametrize("delta", [1e-2, 1e-15])
@pytest.mark.parametrize("total", [0.05, 1.4, 12.0])
def test_sampled_composition_of_a_gaussian_profile_is_never_below_the_closed_form(
    queries: int, delta: float, total: float
) -> None:
    """What the plain FFT fails at: below 1e-12 its noise swallows the tail. `total` is mu of all queries together."""
    mu = total / math.sqrt(queries)
    truth = closed_epsilon(delta, mu, queries)
    found = composition.epsilon(lambda epsilons: gaussian_log_deltas(epsilons, mu), delta, queries=queries)
    assert truth * (1 - 1e-12) <= found <= truth * (1 + WITHIN)


@pytest.mark.parametrize("queries", [2, 100, 100_000])
@pytest.mark.parametrize("total", [0.2, 3.0])
def test_sampled_deltas_of_a_gaussian_profile_are_never_below_the_closed_form(queries: int, total: float) -> None:
    mu = total / math.sqrt(queries)
    for quantile in (-1.0, 2.0, 7.5):
        epsilon = max(total * (quantile + total / 2), 0.0)
        truth = closed_form(epsilon, mu, queries)
        found = composition.log_delta(lambda e: gaussian_log_deltas(e, mu), epsilon, queries=queries)
        assert truth <= found
        # An epsilon too high by a share of 1e-4 of itself is a delta too high by so much of its slope:
        assert found <= closed_form(epsilon * (1 - WITHIN), mu, queries) + 1e-4


@pytest.mark.parametrize("queries", [2, 100])
def test_a_mechanism_that_sometimes_reveals_everything_does_so_at_least_once_in_t_queries(queries: int) -> None:
    """With probability f all is told, else a Gaussian: 1 - (1 - f)^T + (1 - f)^T delta_T of the Gaussian alone."""
    often, mu = 1e-7, 1.4 / math.sqrt(queries)
    once = -math.expm1(queries * math.log1p(-often))

    def profile(epsilons: np.ndarray) -> np.ndarray:
        return np.logaddexp(math.log(often), math.log1p(-often) + gaussian_log_deltas(epsilons, mu))

    for epsilon in (0.5, 3.0, 8.0, 20.0):
        truth = math.log(once + (1 - once) * math.exp(closed_form(epsilon, mu, queries)))
        found = composition.log_delta(profile, epsilon, queries=queries)
        assert truth - 1e-12 <= found <= truth + 1e-3
    assert composition.epsilon(profile, once * (1 - 1e-6), queries=queries) == math.inf
    assert composition.epsilon(profile, once * 1.01, queries=queries) < 20.0


@pytest.mark.parametrize(("queries", "delta"), [(100, 1e-15), (100_000, 1e-6), (1, 1e-9)])
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_almost_full_participation_is_almost_full_participation(accountant: str, queries: int, delta: float) -> None:
    """p = 1 - 1e-12 goes the sampled way and may not undercut what everyone together costs by more than so little."""
    almost, everyone = Participation(20, 1 - 1e-12), Participation(20, 1.0)
    sigma = math.sqrt(2 * queries) / 1.4
    truth = epsilon_for(delta, sigma, queries=queries, **terms(accountant, everyone))
    found = epsilon_for(delta, sigma, queries=queries, **terms(accountant, almost))
    assert truth * (1 - 1e-10) <= found <= truth * (1 + WITHIN)


def test_the_published_fft_floor_is_not_ours() -> None:
    """T = 100 at delta 1e-15 and epsilon 1.8015935: a plain FFT says 1.7977."""
    sigma = math.sqrt(2 * 100) / closed_mu(1.8015935, 1e-15)
    found = epsilon_for(1e-15, sigma, queries=100, **terms("paper", Participation(20, 1 - 1e-12)))
    assert 1.8015935 * (1 - 1e-10) <= found <= 1.8015935 * (1 + WITHIN)


def closed_mu(epsilon: float, delta: float) -> float:
    low, high = 1e-9, 1e3
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian_log_delta(epsilon, middle) < math.log(delta) else (low, middle)
    return low


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("queries", [1, 7, 100_000])
def test_full_participation_is_one_gaussian(accountant: str, queries: int) -> None:
    law, sigma = Participation(20, 1.0), 0.9 * math.sqrt(2 * queries)
    for delta in (1e-3, 1e-15):
        found = epsilon_for(delta, sigma, queries=queries, **terms(accountant, law))
        assert found == pytest.approx(closed_epsilon(delta, 1 / 0.9, 1), rel=1e-11)
        back = sigma_for(found, delta, queries=queries, **terms(accountant, law))
        assert back == pytest.approx(sigma, rel=1e-11)
        assert delta_for(found, sigma, queries=queries, **terms(accountant, law)) == pytest.approx(delta, rel=1e-11)


# --- an independent implementation


def by_dp_accounting(
    accountant: str, law: Participation, sigma: float, *, queries: int, delta: float, step: float
) -> Any:
    """epsilon by dp-accounting's connect-the-dots and its FFT, from our single-query bound on a regular grid."""
    reach = 1
    while find_accountant(accountant).log_delta(float(reach), sigma, geometry=SIMPLEX, hidden=law) > math.log(
        1e-13 / queries
    ):
        reach += 1
    index = np.arange(round(reach / step) + 1)
    losses = index * step
    bound = np.exp(find_accountant(accountant).log_deltas(losses, sigma, geometry=SIMPLEX, hidden=law))
    below = -np.expm1(-losses[:0:-1]) + np.exp(-losses[:0:-1]) * bound[:0:-1]
    every = np.concatenate([-index[:0:-1], index]), np.concatenate([below, bound])
    law_of_loss = pld_pmf.create_pmf_pessimistic_connect_dots(step, *every)
    return law_of_loss.self_compose(queries, tail_mass_truncation=1e-14).get_epsilon_for_delta(delta)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("queries", "delta"), [(3, 1e-7), (1000, 1e-4)])
def test_epsilon_is_the_oracles_limit_rounded_up_by_less_than_1e_4(
    accountant: str, law: Participation, queries: int, delta: float
) -> None:
    sigma = 2.0 * queries**0.25
    fine, finer = (
        by_dp_accounting(accountant, law, sigma, queries=queries, delta=delta, step=step) for step in (1e-3, 5e-4)
    )
    limit = finer - (fine - finer) / 3
    found = epsilon_for(delta, sigma, queries=queries, **terms(accountant, law))
    assert limit * (1 - EXTRAPOLATED) - 1e-9 <= found <= limit * (1 + WITHIN)


# --- laws of composition


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_one_query_is_the_single_query_bound(accountant: str, law: Participation) -> None:
    """And the sampled way, asked for one query, does not undercut it."""
    sigma, known_terms = 2.5, terms(accountant, law)

    def profile(epsilons: np.ndarray) -> np.ndarray:
        return find_accountant(accountant).log_deltas(epsilons, sigma, geometry=SIMPLEX, hidden=law)

    for delta in (1e-3, 1e-9, 1e-15):
        single = epsilon_for(delta, sigma, queries=1, **known_terms)
        assert profile(np.array([single]))[0] <= math.log(delta)
        assert profile(np.array([single * (1 - 1e-9)]))[0] > math.log(delta)
        composed = composition.epsilon(profile, delta, queries=1)
        assert single * (1 - 1e-12) <= composed <= single * (1 + WITHIN)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("law", LAWS[1:2], ids=str)
def test_epsilon_rises_with_queries_and_falls_with_noise_and_with_delta(accountant: str, law: Participation) -> None:
    known_terms = terms(accountant, law)
    by_queries = [epsilon_for(1e-6, 3.0, queries=T, **known_terms) for T in (1, 2, 3, 10, 1000)]
    assert (np.diff(by_queries) > 0).all()
    by_sigma = [epsilon_for(1e-6, sigma, queries=50, **known_terms) for sigma in (0.3, 1.0, 1.001, 30.0)]
    assert (np.diff(by_sigma) < 0).all()
    by_delta = [epsilon_for(delta, 3.0, queries=50, **known_terms) for delta in (1e-15, 1e-6, 1.01e-6, 1e-2)]
    assert (np.diff(by_delta) < 0).all()


@deterministic
@given(
    accountant=st.sampled_from(ACCOUNTANTS),
    p=st.floats(0.01, 0.99),
    clients=st.integers(1, 1000),
    least=st.integers(0, 1),
    log_noise=st.floats(-1.0, 3.0),
    queries=st.integers(2, 300),
    log_delta=st.floats(-15.0, -1.0),
)
def test_epsilon_and_delta_are_each_others_inverse(
    accountant: str, p: float, clients: int, least: int, log_noise: float, queries: int, log_delta: float
) -> None:
    known_terms = terms(accountant, Participation(clients, p, at_least=least))
    sigma, delta = 10**log_noise, 10**log_delta
    epsilon = epsilon_for(delta, sigma, queries=queries, **known_terms)
    assert delta_for(epsilon, sigma, queries=queries, **known_terms) <= delta * (1 + 1e-4)
    if epsilon > 0.0:
        assert delta_for(epsilon * (1 - 3 * WITHIN), sigma, queries=queries, **known_terms) > delta
    fewer = epsilon_for(delta, sigma, queries=queries - 1, **known_terms)
    assert fewer <= epsilon


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize(
    ("law", "queries", "epsilon", "delta"),
    [
        (Participation(20, 0.5), 100, 8.0, 1e-6),
        (Participation(20, 0.1, at_least=0), 200, 1.0, 1e-15),
        (Participation(1000, 0.02), 10, 0.1, 1e-9),
    ],
    ids=str,
)
def test_sigma_for_many_queries_keeps_the_promise_and_wastes_less_than_1e_6(
    accountant: str, law: Participation, queries: int, epsilon: float, delta: float
) -> None:
    known_terms = terms(accountant, law)
    sigma = sigma_for(epsilon, delta, queries=queries, **known_terms)
    assert delta_for(epsilon, sigma, queries=queries, **known_terms) <= delta
    assert delta_for(epsilon, sigma * (1 - 1e-6), queries=queries, **known_terms) > delta
    assert epsilon_for(delta, sigma, queries=queries, **known_terms) == pytest.approx(epsilon, rel=WITHIN)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("least", [1, 0], ids=["over-the-air", "always-on"])
def test_ten_thousand_queries_have_an_answer(accountant: str, least: int) -> None:
    """Less than if everyone sang in all of them, and no free lunch: at p = 0.5 more than a quarter of that."""
    law, sigma = Participation(20, 0.5, at_least=least), 100.0
    found = epsilon_for(1e-6, sigma, queries=10_000, **terms(accountant, law))
    everyone = epsilon_for(1e-6, sigma, queries=10_000, **terms(accountant, Participation(20, 1.0)))
    assert everyone / 4 < found < everyone
    back = delta_for(found, sigma, queries=10_000, **terms(accountant, law))
    assert back == pytest.approx(1e-6, rel=1e-3)


def test_the_accountants_keep_their_order() -> None:
    for law, queries in product(LAWS[:2], (100,)):
        tight, paper, counted = (
            epsilon_for(1e-6, 4.0, queries=queries, **terms(name, law)) for name in ("tight", "paper", "counted")
        )
        assert (
            tight < paper < counted < epsilon_for(1e-6, 4.0, queries=queries, **terms("paper", Participation(1, 1.0)))
        )


def test_centring_helps_over_many_queries_too() -> None:
    law = Participation(20, 0.5)
    plain, centred = (
        sigma_for(8.0, 1e-6, queries=10, **terms("tight", law, geometry)) for geometry in (SIMPLEX, centred_simplex(2))
    )
    assert 0.8 * plain < centred < plain


def test_two_queries_cost_at_most_twice_one_and_a_shared_epsilon_less_than_the_sum() -> None:
    """Basic composition: delta_2(2 eps) <= 2 delta(eps)."""
    for accountant, law in product(ACCOUNTANTS, LAWS):
        single = delta_for(0.7, 2.0, **terms(accountant, law))
        assert delta_for(1.4, 2.0, queries=2, **terms(accountant, law)) < 2 * single


def test_no_noise_and_no_promise_are_the_limits() -> None:
    law = Participation(20, 0.5)
    for accountant in ACCOUNTANTS:
        assert epsilon_for(1e-6, 0.0, queries=100, **terms(accountant, law)) == math.inf
        assert sigma_for(math.inf, 1e-6, queries=100, **terms(accountant, law)) == 0.0
        assert delta_for(math.inf, 0.0, queries=100, **terms(accountant, law)) == 0.0
        lost = delta_for(5.0, 0.0, queries=3, **terms(accountant, law))
        assert 1 - (1 - law.inclusion) ** 3 <= lost <= 1.0, "heard at least once without noise"


def test_the_scheme_level_promise_covers_its_queries() -> None:
    law = Participation(20, 0.5)
    promise = Privacy(epsilon=2.0, delta=1e-6, accountant="tight", queries=20)
    sigma = promise.sigma(SIMPLEX, law)
    assert sigma == sigma_for(2.0, 1e-6, queries=20, **terms("tight", law))
    assert epsilon_for(1e-6, sigma, queries=20, **terms("tight", law)) == pytest.approx(2.0, rel=WITHIN)


@pytest.mark.parametrize("queries", [0, -1, 1.5, math.nan, "10", None])
def test_a_number_of_queries_that_is_none_is_refused(queries: Any) -> None:
    for ask in (
        lambda: Privacy(queries=queries),
        lambda: sigma_for(1.0, 1e-6, queries=queries, **terms("paper", Participation(20, 0.5))),
        lambda: delta_for(1.0, 5.0, queries=queries, **terms("tight", Participation(20, 0.5))),
        lambda: epsilon_for(1e-6, 5.0, queries=queries, **terms("counted", Participation(20, 1.0))),
    ):
        with pytest.raises(ValueError, match=r"\Aqueries must be a whole number >= 1, got [^\n]+; it is how many"):
            ask()
