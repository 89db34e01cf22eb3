"""The ledger: what queries add up to, and that the one too many is refused before anything is transmitted."""

import math
import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import airchoir as ac
from airchoir import (
    AlwaysOn,
    BudgetExceeded,
    CentredVote,
    Orthogonal,
    OverTheAir,
    Privacy,
    PrivacyLedger,
    Scheme,
    ScoreBank,
    infer,
)
from airchoir.participation import Participation
from airchoir.privacy import Accountant, delta_for, epsilon_for, sigma_for
from airchoir.privacy.ledger import Mechanism
from airchoir.registry import plugins
from airchoir.rules import SIMPLEX
from airchoir.rules.centred import centred_simplex

MakeBank = Callable[..., ScoreBank]
EVERYONE = Participation(20, 1.0)
MECHANISM = Mechanism("paper", SIMPLEX, EVERYONE, sigma=5.974598181957385)


# --- what queries add up to


@pytest.mark.parametrize("accountant", sorted(plugins(Accountant)))
@pytest.mark.parametrize("law", [EVERYONE, Participation(20, 0.5)], ids=str)
def test_a_mechanism_costs_what_its_accountant_says(accountant: str, law: Participation) -> None:
    mechanism = Mechanism(accountant, SIMPLEX, law, 4.0)
    terms: dict[str, Any] = {"accountant": accountant, "geometry": SIMPLEX, "hidden": law}
    for queries in (1, 10):
        assert mechanism.epsilon(1e-6, queries=queries) == epsilon_for(1e-6, 4.0, queries=queries, **terms)
        assert mechanism.delta(2.0, queries=queries) == delta_for(2.0, 4.0, queries=queries, **terms)


@pytest.mark.parametrize("accountant", sorted(plugins(Accountant)))
@pytest.mark.parametrize(
    ("law", "sigma", "epsilon"),
    [
        (EVERYONE, 5.9, 8.0),
        (EVERYONE, 20.0, 2.0),
        (Participation(20, 0.5), 4.0, 4.0),
        (Participation(20, 0.3, at_least=0), 4.0, 1.5),
    ],
    ids=str,
)
def test_one_query_more_than_affordable_costs_more_than_the_budget(
    accountant: str, law: Participation, sigma: float, epsilon: float
) -> None:
    mechanism, budget = Mechanism(accountant, SIMPLEX, law, sigma), Privacy(epsilon, 1e-6)
    count = mechanism.affordable(budget)
    assert count >= 2, "or this test sees nothing"
    assert mechanism.epsilon(1e-6, queries=count) <= epsilon * (1 + 1e-4)
    assert mechanism.delta(epsilon, queries=count) <= 1e-6
    assert mechanism.epsilon(1e-6, queries=count + 1) > epsilon


def test_affordable_by_hand() -> None:
    """Everyone takes part: T queries are one at sqrt(T) times the distance, so (sigma / sigma_1)^2, rounded down."""
    for epsilon, delta, factor in product((0.1, 1.0, 8.0), (1e-3, 1e-9), (0.999, 1.001, 3.3, 10.01, 1000.5)):
        sigma = sigma_for(epsilon, delta, accountant="paper", geometry=SIMPLEX, hidden=EVERYONE)
        mechanism = Mechanism("paper", SIMPLEX, EVERYONE, sigma * factor)
        assert mechanism.affordable(Privacy(epsilon, delta)) == math.floor(factor**2)


@pytest.mark.parametrize("delta", [1e-15, 1e-9, 3e-7, 1e-6, 1e-3, 0.07])
@pytest.mark.parametrize("law", [EVERYONE, Participation(20, 0.5), Participation(20, 0.5, at_least=0)], ids=str)
@pytest.mark.parametrize("accountant", ["paper", "tight"])
def test_noise_made_for_a_number_of_queries_buys_that_number(accountant: str, law: Participation, delta: float) -> None:
    """sigma_for rounds up, so a budget that was met by design must not be missed by a rounding error."""
    for epsilon, queries in ((1.0, 1), (0.3, 1), (5.0, 1)):
        terms: dict[str, Any] = {"accountant": accountant, "geometry": SIMPLEX, "hidden": law}
        sigma = sigma_for(epsilon, delta, queries=queries, **terms)
        assert Mechanism(sigma=sigma, **terms).affordable(Privacy(epsilon, delta)) == queries


