"""The audit can fail: real faults, injected into the mechanism and never into the audit, are flagged, and nothing else is."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from airchoir import (
    AlwaysOn,
    Audit,
    Awgn,
    BeliefSum,
    MajorityVote,
    Orthogonal,
    OverTheAir,
    Privacy,
    Rayleigh,
    Scheme,
    audit_privacy,
)
from airchoir._types import PerQuery, Present, Symbols
from airchoir.access import Access
from airchoir.link import Link
from airchoir.participation import Participation
from airchoir.privacy import Accountant, sigma_for
from airchoir.registry import plugins
from airchoir.rules import SIMPLEX, Rule

Perturb = Callable[[Access, Symbols, Present, Link, np.random.Generator], Symbols]
Inject = Callable[[pytest.MonkeyPatch], None]
PERTURB, DRAW, LINK = Access.perturb, Participation.draw, Scheme.link


def perturb_with(perturb: Perturb) -> Inject:
    return lambda patch: patch.setattr(Access, "perturb", perturb)


def silence(client: int) -> Inject:
    """The client adds no noise."""

    def perturb(access: Access, symbols: Symbols, present: Present, link: Link, rng: np.random.Generator) -> Symbols:
        private = PERTURB(access, symbols, present, link, rng)
        private[client] = np.where(present[client][:, None], symbols[client], 0.0)
        return private

    return perturb_with(perturb)


def stutter(client: int) -> Inject:
    """The client sends its symbol twice."""

    def perturb(access: Access, symbols: Symbols, present: Present, link: Link, rng: np.random.Generator) -> Symbols:
        louder = symbols.copy()
        louder[client] *= 2.0
        return PERTURB(access, louder, present, link, rng)

    return perturb_with(perturb)


def twin(queries: int, first: int, second: int) -> Inject:
    """Of the `queries` of a run, two get the same noise."""

    def perturb(access: Access, symbols: Symbols, present: Present, link: Link, rng: np.random.Generator) -> Symbols:
        private = PERTURB(access, symbols, present, link, rng)
        if symbols.shape[1] % queries == 0:
            noise = private - np.where(present[:, :, None], symbols, 0.0)
            private[:, second::queries] += noise[:, first::queries] - noise[:, second::queries]
        return private

    return perturb_with(perturb)


def reseed(access: Access, symbols: Symbols, present: Present, link: Link, rng: np.random.Generator) -> Symbols:
    """Each call draws the same noise again."""
    return PERTURB(access, symbols, present, link, np.random.default_rng(7))


def broadcast(access: Access, symbols: Symbols, present: Present, link: Link, rng: np.random.Generator) -> Symbols:
    """All queries of a call get the same noise."""
    noise = PERTURB(access, np.zeros_like(symbols[:, :1]), present[:, :1], link, rng)
    return np.where(present[:, :, None], symbols, 0.0) + noise


def quieter_by_a_fifth(patch: pytest.MonkeyPatch) -> None:
    def link(scheme: Scheme, bank: Any) -> Link:
        made = LINK(scheme, bank)
        return replace(made, sigma=0.8 * made.sigma)

    patch.setattr(Scheme, "link", link)


def one_set_for(queries: int) -> Inject:
    """The queries of a run share one participant set; every run draws its own."""

    def draw(law: Participation, count: int, rng: np.random.Generator) -> Present:
        if count % queries:  # asked query by query
            return DRAW(law, count, rng)
        return np.repeat(DRAW(law, count // queries, rng), queries, axis=1)

    return lambda patch: patch.setattr(Participation, "draw", draw)


def forget_the_lost(patch: pytest.MonkeyPatch) -> None:
    def share(access: OverTheAir, link: Link, present: Present) -> PerQuery:
        noise: PerQuery = link.sigma / np.sqrt(present.sum(axis=0))
        return noise

    patch.setattr(OverTheAir, "client_noise_std", share)


@dataclass(frozen=True)
class Fault:
    """A mechanism, what goes wrong in it, and how long one must listen to find it."""

    inject: Inject
    repeats: int
    access: Access = field(default_factory=OverTheAir)
    participation: float = 1.0
    privacy: Privacy = field(default_factory=lambda: Privacy(1.0, 1e-6))
    clients: int = 4
    classes: int = 2
    found_by: str = "sum of projections"

    def audit(self) -> Audit:
        scheme = Scheme(access=self.access, privacy=self.privacy, participation=self.participation)
        return audit_privacy(scheme, clients=self.clients, classes=self.classes, repeats=self.repeats)


def about_one(queries: int = 1, delta: float = 1e-6, lost: int = 0, accountant: str = "paper") -> Privacy:
    return Privacy(1.0, delta, queries=queries, lost=lost, accountant=accountant)


ALONE = "closest distance from the symbol alone"
PAIR = "difference of the projections of queries"
SUM = "alternating sum of projections"
FAULTS = {
    "sigma too small by 20 %": Fault(quieter_by_a_fifth, 40_000),
    "sigma too small by 20 %, 10 queries": Fault(quieter_by_a_fifth, 40_000, privacy=about_one(10), clients=2),
    "sigma too small by 20 %, sampled": Fault(
        quieter_by_a_fifth, 40_000, AlwaysOn(), 0.5, about_one(delta=0.1, accountant="tight"), 2, 3, "log-likelihood"
    ),
    "one of four adds no noise": Fault(silence(2), 250_000),
    "one of four adds no noise, always on": Fault(silence(3), 250_000, AlwaysOn()),
    "one of four adds no noise, sampled": Fault(silence(1), 20_000, participation=0.5, classes=3, found_by=ALONE),
    "one of eight adds no noise, rarely heard": Fault(
        silence(6), 20_000, participation=0.1, clients=8, classes=3, found_by=ALONE
    ),
    "first of four heard alone adds no noise": Fault(silence(0), 1_000, Orthogonal()),
    "last of four heard alone adds no noise": Fault(silence(3), 1_000, Orthogonal()),
    "heard alone and sampled, no noise": Fault(silence(2), 1_000, Orthogonal(), 0.5),
    "one client counts twice": Fault(stutter(3), 20_000),
    "one client counts twice, heard alone": Fault(stutter(1), 20_000, Orthogonal()),
    "same noise on both queries": Fault(twin(2, 0, 1), 1_000, privacy=about_one(2), found_by=SUM),
    "same noise on two of five queries": Fault(twin(5, 2, 3), 1_000, privacy=about_one(5), found_by=f"{PAIR} 3 and 4"),
    "same noise heard alone": Fault(twin(2, 0, 1), 1_000, Orthogonal(), privacy=about_one(2), found_by=SUM),
    "each call starts from the same seed": Fault(
        perturb_with(reseed), 1_000, privacy=about_one(3), found_by="a call each"
    ),
    "one noise for a whole call": Fault(perturb_with(broadcast), 1_000, privacy=about_one(2), found_by="one call; "),
    "two may be lost, and nobody makes up for them": Fault(forget_the_lost, 20_000, privacy=about_one(lost=2)),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_flagged_and_its_absence_is_not(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = fault.audit()
    assert (healthy.verdict, healthy.violated) == ("consistent", False)
    fault.inject(monkeypatch)
    found = fault.audit()
    assert (found.verdict, found.violated) == ("VIOLATED", True)
    assert found.epsilon == 1.0
    assert max(found.lower_bound, found.gaussian_lower_bound or 0.0) > 1.0
    assert fault.found_by in found.attack


@pytest.mark.slow
@pytest.mark.parametrize(
    ("access", "clients", "repeats", "claim"),
    [(OverTheAir(), 20, 3_000, 2.612), (AlwaysOn(), 2, 4_000, 2.020)],
    ids=["over-the-air", "always-on"],
)
def test_one_set_reused_over_100_queries_is_flagged_where_few_take_part_and_delta_is_large(
    access: Access, clients: int, repeats: int, claim: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n = 20, p = 0.1, delta = 1e-3, sigma 2.118: 1e5 repeats prove 6.26 where 2.61 is claimed; these fewer prove less.

    At p = 0.5 and delta = 1e-6 the reused set costs 13.98 instead of 9.50, but only in events of chance near 1e-6, which no
    audit of affordable length counts: there the assumption-free bound flags nothing.
    """
    one_set_for(100)(monkeypatch)
    scheme = Scheme(access=access, privacy=Privacy(delta=1e-3, queries=100, accountant="tight"), participation=0.1)
    reused = audit_privacy(scheme, clients=clients, classes=3, sigma=2.118, repeats=repeats)
    assert reused.epsilon == pytest.approx(claim, rel=1e-3), "the price of fresh sets"
    assert reused.violated
    assert reused.gaussian_lower_bound is None, "the verdict must rest on the assumption-free bound alone"


