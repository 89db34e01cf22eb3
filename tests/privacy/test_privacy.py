"""(epsilon, delta) <-> sigma for whoever asks by name: Theorem 2 in all directions, and clear words for bad input."""

import dataclasses
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from airchoir.participation import Participation
from airchoir.privacy import (
    NoPrivacy,
    Privacy,
    _sigma,
    check_delta,
    check_epsilon,
    check_lost,
    check_sigma,
    delta_for,
    epsilon_for,
    find_accountant,
    sigma_for,
)
from airchoir.privacy.paper import Paper
from airchoir.rules import SIMPLEX

EPSILONS = [0.0, 1e-6, 0.1, 1.0, 8.0, 100.0, 700.0, 709.0, 710.0, 800.0, 1000.0]
DELTAS = [1e-15, 1e-9, 1e-6]
LAWS = [
    Participation(1, 0.5),
    Participation(20, 1.0),
    Participation(2, 0.5),
    Participation(2, 1e-6),
    Participation(20, 0.1),
    Participation(20, 0.999999),
    Participation(1000, 1e-6),
    Participation(1000, 0.01),
    Participation(100_000, 1e-6),
    Participation(20, 1e-4, at_least=0),
]
CLAIM = 1e-12

deterministic = settings(derandomize=True, deadline=None, max_examples=40)
epsilons = st.one_of(st.just(0.0), st.floats(-6.0, 3.0).map(lambda exponent: 10.0**exponent))
sigmas = st.floats(-1.5, 6.0).map(lambda exponent: 10.0**exponent)
laws = st.builds(Participation, st.integers(1, 1000), st.floats(-6.0, 0.0).map(lambda exponent: 10.0**exponent))
shares = st.floats(-9.0, -0.05).map(lambda exponent: 10.0**exponent)
"""delta as a share of eta, which no noise at all leaves: close to it sigma has no 12 digits to find."""


def sigma(epsilon: float, delta: float, law: Participation) -> float:
    return sigma_for(epsilon, delta, accountant="paper", geometry=SIMPLEX, hidden=law)


def delta(epsilon: float, sigma: float, law: Participation) -> float:
    return delta_for(epsilon, sigma, accountant="paper", geometry=SIMPLEX, hidden=law)


def epsilon(delta: float, sigma: float, law: Participation) -> float:
    return epsilon_for(delta, sigma, accountant="paper", geometry=SIMPLEX, hidden=law)


def test_known_eta_and_sigma_of_theorem_2(known_answers: Any) -> None:
    for p, eta, known in known_answers["theorem2_sigma n=20 epsilon=1 delta=1e-6 [participation, eta, sigma]"]:
        law = Participation(20, p)
        assert law.inclusion == pytest.approx(eta, rel=CLAIM, abs=0)
        assert sigma(1.0, 1e-6, law) == pytest.approx(known, rel=CLAIM, abs=0)
        assert Privacy(epsilon=1.0, delta=1e-6).sigma(SIMPLEX, law) == pytest.approx(known, rel=CLAIM, abs=0)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_sigma_satisfies_delta_and_no_sigma_smaller_by_1e_12_does(exact: Any, law: Participation) -> None:
    for eps in EPSILONS:
        for allowed in DELTAS:
            found = exact.number(sigma(eps, allowed, law))
            assert exact.delta(eps, found, law) <= allowed, (eps, allowed)
            assert exact.delta(eps, found * (1 - exact.number("1e-12")), law) > allowed, (eps, allowed)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_12_digits_of_delta_agree_at_the_epsilon_returned(exact: Any, law: Participation) -> None:
    for noise in [0.03, 0.05, 0.3, 1.0, 5.0, 100.0, 1e6, 1e10]:
        for allowed in DELTAS:
            found = epsilon(allowed, noise, law)
            reached = exact.delta(found, noise, law)
            assert reached <= allowed, (noise, allowed)
            assert found == 0.0 or reached >= allowed * (1 - exact.number("1e-12")), (noise, allowed)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_epsilon_is_exactly_zero_where_delta_at_zero_is_enough(exact: Any, law: Participation) -> None:
    for allowed in DELTAS:
        enough = sigma(0.0, allowed, law)
        assert epsilon(allowed, enough, law) == 0.0
        assert epsilon(allowed, enough * (1 - 2e-12), law) > 0.0


@pytest.mark.parametrize("law", [*LAWS, *(Participation(20, p, at_least=0) for p in (1e-9, 1.3e-12))], ids=str)
def test_delta_is_never_below_the_exact_one_and_agrees_to_12_digits(exact: Any, law: Participation) -> None:
    for eps in EPSILONS:
        for noise in [0.03, 0.05, 0.3, 1.0, 5.0, 1e3, 1e9, 1e14]:
            truth = exact.delta(eps, noise, law)
            assert delta(eps, noise, law) >= truth, (eps, noise)
            if truth > 1e-16:
                assert delta(eps, noise, law) <= truth * (1 + exact.number("1e-12")), (eps, noise)


