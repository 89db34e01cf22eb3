"""Many queries: against the closed form where everyone takes part, dp-accounting, finer grids and itself."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from scipy import stats

from airchoir.participation import Participation
from airchoir.privacy import Privacy, calibrate, composition, delta_for, epsilon_for, find_accountant, sigma_for
from airchoir.privacy.gaussian import log_delta as gaussian_log_delta
from airchoir.privacy.gaussian import log_deltas as gaussian_log_deltas
from airchoir.privacy.loss_law import Profile
from airchoir.rules import SIMPLEX, Geometry

CLAIM = 1e-4
HALF = Participation(20, 0.5)
ACCOUNTANTS = ["paper", "tight", "counted"]


def profile(accountant: str, law: Participation, sigma: float) -> Profile:
    theorem = find_accountant(accountant)
    return lambda epsilons: theorem.log_deltas(epsilons, sigma, geometry=SIMPLEX, hidden=law)


def epsilon(accountant: str, law: Participation, sigma: float, delta: float, queries: int) -> float:
    return epsilon_for(delta, sigma, accountant=accountant, geometry=SIMPLEX, hidden=law, queries=queries)


def delta(accountant: str, law: Participation, sigma: float, epsilon: float, queries: int) -> float:
    return delta_for(epsilon, sigma, accountant=accountant, geometry=SIMPLEX, hidden=law, queries=queries)


# --- everyone takes part: the closed form through the privacy-loss law -------------------------------------------------


@pytest.mark.parametrize("queries", [2, 10, 100, 10_000])
@pytest.mark.parametrize("share", [0.02, 0.24, 3.0])
def test_with_everyone_the_loss_law_meets_the_closed_form_from_above(queries: int, share: float) -> None:
    """mu of one query, and of all of them together; at delta 1e-15 a plain FFT would fall below the truth."""
    mu = share / math.sqrt(queries) if share == 3.0 else share
    total = mu * math.sqrt(queries)
    for wanted in [0.1, 1e-3, 1e-6, 1e-9, 1e-12, 1e-15]:
        truth = calibrate.epsilon(lambda e, _: gaussian_log_delta(e, total), wanted, 1.0)
        found = composition.epsilon(lambda e: gaussian_log_deltas(e, mu), wanted, queries=queries)
        assert truth <= found <= truth * (1.0 + CLAIM), wanted


@pytest.mark.parametrize("queries", [2, 100])
def test_delta_too_meets_the_closed_form_from_above(queries: int) -> None:
    mu = 0.3 / math.sqrt(queries)
    for at in [0.0, 0.05, 0.5, 1.0, 2.4]:
        truth = gaussian_log_delta(at, 0.3)
        found = composition.log_delta(lambda e: gaussian_log_deltas(e, mu), at, queries=queries)
        # 1e-4 of epsilon is lambda epsilon times as much of log delta, lambda = epsilon / mu^2 + 1/2.
        assert truth <= found <= truth + CLAIM * (1.0 + at * (at / 0.09 + 0.5))


def test_the_floor_of_the_plain_fft_is_gone() -> None:
    """T = 100 at delta 1e-15, everyone taking part: a plain FFT says 1.7977, the truth is 1.80159."""
    mu = math.sqrt(2.0) / 59.745981819573785
    truth = calibrate.epsilon(lambda e, _: gaussian_log_delta(e, 10.0 * mu), 1e-15, 1.0)
    assert truth == pytest.approx(1.80159, abs=1e-5)
    found = composition.epsilon(lambda e: gaussian_log_deltas(e, mu), 1e-15, queries=100)
    assert truth <= found <= 1.8017


@pytest.mark.parametrize("told", [True, False])
def test_what_rounding_may_have_lost_is_added(monkeypatch: Any, told: bool) -> None:
    """An FFT that errs downwards by a billion times its slack: what is found is a bound if and only if the slack says so."""
    honest = composition.convolve

    def worse(*arguments: Any, **keywords: Any) -> Any:
        masses, slack = honest(*arguments, **keywords)
        each, together = (1e9 * value for value in slack)
        lost = min(each, together / math.sqrt(len(masses)))
        return np.maximum(masses - lost, 0.0), (each, together) if told else slack

    monkeypatch.setattr(composition, "convolve", worse)
    for at in [0.5, 1.0, 2.0]:
        found = composition.log_delta(lambda e: gaussian_log_deltas(e, 0.03), at, queries=100)
        assert (found >= gaussian_log_delta(at, 0.3)) == told


@pytest.mark.parametrize("at", [0.5, 1.0, 2.0])
def test_what_lies_above_the_window_is_added(monkeypatch: Any, at: float) -> None:
    monkeypatch.setattr(composition, "_NEGLIGIBLE", -2.0)
    single = composition._Single.of(lambda e: gaussian_log_deltas(e, 0.03), 100)
    total = composition._fine(single, composition._rough(single, at))
    above = (2.0 * total.sums[-1] - total.sums[-2] - 0.3**2 / 2.0) / 0.3
    assert stats.norm.logsf(above) <= total.log_missing <= stats.norm.logsf(above) + 10.0
    assert total.log_delta(at) >= np.logaddexp(total.log_parts(at)[0], total.log_missing)


def test_known_answers_with_everyone(known_answers: Any) -> None:
    for queries, known in known_answers["composition delta=1e-6, p=1, sigma=5.974598181957 [queries, epsilon]"]:
        for accountant in ACCOUNTANTS:
            found = epsilon(accountant, Participation(20, 1.0), 5.974598181957, 1e-6, queries)
            assert found == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_certain_participation_takes_the_closed_form(accountant: str) -> None:
    for queries in [1, 7, 10**9]:
        found = sigma_for(
            1.0, 1e-6, accountant=accountant, geometry=SIMPLEX, hidden=Participation(3, 1.0), queries=queries
        )
        assert found == pytest.approx(5.9745981819573785 * math.sqrt(queries), rel=1e-12)


# --- random participation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accountant", "sigma", "key"),
    [
        (
            "tight",
            3.2130581,
            "composition delta=1e-6, n=20, p=0.5, tight accountant, sigma=3.2130581 [queries, epsilon]",
        ),
        (
            "counted",
            4.3774173459763,
            "composition delta=1e-6, n=20, p=0.5, counted accountant, sigma=4.3774173459763 [queries, epsilon]",
        ),
    ],
)
def test_known_answers(known_answers: Any, accountant: str, sigma: float, key: str) -> None:
    for queries, known in known_answers[key]:
        found = epsilon(accountant, HALF, sigma, 1e-6, queries)
        assert found == pytest.approx(known, rel=1e-9 if queries == 1 else 1e-5)


def by_dp_accounting(single: Profile, queries: int, wanted: float, *, interval: float, reach: float) -> float:
    """Google's composition of the same profile, mirrored below epsilon 0 and connected dot by dot."""
    rounded = np.arange(-math.ceil(reach / interval), math.ceil(reach / interval) + 1)
    epsilons = rounded * interval
    above = np.exp(single(np.abs(epsilons)))
    deltas = np.where(epsilons >= 0.0, above, -np.expm1(epsilons) + np.exp(epsilons) * above)
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots(interval, rounded, deltas)
    composed = privacy_loss_distribution.PrivacyLossDistribution(pmf).self_compose(queries)
    return float(composed.get_epsilon_for_delta(wanted))