@pytest.mark.parametrize("law", [EVERYONE, Participation(20, 0.5), Participation(20, 0.5, at_least=0)], ids=str)
def test_so_does_noise_made_for_several(law: Participation) -> None:
    terms: dict[str, Any] = {"accountant": "tight", "geometry": SIMPLEX, "hidden": law}
    for delta, queries in ((1e-9, 7), (1e-5, 50)):
        sigma = sigma_for(4.0, delta, queries=queries, **terms)
        assert Mechanism(sigma=sigma, **terms).affordable(Privacy(4.0, delta)) == queries


def test_no_noise_buys_nothing_and_an_infinite_budget_everything() -> None:
    assert Mechanism("paper", SIMPLEX, EVERYONE, 0.0).affordable(Privacy(8.0, 1e-6)) == 0
    assert Mechanism("tight", SIMPLEX, Participation(20, 0.5), 0.0).affordable(Privacy(8.0, 1e-6)) == 0
    assert Mechanism("paper", SIMPLEX, EVERYONE, 1e-3).affordable(Privacy(math.inf, 1e-6)) >= 2**40


@pytest.mark.parametrize("sigma", [-1.0, math.nan])
def test_a_noise_that_is_none_is_refused(sigma: float) -> None:
    with pytest.raises(ValueError, match=r"sigma must be >= 0"):
        Mechanism("paper", SIMPLEX, EVERYONE, sigma)


# --- charging


def test_a_ledger_counts_up_to_the_budget_and_refuses_the_next() -> None:
    ledger = PrivacyLedger(Privacy(13.51, 1e-6))
    assert (ledger.charged, ledger.left) == (0, None)
    ledger.charge(MECHANISM, queries=60)
    assert (ledger.charged, ledger.left) == (60, 40)
    with pytest.raises(
        BudgetExceeded, match=r"\A41 more queries .* epsilon 13\.51 at delta 1e-06: it buys 100, 60 are"
    ):
        ledger.charge(MECHANISM, queries=41)
    assert (ledger.charged, ledger.left) == (60, 40), "all or none"
    ledger.charge(MECHANISM, queries=40)
    with pytest.raises(BudgetExceeded):
        ledger.charge(MECHANISM)
    assert (ledger.charged, ledger.left) == (100, 0)


def test_a_charge_that_never_fits_is_refused_at_once() -> None:
    ledger = PrivacyLedger(Privacy(0.5, 1e-6))
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="it buys 0, 0 are spent"):
            ledger.charge(MECHANISM)
    assert (ledger.charged, ledger.left) == (0, 0)


def test_the_exception_is_its_own_and_no_complaint_about_input() -> None:
    assert issubclass(ac.BudgetExceeded, Exception)
    assert not issubclass(ac.BudgetExceeded, ValueError)


@pytest.mark.parametrize(
    "other",
    [
        Mechanism("tight", SIMPLEX, EVERYONE, MECHANISM.sigma),
        Mechanism("paper", centred_simplex(3), EVERYONE, MECHANISM.sigma),
        Mechanism("paper", SIMPLEX, Participation(21, 1.0), MECHANISM.sigma),
        Mechanism("paper", SIMPLEX, EVERYONE, math.nextafter(MECHANISM.sigma, math.inf)),
    ],
    ids=["accountant", "geometry", "participation", "noise"],
)
def test_another_mechanism_needs_another_ledger(other: Mechanism) -> None:
    ledger = PrivacyLedger(Privacy(13.51, 1e-6))
    ledger.charge(MECHANISM, queries=3)
    with pytest.raises(ValueError, match=r"this ledger accounts for .*; split the budget and open another ledger\Z"):
        ledger.charge(other)
    assert (ledger.charged, ledger.left) == (3, 97)


def test_a_budget_kept_by_another_accountant_is_refused_before_anything_is_charged() -> None:
    ledger = PrivacyLedger(Privacy(13.51, 1e-6, "tight"))
    with pytest.raises(ValueError, match=r"accountant tight, got a mechanism of paper; give both the same\Z"):
        ledger.charge(MECHANISM)
    assert (ledger.charged, ledger.left) == (0, None)


@pytest.mark.parametrize("queries", [0, -1, 1.5, True * 0.5])
def test_a_charge_of_no_queries_is_refused(queries: Any) -> None:
    ledger = PrivacyLedger(Privacy(13.51, 1e-6))
    with pytest.raises(ValueError, match=r"queries must be a whole number >= 1"):
        ledger.charge(MECHANISM, queries=queries)
    assert (ledger.charged, ledger.left) == (0, None)


def test_threads_together_get_exactly_what_the_budget_buys() -> None:
    ledger, granted, refused = PrivacyLedger(Privacy(13.51, 1e-6)), [], []
    together = threading.Barrier(8)

    def ask() -> None:
        together.wait()
        for _ in range(10):
            try:
                ledger.charge(MECHANISM, queries=3)
                granted.append(3)
            except BudgetExceeded:
                refused.append(3)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(granted), len(refused)) == (99, 80 - 33)
    assert (ledger.charged, ledger.left) == (99, 1)