@pytest.mark.parametrize(("eps", "allowed"), [(0.0, 1e-15), (0.0, 1e-6), (1.0, 1e-6), (1000.0, 1e-15)])
def test_sigma_is_the_root_that_mpmath_finds(exact: Any, eps: float, allowed: float) -> None:
    for law in [Participation(20, 0.3), Participation(1000, 1e-6)]:
        root = exact.invert(lambda noise, law=law: exact.delta(eps, noise, law), allowed)
        assert root <= sigma(eps, allowed, law) <= root * (1 + exact.number("1e-12"))


@pytest.mark.parametrize(("noise", "allowed"), [(0.05, 1e-15), (1.0, 1e-6), (5.0, 1e-9), (1e6, 1e-12)])
def test_epsilon_is_never_below_the_root_that_mpmath_finds(exact: Any, noise: float, allowed: float) -> None:
    for law in [Participation(20, 0.3), Participation(1000, 1e-6)]:
        root = exact.invert(lambda eps, law=law: exact.delta(eps, noise, law), allowed)
        assert root <= epsilon(allowed, noise, law) <= root * (1 + exact.number("1e-11"))


def test_published_faults_are_not_repeated() -> None:
    everyone = Participation(20, 1.0)
    assert sigma(0.1, 1e-6, everyone) > 51.34  # a bracket [0, 20] returned 20
    assert delta(800.0, 0.05, everyone) == pytest.approx(6.9463311887470195e-46, rel=CLAIM)  # e^800 overflows


@pytest.mark.parametrize("at_least", [0, 1])
@pytest.mark.parametrize("clients", [2, 20, 1000])
def test_without_noise_delta_is_the_chance_to_take_part_rounded_up(exact: Any, clients: int, at_least: int) -> None:
    for p in np.geomspace(1e-15, 0.999, 150):
        law = Participation(clients, float(p), at_least)
        eta = exact.eta(law)
        assert eta <= delta(0.0, 0.0, law) <= eta * (1 + exact.number("1e-12"))


def test_no_noise_is_promised_only_where_the_client_hardly_ever_takes_part() -> None:
    rarely = Participation(20, 1e-6, at_least=0)
    assert sigma(1.0, 1.001e-6, rarely) == 0.0
    assert sigma(1.0, 0.999e-6, rarely) > 0.0


def test_a_promise_is_calibrated_once_and_never_mistaken_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def counting(epsilon: float, delta: float, **rest: Any) -> float:
        asked.append({"epsilon": epsilon, "delta": delta, **rest})
        return float(len(asked))

    monkeypatch.setattr("airchoir.privacy.sigma_for", counting)
    promise, law = Privacy(1.2345, 3e-5, "tight", queries=7), Participation(5, 0.3)
    variants = [
        (promise, law),
        (dataclasses.replace(promise, epsilon=1.2346), law),
        (dataclasses.replace(promise, delta=2e-5), law),
        (dataclasses.replace(promise, accountant="paper"), law),
        (dataclasses.replace(promise, queries=8), law),
        (promise, Participation(5, 0.31)),
        (promise, Participation(6, 0.3)),
        (promise, Participation(5, 0.3, at_least=0)),
    ]
    try:
        for _ in range(2):
            found = [privacy.sigma(SIMPLEX, hidden) for privacy, hidden in variants]
            assert found == list(range(1, len(variants) + 1))
    finally:
        _sigma.cache_clear()  # what was counted is no noise
    assert len(asked) == len(variants)
    assert asked[0] == {
        "epsilon": 1.2345,
        "delta": 3e-5,
        "accountant": "tight",
        "geometry": SIMPLEX,
        "hidden": law,
        "queries": 7,
    }


@deterministic
@given(epsilons, sigmas, sigmas, laws)
def test_delta_falls_as_noise_grows(eps: float, one: float, other: float, law: Participation) -> None:
    less, more = sorted([one, other])
    assert delta(eps, more, law) <= delta(eps, less, law) * (1 + CLAIM)


@deterministic
@given(epsilons, epsilons, sigmas, laws)
def test_delta_falls_as_epsilon_grows(one: float, other: float, noise: float, law: Participation) -> None:
    less, more = sorted([one, other])
    assert delta(more, noise, law) <= delta(less, noise, law) * (1 + CLAIM)


@deterministic
@given(epsilons, shares, laws)
def test_epsilon_inverts_sigma(eps: float, share: float, law: Participation) -> None:
    allowed = share * law.inclusion
    noise = sigma(eps, allowed, law)
    back = epsilon(allowed, noise, law)
    assert delta(back, noise, law) == pytest.approx(delta(eps, noise, law), rel=CLAIM, abs=0)
    assert (back == 0.0) == (eps == 0.0)


@deterministic
@given(sigmas, shares, laws)
def test_sigma_inverts_epsilon(noise: float, share: float, law: Participation) -> None:
    allowed = share * law.inclusion
    eps = epsilon(allowed, noise, law)
    assume(eps > 0.0)
    assert sigma(eps, allowed, law) == pytest.approx(noise, rel=CLAIM, abs=0)


