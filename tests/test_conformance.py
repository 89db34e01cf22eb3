"""Every registered rule x access x channel: the literal path, `simulate` and `evaluate` tell the same story.

Plug-ins are found through the registry and built with their defaults (the SNR is set low enough for the receiver's noise to
matter), so a new file in a room is tested without another line here. All three paths estimate the same expectations; every
pair must agree within 4 standard errors in accuracy, in every T_c (class c decided rightly), in every D_c (class c decided)
and, once the remainder of the second-order correction is added, in macro-F1.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, product
from zlib import crc32

import numpy as np
import pytest

from airchoir import (
    Awgn,
    BeliefSum,
    BestClient,
    Orthogonal,
    OverTheAir,
    Privacy,
    Rayleigh,
    Scheme,
    ScoreBank,
    evaluate,
    infer,
    simulate,
)
from airchoir._types import Labels, PerQuery, Present, Received, Sums, Symbols
from airchoir.access import Access
from airchoir.channels import Channel
from airchoir.exact import decisions
from airchoir.link import Link
from airchoir.registry import plugins
from airchoir.rules import Rule

MakeBank = Callable[..., ScoreBank]
REPEATS = 120
SNR_DB = 3.0
DELTA = 0.05  # sigma near 2: noise that overturns some decisions and leaves others

ROOMS = {"rule": Rule, "access": Access, "channel": Channel}
FOUND = {room: plugins(base) for room, base in ROOMS.items()}


def build(rule: str, access: str, channel: str, probability: float, epsilon: float) -> Scheme | None:
    """The scheme, or None where it refuses the combination."""
    air = replace(FOUND["channel"][channel](), snr_db=SNR_DB)
    privacy = Privacy(epsilon=epsilon, delta=DELTA)
    try:
        return Scheme(FOUND["rule"][rule](), FOUND["access"][access](), air, privacy, participation=probability)
    except ValueError:
        return None


EVERY = list(product(*FOUND.values(), (1.0, 0.4), (math.inf, 1.0)))
ACCEPTED = {"-".join(map(str, names)): scheme for names in EVERY if (scheme := build(*names)) is not None}


@dataclass(frozen=True)
class Story:
    """What one path says: expectations, and the variance that its own draws leave in each of them."""

    hits: np.ndarray
    decided: np.ndarray
    accuracy: float
    macro_f1: float
    counts_share: float
    """By how much the variance of one run's counts is divided."""
    f1_variance: float


def literal(scheme: Scheme, bank: ScoreBank, seed: int) -> Story:
    """Every query answered REPEATS times by `infer`: a bank that repeats its queries is the same run many times."""
    tiled = ScoreBank(
        np.tile(bank.test_scores, (1, REPEATS, 1)), np.tile(bank.test_labels, REPEATS), bank.val_scores, bank.val_labels
    )
    answers = infer(scheme, tiled, rng=np.random.default_rng(seed)).reshape(REPEATS, bank.queries)
    decided = np.stack([(answers == c).sum(axis=1) for c in range(bank.classes)], axis=1)
    right = answers == bank.test_labels
    hits = np.stack([right[:, bank.test_labels == c].sum(axis=1) for c in range(bank.classes)], axis=1)
    support = np.bincount(bank.test_labels, minlength=bank.classes)
    f1 = (2.0 * hits / (support + decided)).mean(axis=1)
    return Story(
        hits.mean(axis=0), decided.mean(axis=0), right.mean(), f1.mean(), 1.0 / REPEATS, f1.var(ddof=1) / REPEATS
    )


def disagreements(scheme: Scheme, bank: ScoreBank, seed: int) -> list[str]:
    """Every place where two of the three paths are more than 4 standard errors apart."""
    exact = evaluate(scheme, bank, tolerance=1e-3, seed=seed)
    runs = simulate(scheme, bank, repeats=REPEATS, seed=seed)
    behind = decisions(scheme, bank, draws=exact.draws, seed=seed)
    spread = behind.probabilities * (1.0 - behind.probabilities)
    decided_variance = spread.sum(axis=0)
    hits_variance = np.array([spread[bank.test_labels == c, c].sum() for c in range(bank.classes)])
    # One participant set per query leaves at most the variance of the decision itself.
    exact_share = 1.0 / exact.draws if exact.draws else 0.0
    stories = {
        "literal": literal(scheme, bank, seed),
        "simulate": Story(runs.hits, runs.decided, runs.accuracy, runs.macro_f1, 1.0 / REPEATS, runs.macro_f1_se**2),
        "evaluate": Story(exact.hits, exact.decided, exact.accuracy, exact.macro_f1, exact_share, exact.macro_f1_se**2),
    }
    total = np.bincount(bank.test_labels, minlength=bank.classes) + exact.decided
    remainder = float(np.mean(decided_variance**2 / total**4))  # docstring of metrics.summarise
    found = []
    for (one, a), (other, b) in combinations(stories.items(), 2):
        share = a.counts_share + b.counts_share
        for what, apart, variance, extra in (
            ("T_c", a.hits - b.hits, hits_variance * share, 0.0),
            ("D_c", a.decided - b.decided, decided_variance * share, 0.0),
            ("accuracy", a.accuracy - b.accuracy, hits_variance.sum() * share / bank.queries**2, 0.0),
            ("macro-F1", a.macro_f1 - b.macro_f1, a.f1_variance + b.f1_variance, remainder * (other == "evaluate")),
        ):
            errors = (np.abs(apart) - extra) / np.sqrt(variance)
            if np.max(errors) > 4.0:
                found.append(f"{one} and {other} are {np.max(errors):.1f} standard errors apart in {what}: {apart}")
    return found