# --- a mechanism that keeps its promise


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("participation", [1.0, 0.6, 0.1])
@pytest.mark.parametrize("access", [pytest.param(access(), id=name) for name, access in plugins(Access).items()])
def test_no_access_is_flagged(access: Access, participation: float, seed: int) -> None:
    scheme = Scheme(access=access, privacy=Privacy(0.5, 0.05), participation=participation)
    found = audit_privacy(scheme, clients=3, classes=3, repeats=3_000, seed=seed)
    assert not found.violated
    assert found.attack
    assert (found.gaussian_lower_bound is None) == (found.gaussian_attack is None)


@pytest.mark.parametrize("lost", [0, 2])
@pytest.mark.parametrize("participation", [1.0, 0.5])
@pytest.mark.parametrize(
    "access", [pytest.param(access(), id=name) for name, access in plugins(Access).items() if access().covers_lost]
)
@pytest.mark.parametrize("name", plugins(Accountant))
def test_no_accountant_is_flagged_whoever_is_lost(name: str, access: Access, participation: float, lost: int) -> None:
    scheme = Scheme(access=access, privacy=Privacy(1.0, 0.01, accountant=name, lost=lost), participation=participation)
    found = audit_privacy(scheme, clients=4, classes=3, repeats=2_000)
    assert not found.violated
    assert found.accountant == name


