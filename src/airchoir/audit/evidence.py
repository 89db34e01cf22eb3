"""From guesses to evidence: thresholds, Clopper-Pearson rates, and the epsilon or mu that they prove."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from airchoir._types import Float
from airchoir.access import NOTHING_HIDDEN
from airchoir.audit.attacks import Attack, Stage, Statistics, perform
from airchoir.privacy import epsilon_for
from airchoir.rules import Geometry

Counts = NDArray[np.integer[Any]]
Bound = Callable[[Float, Float], Float]
"""(lower bound on the rate `true`, upper bound on the rate `false`) -> what they prove."""

_MOST_THRESHOLDS = 100
_CAUTION = 0.01
"""By how much smaller the risk is in rehearsals: of many thresholds some look good by luck, far out, where rates vary."""


@dataclass(frozen=True)
class Guess:
    """An attacker that has made up its mind: where the statistic exceeds the threshold it was the first choir."""

    attack: Attack
    statistic: str
    threshold: float
    mirrored: bool
    """Whether it is after the second choir, and names that elsewhere."""

    @property
    def title(self) -> str:
        """The whole attack in words."""
        return f"{self.attack.title}; {self.statistic}"


def rehearse(stage: Stage, attack: Attack, bounds: list[Bound], runs: int, risk: float) -> list[tuple[float, Guess]]:
    """For each bound how much the best guess proves in rehearsal, and that guess."""
    first, second = (_gather(list(perform(stage, attack, i, runs, s))) for i, s in enumerate(stage.seeds.spawn(2)))
    best: list[tuple[float, Guess]] = []
    for statistic, ours in first.items():
        theirs = second[statistic]
        thresholds = _thresholds(np.sort(np.concatenate([ours, theirs])))
        above = [runs - np.searchsorted(np.sort(each), thresholds, side="right") for each in (ours, theirs)]
        for mirrored in (False, True):
            rates = _rates(above[0], above[1], runs, _CAUTION * risk, mirrored=mirrored)
            found = []
            for bound in bounds:
                values = bound(*rates)
                top = int(np.argmax(values))
                found.append((float(values[top]), Guess(attack, statistic, float(thresholds[top]), mirrored)))
            best = [max(pair, key=lambda one: one[0]) for pair in zip(best or found, found, strict=True)]
    return best


def _gather(blocks: list[Statistics]) -> Statistics:
    return {statistic: np.concatenate([block[statistic] for block in blocks]) for statistic in blocks[0]}


def _thresholds(pooled: Float) -> Float:
    """Some of the sorted values, closer together towards both ends, where rates are small."""
    ranks = np.unique(np.geomspace(1, len(pooled) // 2, _MOST_THRESHOLDS).astype(np.intp)) - 1
    return np.concatenate([pooled[ranks], pooled[-1 - ranks]])


def measure(stage: Stage, guesses: list[Guess], bounds: list[Bound], runs: int, risk: float) -> list[float]:
    """What the guesses, all by one attack, prove on fresh runs."""
    above = np.zeros((2, len(guesses)), dtype=np.int64)
    for choir, seeds in enumerate(stage.seeds.spawn(2)):
        for found in perform(stage, guesses[0].attack, choir, runs, seeds):
            above[choir] += [np.count_nonzero(found[guess.statistic] > guess.threshold) for guess in guesses]
    shown = []
    for bound, guess, (ours, theirs) in zip(bounds, guesses, above.T[..., None], strict=True):
        shown.append(float(bound(*_rates(ours, theirs, runs, risk, mirrored=guess.mirrored))[0]))
    return shown


def _rates(first: Counts, second: Counts, runs: int, risk: float, *, mirrored: bool) -> tuple[Float, Float]:
    """A lower bound on `true` and an upper one on `false`, from how often each choir's runs exceeded the threshold."""
    true, false = (runs - second, runs - first) if mirrored else (first, second)
    return at_least(true, runs, risk), at_most(false, runs, risk)


def at_least(hits: Counts, runs: int, risk: float) -> Float:
    """The Clopper-Pearson lower bound on a probability, wrong with probability at most `risk`.

    >>> at_least(np.array([0, 9, 10]), 10, 0.025).round(4)
    array([0.    , 0.555 , 0.6915])
    """
    bound: Float = special.betaincinv(np.maximum(hits, 1), runs - hits + 1, risk)
    return np.where(hits > 0, bound, 0.0)


def at_most(hits: Counts, runs: int, risk: float) -> Float:
    """The Clopper-Pearson upper bound on a probability, wrong with probability at most `risk`.

    >>> at_most(np.array([0, 1, 10]), 10, 0.025).round(4)
    array([0.3085, 0.445 , 1.    ])
    """
    bound: Float = special.betaincinv(hits + 1, np.maximum(runs - hits, 1), 1.0 - risk)
    return np.where(hits < runs, bound, 1.0)


def epsilon_shown(true: Float, false: Float, delta: float) -> Float:
    """log((true - delta) / false) [Kairouz, Oh and Viswanath 2015, Theorem 2.1].

    >>> epsilon_shown(np.array([0.5]), np.array([0.1]), 0.01).round(6)
    array([1.589235])
    """
    with np.errstate(divide="ignore"):  # minus infinity where nothing is shown
        return np.log(np.maximum(true - delta, 0.0)) - np.log(false)


def mu_shown(true: Float, false: Float) -> Float:
    """Phi^-1(true) - Phi^-1(false): how far apart two unit Gaussians must be for such rates."""
    distance: Float = special.ndtri(true) - special.ndtri(false)
    return distance


def epsilon_of(mu: float, delta: float, geometry: Geometry) -> float:
    """What two unit Gaussians `mu` apart cost at `delta`."""
    if mu <= 0.0:
        return 0.0
    sigma = geometry.sensitivity / mu
    return epsilon_for(delta, sigma, accountant="paper", geometry=geometry, hidden=NOTHING_HIDDEN)