@pytest.mark.parametrize("scheme", [pytest.param(scheme, id=name) for name, scheme in ACCEPTED.items()])
def test_the_literal_path_simulate_and_evaluate_agree(
    make_bank: MakeBank, scheme: Scheme, request: pytest.FixtureRequest
) -> None:
    bank = make_bank(clients=5, queries=400, classes=3, seed=3)
    assert disagreements(scheme, bank, seed=crc32(request.node.name.encode())) == []


@pytest.mark.parametrize(("room", "name"), [(room, name) for room, found in FOUND.items() for name in found])
def test_every_plugin_is_accepted_in_some_combination(room: str, name: str) -> None:
    index = list(ROOMS).index(room)
    assert any(build(*names) is not None for names in EVERY if names[index] == name)


# --- the test above has teeth: these plug-ins are wrong, and it says so


class LoudAir(Awgn):
    """The receiver's noise is a quarter too strong."""

    def transmit(self, private: Symbols, on_air: Present, link: Link, rng: np.random.Generator) -> Received:
        heard = super().transmit(private, on_air, link, rng)
        silent = replace(link, receiver_noise_variance=0.0)
        return heard + 0.25 * (heard - super().transmit(private, on_air, silent, rng))


class CrossedAir(Awgn):
    """Two classes share their noise, so it has the right variance but is not independent."""

    def transmit(self, private: Symbols, on_air: Present, link: Link, rng: np.random.Generator) -> Received:
        silent = super().transmit(private, on_air, replace(link, receiver_noise_variance=0.0), rng)
        noise = super().transmit(private, on_air, link, rng) - silent
        noise[..., 1] = noise[..., 0]
        return silent + noise


class QuietPhase(Rayleigh):
    """The gain's phase is not inverted."""

    def transmit(self, private: Symbols, on_air: Present, link: Link, rng: np.random.Generator) -> Received:
        phase = np.cos(2.0 * np.pi * rng.random(on_air.shape))
        return super().transmit(private * phase[:, :, None], on_air, link, rng)


class BoastfulSlots(Orthogonal):
    """Claims that its noise is the same whoever is present."""

    fixed_noise = True


class TwoFaced(BestClient):
    """Adds more noise when it transmits than it owns up to when `evaluate` asks about a single round."""

    def client_noise_std(self, link: Link, present: Present) -> PerQuery:
        return super().client_noise_std(link, present) * (1.0 if present.shape[1] == 1 else 1.3)


class Latecomers(OverTheAir):
    """Somebody who does not take part transmits noise as well."""

    def on_air(self, present: Present) -> Present:
        others = present.copy()
        others[0] |= present.shape[1] > 1000
        return others


class LastOnTies(BeliefSum):
    """Decides against the largest sum wherever that is class 0 by a hair."""

    def decide(self, sums: Sums) -> Labels:
        return super().decide(sums - 0.05 * (np.arange(sums.shape[-1]) == 0))


class Pretender(BeliefSum):
    """Claims that beliefs are votes."""

    one_hot = True


@pytest.mark.parametrize(
    "scheme",
    [
        Scheme(channel=LoudAir(SNR_DB), rule=BeliefSum()),
        Scheme(channel=CrossedAir(-3.0), rule=BeliefSum()),
        Scheme(channel=QuietPhase(SNR_DB), participation=0.4),
        Scheme(access=BoastfulSlots(), privacy=Privacy(1.0, DELTA), participation=0.4),
        Scheme(access=TwoFaced(), privacy=Privacy(1.0, DELTA)),
        Scheme(access=Latecomers(), privacy=Privacy(1.0, DELTA), participation=0.4),
        Scheme(rule=LastOnTies()),
        Scheme(rule=Pretender()),
    ],
    ids=lambda scheme: "-".join(type(part).__name__ for part in (scheme.rule, scheme.access, scheme.channel)),
)
def test_a_wrong_plugin_is_caught(make_bank: MakeBank, scheme: Scheme) -> None:
    assert disagreements(scheme, make_bank(clients=5, queries=400, classes=3, seed=3), seed=1)