@pytest.mark.parametrize(
    ("accountant", "law", "sigma", "queries", "interval", "reach"),
    [
        ("tight", HALF, 3.2, 30, 2e-4, 4.0),
        ("counted", Participation(20, 0.3), 3.6, 30, 2e-4, 4.0),
        ("paper", Participation(20, 0.1), 2.1, 100, 2e-4, 5.0),
        ("tight", Participation(50, 0.2, at_least=0), 4.0, 300, 2e-4, 2.0),
        ("tight", Participation(1000, 0.01), 0.5, 3, 1e-3, 30.0),
        ("tight", HALF, 0.3, 4, 4e-3, 80.0),
    ],
    ids=str,
)
def test_dp_accounting_agrees(
    accountant: str, law: Participation, sigma: float, queries: int, interval: float, reach: float
) -> None:
    for wanted in [1e-3, 1e-6]:
        oracle = by_dp_accounting(profile(accountant, law, sigma), queries, wanted, interval=interval, reach=reach)
        assert epsilon(accountant, law, sigma, wanted, queries) == pytest.approx(oracle, rel=CLAIM)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_one_query_is_the_single_bound_exactly(accountant: str) -> None:
    theorem = find_accountant(accountant)
    for at in [0.0, 0.5, 3.0]:
        single = calibrate.delta(lambda e, s: theorem.log_delta(e, s, geometry=SIMPLEX, hidden=HALF), at, 3.0)
        assert delta(accountant, HALF, 3.0, at, 1) == single
    assert epsilon(accountant, HALF, 3.0, 1e-6, 1) == epsilon_for(
        1e-6, 3.0, accountant=accountant, geometry=SIMPLEX, hidden=HALF
    )


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_the_loss_law_of_one_query_is_the_single_bound(accountant: str) -> None:
    for wanted in [1e-3, 1e-6, 1e-15]:
        single = epsilon(accountant, HALF, 3.0, wanted, 1)
        found = composition.epsilon(profile(accountant, HALF, 3.0), wanted, queries=1)
        assert single <= found <= single * (1.0 + CLAIM)