@pytest.mark.parametrize("rule", [pytest.param(rule(), id=name) for name, rule in plugins(Rule).items()])
@pytest.mark.parametrize("classes", [2, 3])
def test_no_rule_is_flagged_over_several_queries(rule: Rule, classes: int) -> None:
    found = audit_privacy(
        Scheme(rule=rule, privacy=Privacy(1.0, 1e-3, queries=3)), clients=2, classes=classes, repeats=10_000
    )
    assert not found.violated
    assert found.gaussian_lower_bound is not None
    assert found.gaussian_lower_bound > 0.7, "every rule lets one-hot symbols through"


@pytest.mark.parametrize("access", [OverTheAir(), AlwaysOn()], ids=["over-the-air", "always-on"])
@pytest.mark.parametrize(("accountant", "queries"), [("paper", 2), ("tight", 5), ("tight", 30)])
def test_fresh_sets_over_several_queries_are_not_flagged(access: Access, accountant: str, queries: int) -> None:
    scheme = Scheme(
        access=access, privacy=Privacy(delta=1e-2, queries=queries, accountant=accountant), participation=0.3
    )
    found = audit_privacy(scheme, clients=3, classes=3, sigma=4.0, repeats=3_000)
    assert 0.0 < found.lower_bound <= found.epsilon


@pytest.mark.parametrize("seed", range(4))
def test_the_gaussian_bound_comes_close_to_the_truth(seed: int) -> None:
    """The published setting is attacked with 400,000 runs by default: 0.92 and more. Small choirs sing by the same law."""
    found = audit_privacy(Scheme(privacy=Privacy(1.0, 1e-6)), clients=2, classes=2, repeats=400_000, seed=seed)
    assert found.epsilon == 1.0
    assert found.gaussian_lower_bound is not None
    assert 0.9 <= found.gaussian_lower_bound <= 1.0
    assert 0.3 <= found.lower_bound <= found.gaussian_lower_bound


def test_the_assumption_free_bound_comes_close_where_delta_is_large() -> None:
    for access, participation in ((OverTheAir(), 1.0), (AlwaysOn(), 0.5)):
        scheme = Scheme(access=access, privacy=Privacy(1.0, 0.1, accountant="tight"), participation=participation)
        assert 0.9 < audit_privacy(scheme, clients=2, classes=3, repeats=100_000).lower_bound <= 1.0


@pytest.mark.parametrize(("access", "participation"), [(OverTheAir(), 1.0), (AlwaysOn(), 0.5)], ids=["p1", "p0.5"])
def test_a_kept_promise_is_called_violated_no_more_often_than_stated(access: Access, participation: float) -> None:
    """At its exact epsilon. With a confidence of a few percent false alarms do occur, so the count below can count."""
    scheme = Scheme(access=access, privacy=Privacy(0.5, 0.1, accountant="tight"), participation=participation)
    alarms = {}
    for confidence, audits in ((0.9, 40), (0.03, 25)):
        found = [
            audit_privacy(scheme, clients=1, classes=2, repeats=400, confidence=confidence, seed=seed).violated
            for seed in range(audits)
        ]
        alarms[confidence] = np.mean(found)
        allowed = 1.0 - confidence
        assert alarms[confidence] <= allowed + 4.0 * math.sqrt(allowed * confidence / audits)
    assert alarms[0.03] > 0.0


# --- what is audited, and how it is asked


def test_less_noise_than_claimed_is_flagged_and_its_own_price_is_not() -> None:
    enough = sigma_for(1.0, 1e-6, accountant="paper", geometry=SIMPLEX, hidden=Participation(2, 1.0))
    asked: dict[str, Any] = {"clients": 2, "classes": 2, "repeats": 40_000, "sigma": 0.75 * enough}
    claimed = audit_privacy(Scheme(privacy=Privacy(1.0, 1e-6)), **asked)
    priced = audit_privacy(Scheme(privacy=Privacy(delta=1e-6)), **asked)
    assert claimed.sigma == priced.sigma == 0.75 * enough
    assert (claimed.epsilon, claimed.violated) == (1.0, True)
    assert priced.epsilon > 1.3
    assert not priced.violated
    assert priced.gaussian_lower_bound == claimed.gaussian_lower_bound


