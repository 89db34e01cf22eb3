"""Attacks on a promise: two neighbouring choirs, the real mechanism between them and the server, and what to look for."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from airchoir._types import Float, Present, Received, Scores, Symbols
from airchoir.channels import Channel
from airchoir.link import Link
from airchoir.rules import Geometry
from airchoir.scheme import Scheme, hear

Heard = Annotated[Float, "repeats queries directions"]
"""What arrived in the victim's slot, along its symbol in the first choir, that in the second, and the others' symbol."""
Statistics = dict[str, Float]
"""What an attacker may threshold, by name, one number per run; larger speaks for the first choir."""

_BLOCK_NUMBERS = 2**14
"""How many symbol entries the clients send at once: little enough for the allocator to recycle the arrays, twice as fast as
more. Part of what a seed means, so never a setting."""
_FEWEST_CALLS = 32
"""Calls of the mechanism in each performance, at least: what goes wrong alike within a call must not look like certainty."""
_MOST_PAIRS = 32


@dataclass(frozen=True, eq=False)
class Stage:
    """What all attacks on one scheme have in common."""

    scheme: Scheme
    link: Link
    amplified: bool
    """Whether the claim counts on the server not knowing who takes part."""
    seeds: np.random.SeedSequence

    @property
    def queries(self) -> int:
        """T: how many queries the claim covers together."""
        return self.scheme.privacy.queries

    @property
    def geometry(self) -> Geometry:
        """What the claim assumes of symbols."""
        return self.scheme.rule.geometry(self.link.classes)

    def one_hot(self, classes: Any) -> Scores:
        """Models that are sure of the given classes, in a bank's type."""
        return np.eye(self.link.classes, dtype=np.float32)[classes]


@dataclass(frozen=True)
class Attack:
    """Two neighbouring choirs, how they are asked, and how the attacker sums up what it hears of either."""

    title: str
    victim: int
    """The client, by its place in the roster, that votes for class 0 in the first choir and for class 1 in the second."""
    others: int
    """The class that everyone else votes for, and the victim too in queries in which the choirs agree."""
    every: int
    """The choirs differ in one of so many queries, from the first on."""
    apart: bool
    """Whether the mechanism is called anew for each query of a run, or once for as many as fit."""
    statistics: Callable[[Stage, "Attack", Heard], Statistics]

    def scores(self, stage: Stage, choir: int) -> Scores:
        """What the clients' models say in one run."""
        votes = np.full((len(stage.link.roster), stage.queries), self.others)
        votes[self.victim, :: self.every] = choir
        return stage.one_hot(votes)

    def directions(self, stage: Stage) -> Annotated[Float, "directions classes"]:
        """The symbols that make up what is heard: the victim's in either choir, and the others'."""
        return stage.scheme.rule.encode(stage.one_hot([[0], [1], [self.others]]))[:, 0]


def battery(stage: Stage) -> list[Attack]:
    """Every attack worth a rehearsal, with every client in turn as the one that differs.

    Others who vote for a third class stay out of the way; others who vote as the victim does in the second choir hide
    it best there, which matters where it is hidden who votes. Differences of queries of which the choirs differ in
    one find noise that is used twice, within one call of the mechanism or by two calls.
    """
    third = min(2, stage.link.classes - 1)
    crowds = {third, 1} if stage.amplified else {third}
    attacks = []
    for victim, client in enumerate(stage.link.roster):
        who = f"client {client} differs in every"
        for others in sorted(crowds, reverse=True):
            title = f"{who} query, others vote for class {others}"
            attacks.append(Attack(title, victim, others, every=1, apart=False, statistics=_totals))
        heard_alone = np.count_nonzero(stage.link.slots == stage.link.slots[victim]) == 1
        if stage.queries > 1 and (heard_alone or victim == 0):
            for title, apart in ((f"{who} second query, one call", False), (f"{who} second query, a call each", True)):
                attacks.append(Attack(title, victim, third, every=2, apart=apart, statistics=_differences))
    return attacks


def _totals(stage: Stage, attack: Attack, heard: Heard) -> Statistics:
    """Sums over the queries of the projection on x - x', and of the log-likelihood ratio where sampling makes it another.

    Where the victim may happen to sing alone its own noise is all there is: does any answer come too close to its symbol?
    """
    found = {"sum of projections": (heard[..., 0] - heard[..., 1]).sum(axis=1)}
    if stage.amplified and stage.link.sigma > 0.0:
        found["sum of log-likelihood ratios"] = log_likelihood_ratio(stage, attack, heard).sum(axis=1)
        directions = attack.directions(stage)
        distance = np.abs(heard - directions @ directions[0]).sum(axis=-1)
        found["closest distance from the symbol alone"] = -distance.min(axis=1)
    return found