@pytest.mark.parametrize(
    ("accountant", "law", "sigma"),
    [
        ("tight", HALF, 10.0),
        ("counted", Participation(5, 0.2), 5.0),
        ("paper", Participation(1000, 0.01), 2.0),
        ("tight", Participation(9, 0.1, at_least=0), 1.5),
    ],
    ids=str,
)
def test_more_queries_cost_more(accountant: str, law: Participation, sigma: float) -> None:
    counts = [1, 2, 3, 10, 11, 100, 1000, 10_000]
    costs = [epsilon(accountant, law, sigma, 1e-6, queries) for queries in counts]
    assert all(less < more for less, more in itertools.pairwise(costs))
    # Never more than one after the other, at a share of delta each.
    assert all(
        cost <= queries * epsilon(accountant, law, sigma, 1e-6 / queries, 1) * (1.0 + 1e-9)
        for cost, queries in zip(costs, counts, strict=True)
    )


def test_the_accountants_keep_their_order_over_many_queries() -> None:
    for queries in [2, 50, 5000]:
        sigma = 4.0 * math.sqrt(queries / 2)
        tight, paper, counted = (
            epsilon(accountant, HALF, sigma, 1e-6, queries) for accountant in ["tight", "paper", "counted"]
        )
        everyone = epsilon("paper", Participation(20, 1.0), sigma, 1e-6, queries)
        assert tight < paper < counted < everyone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accountant", "law", "sigma", "queries"),
    [
        ("tight", HALF, 3.2, 10),
        ("counted", HALF, 30.0, 1000),
        ("tight", Participation(1000, 0.01), 0.3, 2),
        ("paper", Participation(20, 0.1), 5.0, 10_000),
        ("tight", Participation(10_000, 1e-3, at_least=0), 0.7, 20),
        ("counted", Participation(100_000, 1e-4), 1.458, 1000),
        ("tight", Participation(100_000, 1e-4), 0.752, 10_000),
    ],
    ids=str,
)
def test_a_finer_grid_changes_less_than_is_claimed(
    monkeypatch: Any, accountant: str, law: Participation, sigma: float, queries: int
) -> None:
    wanted = [1e-3, 1e-9]
    usual = [epsilon(accountant, law, sigma, each, queries) for each in wanted]
    monkeypatch.setattr(composition, "_STEPS_PER_DEVIATION", 300.0)
    monkeypatch.setattr(composition, "_NODES_PER_DEVIATION", 1000.0)
    monkeypatch.setattr(composition, "_GROWTH", 2e-4)
    monkeypatch.setattr(composition, "_LIFT", 5e-3)
    monkeypatch.setattr(composition, "_LARGEST", 2**22)
    finer = [epsilon(accountant, law, sigma, each, queries) for each in wanted]
    assert usual == pytest.approx(finer, rel=CLAIM)
    assert usual != finer


@pytest.mark.parametrize(
    ("law", "sigma", "queries", "wanted"),
    [
        (HALF, 5.0, 50, 1e-6),
        (HALF, 0.1, 3, 1e-9),
        (Participation(1000, 0.01), 1.0, 30, 1e-12),
        (HALF, 500.0, 100_000, 0.1),
    ],
    ids=str,
)
def test_delta_at_the_epsilon_found_is_what_was_asked_for(
    law: Participation, sigma: float, queries: int, wanted: float
) -> None:
    found = epsilon("tight", law, sigma, wanted, queries)
    assert wanted * (1.0 - 1e-6) <= delta("tight", law, sigma, found, queries) <= wanted * (1.0 + 1e-9)