def test_a_sigma_for_one_query_does_not_cover_four() -> None:
    one = Privacy(1.0, 1e-6).sigma(SIMPLEX, Participation(2, 1.0))
    four = Scheme(privacy=Privacy(1.0, 1e-6, queries=4))
    assert audit_privacy(four, clients=2, classes=2, repeats=5_000, sigma=one).violated
    assert not audit_privacy(four, clients=2, classes=2, repeats=5_000).violated


@pytest.mark.parametrize("channel", [Awgn(snr_db=-90.0), Rayleigh(snr_db=-90.0)], ids=["awgn", "rayleigh"])
def test_the_receivers_noise_is_never_counted(channel: Any) -> None:
    """At -90 dB it would drown everything."""
    loud = Scheme(channel=channel, privacy=Privacy(3.0, 0.01), participation=0.8)
    quiet = replace(loud, channel=replace(channel, snr_db=math.inf))
    asked: dict[str, Any] = {"clients": 2, "classes": 2, "repeats": 5_000}
    assert audit_privacy(loud, **asked) == audit_privacy(quiet, **asked)
    assert audit_privacy(loud, **asked).lower_bound > 1.0


def test_what_is_claimed_and_how_it_was_tested_is_all_there() -> None:
    privacy = Privacy(2.0, 1e-3, accountant="tight", queries=2)
    found = audit_privacy(Scheme(BeliefSum(), privacy=privacy), clients=3, classes=4, repeats=500, confidence=0.99)
    assert (found.epsilon, found.delta, found.queries, found.accountant) == (2.0, 1e-3, 2, "tight")
    assert (found.confidence, found.repeats) == (0.99, 500)
    assert found.sigma == privacy.sigma(SIMPLEX, Participation(3, 1.0))


def test_a_higher_confidence_proves_less() -> None:
    scheme = Scheme(privacy=Privacy(1.0, 0.05))
    bounds = [
        audit_privacy(scheme, clients=1, classes=2, repeats=5_000, confidence=c).gaussian_lower_bound or 0.0
        for c in (0.5, 0.9, 0.999)
    ]
    assert bounds == sorted(bounds, reverse=True)


def test_a_seed_names_an_audit() -> None:
    scheme = Scheme(MajorityVote(), privacy=Privacy(1.0, 0.01), participation=0.5)
    one, again, other = (audit_privacy(scheme, clients=3, classes=3, repeats=1_000, seed=s) for s in (5, 5, 6))
    assert one == again
    assert one != other


def test_progress_rises_to_the_total() -> None:
    heard: list[tuple[int, int]] = []
    scheme = Scheme(privacy=Privacy(1.0, 0.01, queries=2))
    audit_privacy(scheme, clients=3, classes=3, repeats=500, progress=lambda done, total: heard.append((done, total)))
    done, totals = zip(*heard, strict=True)
    assert list(done) == sorted(set(done))
    assert set(totals) == {done[-1]}


def test_a_promise_of_nothing_is_not_audited() -> None:
    for scheme, sigma in ((Scheme(), None), (Scheme(), 0.0), (Scheme(participation=0.5), None)):
        with pytest.raises(ValueError, match=r"\Aepsilon is inf, which promises nothing to audit; give [^\n]+\Z"):
            audit_privacy(scheme, sigma=sigma)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"repeats": 99}, "repeats must be a whole number >= 100, got 99; "),
        ({"repeats": 1000.0}, "repeats must be a whole number >= 100, got 1000.0; "),
        ({"confidence": 0.0}, r"confidence must be in \(0, 1\), got 0.0; "),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0; "),
        ({"confidence": math.nan}, r"confidence must be in \(0, 1\), got nan; "),
        ({"clients": 0}, "clients must be a whole number >= 1, got 0; "),
        ({"classes": 1}, "classes must be a whole number >= 2, got 1; "),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1; "),
        ({"sigma": -1.0}, "sigma must be >= 0, got -1.0; "),
        ({"sigma": math.nan}, "sigma must be >= 0, got nan; "),
    ],
)
def test_what_no_audit_can_work_with_is_refused_in_one_line(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=rf"\A{problem}[^\n]+\Z"):
        audit_privacy(Scheme(privacy=Privacy(1.0, 1e-6)), **options)
