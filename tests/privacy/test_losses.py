"""Lost and colluding clients: what is left where nobody planned for them, and that a plan for d covers any d, end to end."""

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from airchoir import AlwaysOn, BestClient, Orthogonal, OverTheAir, Privacy, Scheme, ScoreBank
from airchoir.access import Access
from airchoir.participation import Participation
from airchoir.privacy import delta_for, epsilon_for, sigma_for
from airchoir.privacy.losses import remaining_sigma
from airchoir.registry import plugins
from airchoir.rules import SIMPLEX
from airchoir.scheme import hear

MakeBank = Callable[..., ScoreBank]
EVERYONE = Participation(20, 1.0)
THEOREM_1 = {"accountant": "paper", "geometry": SIMPLEX, "hidden": EVERYONE}
COVERING = [OverTheAir(), AlwaysOn()]
every_cover = pytest.mark.parametrize("access", COVERING, ids=lambda access: access.name)


# --- nobody planned for it


@pytest.mark.parametrize(("lost", "epsilon"), [(1, 1.028), (2, 1.058), (5, 1.168), (10, 1.455)])
def test_known_epsilons_where_d_of_twenty_are_lost_unplanned(lost: int, epsilon: float) -> None:
    """1.0585 for two: published as 1.059 and as 1.058."""
    sigma = sigma_for(1.0, 1e-6, **THEOREM_1)
    found = epsilon_for(1e-6, remaining_sigma(sigma, EVERYONE, lost), **THEOREM_1)
    assert found == pytest.approx(epsilon, abs=0.0006)


@pytest.mark.parametrize("lost", [1, 7, 19])
def test_what_is_left_is_the_variance_of_those_who_remain_rounded_down(exact: Any, lost: int) -> None:
    for law in (EVERYONE, Participation(20, 0.3, at_least=0), Participation(20, 1.0, at_least=0)):
        for sigma in (1e-3, 5.974598181957, 1e6):
            truth = exact.number(sigma) * exact.mp.sqrt(exact.number(20 - lost) / 20)
            left = exact.number(remaining_sigma(sigma, law, lost))
            assert left <= truth
            assert left >= truth * (1 - exact.number(1e-15))


def test_nobody_lost_leaves_everything_at_any_participation() -> None:
    for law in (EVERYONE, Participation(20, 0.3), Participation(20, 0.3, at_least=0)):
        assert remaining_sigma(3.0, law, 0) == 3.0


def test_over_the_air_at_random_participation_there_is_no_answer() -> None:
    with pytest.raises(
        ValueError, match=r"\Alost = 2 at participation 0\.3 has no answer over the air: .+; plan for losses"
    ):
        remaining_sigma(3.0, Participation(20, 0.3), 2)


def test_always_on_losses_keep_the_amplification(exact: Any) -> None:
    """p D3 at sigma sqrt((n - d) / n): the same as a choir whose noise was that to begin with."""
    law = Participation(20, 0.5, at_least=0)
    terms: dict[str, Any] = {"accountant": "tight", "geometry": SIMPLEX, "hidden": law}
    planned = sigma_for(1.0, 1e-6, **terms)
    left = remaining_sigma(planned, law, 5)
    assert 1e-6 < delta_for(1.0, left, **terms) < delta_for(1.0, left, **THEOREM_1)
    assert remaining_sigma(planned / math.sqrt(15 / 20), law, 5) == pytest.approx(planned, rel=1e-14)


@pytest.mark.parametrize("lost", [-1, 20, 21, 1.5])
def test_a_number_of_lost_that_cannot_be_is_refused(lost: Any) -> None:
    with pytest.raises(ValueError, match=r"\Alost must be [^\n]+, got [^\n]+; [^\n]+\Z"):
        remaining_sigma(3.0, EVERYONE, lost)


# --- planned for


def make_scheme(access: Access, probability: float, lost: int, accountant: str = "paper") -> Scheme:
    return Scheme(access=access, privacy=Privacy(1.0, 1e-6, accountant, lost=lost), participation=probability)