def test_rare_participation_keeps_its_heavy_tail() -> None:
    """One query in a thousand matters, and then it matters a lot: at small delta the costliest query is nearly all."""
    law, sigma, queries = Participation(1000, 1e-3, at_least=0), 0.5, 5
    single = delta("tight", law, sigma, 4.0, 1)
    assert queries * single * (1.0 - 1e-2) <= delta("tight", law, sigma, 4.0, queries) <= queries * single * 1.1


def test_what_gives_everything_away_now_and_then_does_so_more_often_over_many_queries() -> None:
    """A Gaussian mechanism that with probability 1e-9 says it all: that is a loss without end, T times as likely."""

    def leaky(epsilons: np.ndarray) -> np.ndarray:
        return np.logaddexp(gaussian_log_deltas(epsilons, 0.1), math.log(1e-9))

    for at in [3.0, 20.0, 1e6]:
        gaussian = math.exp(gaussian_log_delta(at, 1.0))
        truth = gaussian + (1.0 - gaussian) * -math.expm1(100 * math.log1p(-1e-9))
        found = math.exp(composition.log_delta(leaky, at, queries=100))
        assert truth * (1.0 - 1e-6) <= found <= truth * (1.0 + 1e-3)


def log_delta_if_told(often: float, mus: tuple[float, float], at: float, queries: int) -> float:
    """The exact profile where now and then mus[1] is a Gaussian mechanism's mu, else mus[0], and the server is told which."""
    times = np.arange(queries + 1)
    log_law = stats.binom.logpmf(times, queries, often)
    return float(
        np.logaddexp.reduce(
            [
                chance + gaussian_log_delta(at, math.hypot(mus[0] * math.sqrt(queries - k), mus[1] * math.sqrt(k)))
                for k, chance in zip(times[log_law > -100.0], log_law[log_law > -100.0], strict=True)
            ]
        )
    )


@pytest.mark.parametrize("queries", [10, 1000, 10_000])
@pytest.mark.parametrize(
    ("often", "mus"), [(1e-6, (1e-5, 0.3)), (1e-4, (1e-3, 1.3)), (1e-4, (1e-5, 0.1)), (1e-2, (1e-2, 5.0))], ids=str
)
def test_heavy_tails_meet_their_closed_form_from_above(often: float, mus: tuple[float, float], queries: int) -> None:
    """A rare query says much more than the others: Chernoff's bound, the window and rounding are all at their worst."""

    def single(epsilons: np.ndarray) -> np.ndarray:
        usual, rare = (gaussian_log_deltas(epsilons, mu) for mu in mus)
        return np.logaddexp(math.log1p(-often) + usual, math.log(often) + rare)

    for wanted in [1e-6, 1e-10, 1e-15]:
        if log_delta_if_told(often, mus, 0.0, queries) <= math.log(wanted):
            continue
        found = composition.epsilon(single, wanted, queries=queries)
        # Above the truth: there the exact profile is at most what was wanted; and 1e-4 below the truth it is not.
        assert log_delta_if_told(often, mus, found * (1.0 + 1e-12), queries) <= math.log(wanted) + 1e-11
        assert log_delta_if_told(often, mus, found * (1.0 - CLAIM), queries) > math.log(wanted)


@pytest.mark.parametrize("queries", [2, 30, 10_000])
def test_delta_of_the_epsilon_found_is_what_was_asked_for_or_less(queries: int) -> None:
    """Not a digit more: the law that found epsilon is the one that delta is read from."""
    for law, sigma, wanted in itertools.product([HALF, Participation(1000, 1e-3)], [0.7, 20.0], [1e-3, 1e-6, 1e-15]):
        found = epsilon("tight", law, sigma, wanted, queries)
        assert delta("tight", law, sigma, found, queries) <= wanted
        if found > 0.0:
            assert delta("tight", law, sigma, found * (1.0 - 1e-6), queries) > wanted


def test_a_million_queries_are_nearly_one_gaussian() -> None:
    """With so much noise that a query hardly says anything, only the mean symbol counts: mu = eta sqrt(2 T) / sigma."""
    queries = 10**6
    found = epsilon("tight", HALF, 1000.0, 1e-6, queries)
    limit = calibrate.epsilon(lambda e, mu: gaussian_log_delta(e, mu), 1e-6, 0.5 * math.sqrt(2.0))
    assert limit <= found <= limit * (1.0 + 2e-3)