def _differences(stage: Stage, attack: Attack, heard: Heard) -> Statistics:
    """The projection of a query in which the choirs differ less that of its neighbour, in which they agree."""
    signed = heard[..., 0] - heard[..., 1]
    signed[:, 1::2] *= -1.0
    found = {"alternating sum of projections": signed[:, : signed.shape[1] // 2 * 2].sum(axis=1)}
    for first in range(min(signed.shape[1] - 1, _MOST_PAIRS)):
        title = f"difference of the projections of queries {first + 1} and {first + 2}"
        found[title] = signed[:, first] + signed[:, first + 1]
    return found


def log_likelihood_ratio(stage: Stage, attack: Attack, heard: Heard) -> Annotated[Float, "repeats queries"]:
    """log of the claimed density of an answer from the first choir over that from the second.

    With b in {0, 1} telling whether the victim takes part and with m others the answer y is N(b x + m c, sigma^2 I) with
    weight P(b, m); |y|^2 cancels, so the projections of y are all it takes.
    """
    law, variance = stage.link.participation, stage.link.sigma**2
    others = np.arange(law.clients - stage.link.lost)  # 0, ..., n - 1 of them, less those whose answers never arrive
    log_weight = _log_binomial(others, law.probability)
    log_absent, log_present = log_weight + math.log1p(-law.probability), log_weight + math.log(law.probability)
    log_absent[others < law.at_least] = log_present[others + 1 < law.at_least] = -math.inf
    directions = attack.directions(stage)
    gram, projected = directions @ directions.T / variance, heard / variance
    crowd = others * projected[..., 2:] - others**2 * gram[2, 2] / 2
    absent = _log_sum_exp(log_absent + crowd)

    def log_density(choir: int) -> Float:
        present = _log_sum_exp(log_present + crowd - others * gram[choir, 2])
        density: Float = np.logaddexp(absent, present + projected[..., choir] - gram[choir, choir] / 2)
        return density

    return log_density(0) - log_density(1)


def _log_binomial(successes: NDArray[np.integer[Any]], probability: float) -> Float:
    """log P(Binomial(n, p) = m) for m = 0, ..., n."""
    failures = successes[::-1]
    log_ways = special.gammaln(len(successes)) - special.gammaln(successes + 1) - special.gammaln(failures + 1)
    weight: Float = log_ways + successes * math.log(probability) + failures * math.log1p(-probability)
    return weight


def _log_sum_exp(exponents: Float) -> Float:
    """log of the sum of exponentials over the last axis, much faster than scipy's."""
    top = exponents.max(axis=-1, keepdims=True)
    total: Float = np.log(np.exp(exponents - top).sum(axis=-1)) + top[..., 0]
    return total


def perform(stage: Stage, attack: Attack, choir: int, runs: int, seeds: np.random.SeedSequence) -> Iterator[Statistics]:
    """The statistics of `runs` runs of one choir, block by block."""
    rng = np.random.Generator(np.random.SFC64(seeds))
    scores = attack.scores(stage, choir)
    clients, queries, classes = scores.shape
    most = max(1, _BLOCK_NUMBERS // (clients * classes))
    size = 1 if attack.apart else min(queries, most)
    block = max(1, min(most // size, runs // _FEWEST_CALLS))
    for start in range(0, runs, block):
        heard = _listen(stage, attack, scores, runs=min(block, runs - start), size=size, rng=rng)
        yield attack.statistics(stage, attack, heard)


def _listen(stage: Stage, attack: Attack, scores: Scores, *, runs: int, size: int, rng: np.random.Generator) -> Heard:
    """What the server hears, `size` queries a call; within a call the queries of one run follow one another."""
    scheme, slot = stage.scheme, stage.link.slots[attack.victim]
    if stage.link.lost:
        scheme = replace(scheme, channel=Losing(scheme.channel, stage.link.lost, attack.victim))
    directions, parts = attack.directions(stage) / stage.link.amplitudes[slot], []
    for start in range(0, scores.shape[1], size):
        asked = np.tile(scores[:, start : start + size], (1, runs, 1))
        received = hear(scheme, stage.link, asked, rng)[slot]
        parts.append((received @ directions.T).reshape(runs, -1, len(directions)))
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Losing(Channel):
    """Another channel, on which the last `lost` of those on air are never heard: the worst that `Privacy(lost=)` allows."""

    name: ClassVar[str] = "losing"
    fades: ClassVar[bool] = False
    air: Channel
    lost: int
    spared: int
    """The client whose privacy is at stake."""
    snr_db: float = math.inf

    def check_participation(self, probability: float) -> None:
        self.air.check_participation(probability)

    def inversion_cost(self, probability: float) -> float:
        return self.air.inversion_cost(probability)

    def transmit(self, private: Symbols, on_air: Present, link: Link, rng: np.random.Generator) -> Received:
        others = on_air.copy()
        others[self.spared] = False
        gone = others & (np.cumsum(others[::-1], axis=0)[::-1] <= self.lost)
        return self.air.transmit(np.where(gone[:, :, None], 0.0, private), on_air, link, rng)