@every_cover
@pytest.mark.parametrize("probability", [1.0, 0.6, 0.1])
@pytest.mark.parametrize("lost", [1, 3, 4])
def test_any_d_of_those_on_air_may_add_nothing_and_the_sum_still_carries_sigma(
    make_bank: MakeBank, access: Access, probability: float, lost: int
) -> None:
    """Every round that is drawn, every choice of d: the rest of the noise, client by client."""
    link = make_scheme(access, probability, lost).link(make_bank(clients=5))
    present = np.unique(link.participation.draw(4000, np.random.default_rng(1)), axis=1)
    on_air = access.on_air(present)
    each = access.client_noise_std(link, present)
    least = math.inf
    for dropped in combinations(range(5), lost):
        kept = on_air.copy()
        kept[list(dropped)] = False
        least = min(least, float((each**2 * kept.sum(axis=0)).min()))
    assert least == pytest.approx(link.sigma**2, rel=1e-12), "enough, and no more than asked for"


@every_cover
@pytest.mark.parametrize("lost", [1, 3])
def test_the_server_hears_at_least_sigma_where_d_clients_are_silent(
    make_bank: MakeBank, access: Access, lost: int
) -> None:
    """Through the literal path, the lost clients' transmissions struck out after their noise was drawn."""
    bank = make_bank(clients=5, classes=3)
    scheme = make_scheme(access, 0.7, lost)
    link, rng, repeats = scheme.link(bank), np.random.default_rng(2), 30_000
    present = link.participation.draw(repeats, rng)
    private = access.perturb(np.zeros((5, repeats, 3)), present, link, rng)
    assert present.sum(axis=0).min() >= (lost + 1 if isinstance(access, OverTheAir) else 0)
    order = np.argsort(~access.on_air(present), axis=0, kind="stable")  # those on air first
    silent = np.take_along_axis(private, order[:, :, None], axis=0)[lost:]
    heard = silent.sum(axis=0)
    assert np.mean(heard**2) == pytest.approx(link.sigma**2, abs=4 * link.sigma**2 * math.sqrt(2 / heard.size))


@pytest.mark.parametrize("probability", [0.9, 0.3, 0.01])
def test_over_the_air_rounds_of_d_or_fewer_never_occur(make_bank: MakeBank, probability: float) -> None:
    link = make_scheme(OverTheAir(), probability, 3).link(make_bank(clients=7))
    sizes = link.participation.draw(3000, np.random.default_rng(3)).sum(axis=0)
    assert sizes.min() == 4
    law = np.array([math.comb(7, m) * probability**m * (1 - probability) ** (7 - m) for m in range(4, 8)])
    seen = np.bincount(sizes, minlength=8)[4:] / 3000
    law /= law.sum()
    assert (np.abs(seen - law) <= 4 * np.sqrt(law * (1 - law) / 3000)).all()


@pytest.mark.parametrize("accountant", ["paper", "tight", "counted"])
@pytest.mark.parametrize("probability", [1.0, 0.5, 0.01])
def test_over_the_air_no_amplification_is_claimed(make_bank: MakeBank, accountant: str, probability: float) -> None:
    theorem_1 = sigma_for(1.0, 1e-6, **THEOREM_1)
    scheme = make_scheme(OverTheAir(), probability, 2, accountant)
    assert scheme.link(make_bank(clients=5)).sigma == theorem_1
    assert scheme.mechanism(make_bank(clients=5)).hidden.certain


@pytest.mark.parametrize("accountant", ["paper", "tight", "counted"])
def test_always_on_keeps_its_amplification_and_its_sigma(make_bank: MakeBank, accountant: str) -> None:
    bank = make_bank(clients=5)
    planned, unplanned = (make_scheme(AlwaysOn(), 0.5, lost, accountant).link(bank).sigma for lost in (3, 0))
    assert planned == unplanned
    assert planned < sigma_for(1.0, 1e-6, **THEOREM_1)
    if accountant != "paper":
        assert planned == pytest.approx(3.212939492914936, rel=5e-11)