def test_more_queries_than_fit_keep_what_holds_without_hiding() -> None:
    everyone = Participation(20, 1.0)
    assert delta("tight", HALF, 2.0**20, 1.0, 2**40) == pytest.approx(delta("paper", everyone, 1.0, 1.0, 1), rel=1e-12)
    assert epsilon("tight", HALF, 2.0**20, 1e-6, 2**40) == pytest.approx(
        epsilon("paper", everyone, 1.0, 1e-6, 1), rel=1e-9
    )


@pytest.mark.parametrize("queries", [10, 1000, 2**34])
def test_hiding_never_costs_more_than_full_participation(queries: int) -> None:
    sigma, everyone = 3.0 * math.sqrt(queries), Participation(20, 1.0)
    assert delta("counted", HALF, sigma, 1.0, queries) <= delta("counted", everyone, sigma, 1.0, queries) * (
        1.0 + 1e-12
    )


# --- sigma, and what is asked of Privacy -------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("queries", [2, 10_000])
def test_sigma_covers_all_queries_and_hardly_less_would(accountant: str, queries: int) -> None:
    promise = Privacy(epsilon=2.0, delta=1e-6, accountant=accountant, queries=queries)
    sigma = promise.sigma(SIMPLEX, HALF)
    assert delta(accountant, HALF, sigma, 2.0, queries) <= 1e-6
    assert delta(accountant, HALF, sigma * (1.0 - 2e-7), 2.0, queries) > 1e-6
    assert sigma < Privacy(epsilon=2.0, delta=1e-6, queries=queries).sigma(SIMPLEX, Participation(20, 1.0))
    assert sigma > Privacy(epsilon=2.0, delta=1e-6, accountant=accountant).sigma(SIMPLEX, HALF)


def test_sigma_takes_few_compositions(monkeypatch: Any) -> None:
    calls = []
    original = composition.log_delta

    def counting(*arguments: Any, **keywords: Any) -> float:
        calls.append(arguments)
        return original(*arguments, **keywords)

    monkeypatch.setattr(composition, "log_delta", counting)
    sigma_for(1.0, 1e-6, accountant="tight", geometry=SIMPLEX, hidden=HALF, queries=1000)
    assert len(calls) <= 25


def test_infinite_epsilon_needs_no_noise_and_no_noise_gives_no_privacy() -> None:
    assert sigma_for(math.inf, 1e-6, accountant="tight", geometry=SIMPLEX, hidden=HALF, queries=100) == 0.0
    assert epsilon("tight", HALF, 0.0, 1e-6, 100) == math.inf
    assert delta("tight", HALF, 0.0, 3.0, 2) == pytest.approx(1.0 - (1.0 - HALF.inclusion) ** 2, rel=1e-9)
    assert delta("tight", HALF, 1.0, math.inf, 100) == 0.0


def test_so_rarely_that_no_noise_is_needed() -> None:
    law = Participation(1000, 1e-9, at_least=0)
    assert sigma_for(1.0, 1e-6, accountant="tight", geometry=SIMPLEX, hidden=law, queries=100) == 0.0
    assert epsilon("tight", law, 0.0, 1e-6, 100) == 0.0


@pytest.mark.parametrize("sigma", [1e-300, 1e-6, 0.05, 1e5, 1e12, 1e300])
def test_extreme_noise_gives_extreme_answers(sigma: float) -> None:
    for queries in [2, 1000]:
        found = epsilon("tight", HALF, sigma, 1e-6, queries)
        assert found > 100.0 if sigma < 1.0 else found < 1e-2
        assert 0.0 <= delta("tight", HALF, sigma, 1.0, queries) <= 1.0


def test_centred_symbols_pay_over_many_queries_too() -> None:
    centred = Geometry(math.sqrt(2.0), math.sqrt(0.5), -0.5)
    arguments: dict[str, Any] = {"accountant": "tight", "hidden": HALF, "queries": 100}
    assert sigma_for(1.0, 1e-6, geometry=centred, **arguments) < sigma_for(1.0, 1e-6, geometry=SIMPLEX, **arguments)


@pytest.mark.parametrize("queries", [0, -3, 1.5, math.nan])
def test_a_number_of_queries_that_is_none_is_refused(queries: Any) -> None:
    with pytest.raises(ValueError, match="queries must be a whole number >= 1") as error:
        epsilon("tight", HALF, 1.0, 1e-6, queries)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="queries must be a whole number >= 1"):
        Privacy(queries=queries)