# --- infer


def scheme(privacy: Privacy | None = None, **options: Any) -> Scheme:
    return Scheme(privacy=privacy or Privacy(1.0, 1e-6), **options)


def test_infer_charges_every_query_of_the_bank(make_bank: MakeBank) -> None:
    bank, ledger = make_bank(queries=30), PrivacyLedger(Privacy(13.51, 1e-6))
    for round_ in (1, 2, 3):
        infer(scheme(), bank, rng=np.random.default_rng(round_), ledger=ledger)
        assert ledger.charged == 30 * round_
    assert ledger.left == 10


def test_a_refused_inference_transmits_nothing(make_bank: MakeBank, monkeypatch: pytest.MonkeyPatch) -> None:
    bank, ledger = make_bank(queries=101), PrivacyLedger(Privacy(13.51, 1e-6))

    def silence(*_: Any) -> None:
        pytest.fail("something was transmitted")

    monkeypatch.setattr(ac.Awgn, "transmit", silence)
    monkeypatch.setattr(ac.MajorityVote, "encode", lambda self, scores: np.eye(4)[np.argmax(scores, axis=-1)])
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(BudgetExceeded):
        infer(scheme(), bank, rng=rng, ledger=ledger)
    assert rng.bit_generator.state == before, "nothing was drawn"
    assert ledger.charged == 0


def test_a_ledger_does_not_change_the_answers(make_bank: MakeBank) -> None:
    bank = make_bank(queries=50)
    without = infer(scheme(), bank, rng=np.random.default_rng(4))
    ledger = PrivacyLedger(Privacy(13.51, 1e-6))
    np.testing.assert_array_equal(infer(scheme(), bank, rng=np.random.default_rng(4), ledger=ledger), without)


@pytest.mark.parametrize(
    "other",
    [
        scheme(Privacy(2.0, 1e-6)),
        scheme(Privacy(1.0, 1e-6, queries=2)),
        scheme(Privacy(1.0, 1e-6, accountant="tight")),
        scheme(rule=CentredVote()),
        scheme(participation=0.5),
        scheme(access=AlwaysOn(), participation=0.5),
    ],
    ids=["epsilon", "queries", "accountant", "rule", "participation", "access"],
)
def test_a_scheme_with_another_guarantee_needs_another_ledger(make_bank: MakeBank, other: Scheme) -> None:
    bank, ledger = make_bank(queries=5), PrivacyLedger(Privacy(13.51, 1e-6))
    infer(scheme(), bank, rng=np.random.default_rng(0), ledger=ledger)
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    with pytest.raises(ValueError, match="open another ledger"):
        infer(other, bank, rng=rng, ledger=ledger)
    assert (ledger.charged, rng.bit_generator.state) == (5, before)


@pytest.mark.parametrize("access", [OverTheAir(), AlwaysOn(), Orthogonal()], ids=["over the air", "always-on", "alone"])
@pytest.mark.parametrize("lost", [0, 2])
def test_a_schemes_mechanism_is_what_its_link_promises(make_bank: MakeBank, access: Any, lost: int) -> None:
    """Sampling is credited only where the server cannot see it: over the air without losses, and always-on."""
    if lost and not access.covers_lost:
        return
    bank = make_bank(clients=5)
    made = scheme(Privacy(1.0, 1e-6, "tight", lost=lost), access=access, participation=0.4)
    mechanism = made.mechanism(bank)
    assert mechanism.sigma == made.link(bank).sigma
    amplified = isinstance(access, AlwaysOn) or (isinstance(access, OverTheAir) and lost == 0)
    assert (mechanism.hidden.inclusion < 1.0) == amplified
    assert mechanism.epsilon(1e-6) == pytest.approx(1.0, rel=1e-9)


def test_a_promise_for_many_queries_is_spent_by_exactly_so_many(make_bank: MakeBank) -> None:
    bank = make_bank(queries=10)
    for access, participation in ((OverTheAir(), 1.0), (OverTheAir(), 0.5), (AlwaysOn(), 0.5)):
        promise = Privacy(4.0, 1e-6, "tight", queries=20)
        ledger, made = PrivacyLedger(promise), scheme(promise, access=access, participation=participation)
        for _ in range(2):
            infer(made, bank, rng=np.random.default_rng(0), ledger=ledger)
        assert ledger.left == 0
        with pytest.raises(BudgetExceeded):
            infer(made, bank, rng=np.random.default_rng(0), ledger=ledger)