@every_cover
@pytest.mark.parametrize("lost", [1, 4])
def test_the_plan_costs_transmit_power(make_bank: MakeBank, access: Access, lost: int) -> None:
    """A client's noise power rises, so the budget leaves a smaller amplitude; here E[s^2] of everyone at p = 1 by hand."""
    bank = make_bank(clients=5)
    amplitude = {d: make_scheme(access, 1.0, d).link(bank).amplitudes[0] for d in (0, lost)}
    sigma = sigma_for(1.0, 1e-6, **THEOREM_1)
    for d, found in amplitude.items():
        assert found == pytest.approx((1 / 4 + sigma**2 / (5 - d)) ** -0.5, rel=1e-12)  # a vote's power is 1/k


@pytest.mark.parametrize("access", [Orthogonal(), BestClient()], ids=lambda access: access.name)
def test_a_client_that_is_heard_alone_cannot_be_covered(access: Access) -> None:
    with pytest.raises(ValueError, match=rf"\Alost must be 0 with {access.name}, got 1: [^\n]+; use over-the-air or"):
        make_scheme(access, 1.0, 1)


def test_exactly_the_accesses_that_share_noise_cover_losses() -> None:
    assert {name for name, access in plugins(Access).items() if access.covers_lost} >= {"over-the-air", "always-on"}
    assert not plugins(Access)["orthogonal"].covers_lost
    assert not plugins(Access)["best-client"].covers_lost


@every_cover
@pytest.mark.parametrize("lost", [5, 6])
def test_at_least_one_client_must_be_left(make_bank: MakeBank, access: Access, lost: int) -> None:
    with pytest.raises(ValueError, match=rf"\Alost must be below the 5 client\(s\) there are, got {lost}; somebody"):
        make_scheme(access, 0.5, lost).link(make_bank(clients=5))


@pytest.mark.parametrize("lost", [-1, 1.5, math.nan, "1", None])
def test_a_number_of_lost_clients_that_is_none_is_refused(lost: Any) -> None:
    with pytest.raises(ValueError, match=r"\Alost must be a whole number >= 0, got [^\n]+; it is how many"):
        Privacy(1.0, lost=lost)


def test_the_condition_on_losses_always_on_is_needed() -> None:
    """Half of the idle clients lost at p = 0.5: whoever is heard took part with 2/3, and delta is 36 times the promise."""
    law = Participation(20, 0.5, at_least=0)
    sigma = sigma_for(1.0, 1e-6, accountant="tight", geometry=SIMPLEX, hidden=law)
    heard = Participation(20, 2 / 3, at_least=0)
    broken = 0.75 * delta_for(1.0, sigma, accountant="tight", geometry=SIMPLEX, hidden=heard)
    assert broken == pytest.approx(3.6e-5, abs=0.05e-5)


@every_cover
def test_planned_losses_are_heard_as_a_noisier_sum_by_the_stated_variance(make_bank: MakeBank, access: Access) -> None:
    """Nobody is lost after all: the literal path's noise has the variance that the exact engine integrates."""
    bank = make_bank(clients=4, classes=3, queries=1)
    scheme = make_scheme(access, 1.0, 2)
    link, repeats = scheme.link(bank), 20_000
    scores = np.repeat(bank.test_scores, repeats, axis=1)
    sums = access.collect(hear(scheme, link, scores, np.random.default_rng(5)), link)
    noise = sums - scheme.rule.encode(bank.test_scores).sum(axis=0)
    stated = float(access.noise_variance(np.ones((4, 1), dtype=bool), link)[0])
    assert stated == pytest.approx(2 * link.sigma**2 + link.slot_noise_variance[0], rel=1e-12)
    assert np.mean(noise**2) == pytest.approx(stated, abs=4 * stated * math.sqrt(2 / noise.size))