@deterministic
@given(epsilons, st.floats(-15.0, -0.1).map(lambda exponent: 10.0**exponent), laws)
def test_theorem_2_never_needs_more_sigma_than_theorem_1(eps: float, allowed: float, law: Participation) -> None:
    assert sigma(eps, allowed, law) <= sigma(eps, allowed, Participation(law.clients, 1.0)) * (1 + CLAIM)


@deterministic
@given(epsilons, shares, st.floats(1e-6, 1.0), st.integers(1, 1000))
def test_one_client_or_all_of_them_is_theorem_1(eps: float, allowed: float, p: float, clients: int) -> None:
    assert sigma(eps, allowed, Participation(1, p)) == sigma(eps, allowed, Participation(clients, 1.0))


@deterministic
@given(epsilons, sigmas, laws)
def test_the_delta_reported_is_one_that_this_noise_buys(eps: float, noise: float, law: Participation) -> None:
    reported = delta(eps, noise, law)
    assume(sys.float_info.min <= reported < 0.9 * law.inclusion)  # below, a float has no 12 digits to claim
    assert sigma(eps, reported, law) <= noise * (1 + CLAIM)


def test_no_privacy_is_an_infinite_epsilon_and_no_noise() -> None:
    assert NoPrivacy() == Privacy() == Privacy(epsilon=math.inf)
    assert NoPrivacy().sigma(SIMPLEX, Participation(20, 0.3)) == 0.0


@pytest.mark.parametrize("eps", [0.0, 1, 1e-300, 1e300, math.inf, np.float32(1.0)])
def test_every_epsilon_from_zero_to_infinity_is_valid(eps: float) -> None:
    assert Privacy(epsilon=eps).sigma(SIMPLEX, Participation(20, 0.3)) >= 0.0


def test_a_promise_is_a_value_that_cannot_change() -> None:
    assert Privacy(1.0, 1e-6) == Privacy(epsilon=1.0, delta=1e-6, accountant="paper", lost=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Privacy().epsilon = 1.0  # type: ignore[misc]


def test_the_paper_is_the_default_accountant() -> None:
    assert isinstance(find_accountant(Privacy().accountant), Paper)


def assert_clear(refused: Callable[[], object], *, names: str, value: str) -> None:
    """One line: what, its value, what to do instead."""
    with pytest.raises(ValueError, match=names) as caught:
        refused()
    problem, remedy = str(caught.value).split("; ", maxsplit=1)
    assert value in problem
    assert remedy
    assert "\n" not in remedy


@pytest.mark.parametrize("bad", [-1.0, -1e-300, -math.inf, math.nan])
def test_epsilon_below_zero_or_nan_is_refused(bad: float) -> None:
    for refused in (
        lambda: check_epsilon(bad),
        lambda: Privacy(epsilon=bad),
        lambda: sigma(bad, 1e-6, LAWS[0]),
        lambda: delta(bad, 1.0, LAWS[0]),
    ):
        assert_clear(refused, names="epsilon", value=repr(bad))


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-6, 2.0, math.inf, math.nan])
def test_delta_outside_0_1_is_refused(bad: float) -> None:
    for refused in (
        lambda: check_delta(bad),
        lambda: Privacy(delta=bad),
        lambda: sigma(1.0, bad, LAWS[0]),
        lambda: epsilon(bad, 1.0, LAWS[0]),
    ):
        assert_clear(refused, names="delta", value=repr(bad))


@pytest.mark.parametrize("bad", [-1.0, -math.inf, math.nan])
def test_sigma_below_zero_or_nan_is_refused(bad: float) -> None:
    for refused in (lambda: check_sigma(bad), lambda: delta(1.0, bad, LAWS[0]), lambda: epsilon(1e-6, bad, LAWS[0])):
        assert_clear(refused, names="sigma", value=repr(bad))


@pytest.mark.parametrize("bad", [-1, 0.5, 1.0, math.nan, "1", None])
def test_lost_must_be_a_whole_number(bad: Any) -> None:
    for refused in (lambda: check_lost(bad), lambda: Privacy(lost=bad)):
        assert_clear(refused, names="lost", value=repr(bad))


@pytest.mark.parametrize("lost", [20, 21])
def test_somebody_must_be_left_to_add_noise(lost: int) -> None:
    check_lost(19, 20)
    assert_clear(lambda: check_lost(lost, 20), names="lost", value=str(lost))


def test_an_unknown_accountant_is_refused_with_the_nearest_known_one() -> None:
    for refused in (
        lambda: Privacy(accountant="papre"),
        lambda: find_accountant("papre"),
        lambda: sigma_for(1.0, 1e-6, accountant="papre", geometry=SIMPLEX, hidden=LAWS[0]),
    ):
        assert_clear(refused, names=r"did you mean 'paper'\? Known: .*paper", value="'papre'")
