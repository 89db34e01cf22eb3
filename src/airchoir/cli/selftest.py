"""The engine against its oracle, in a second: what it computes, computed again by the plainest means there are."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from airchoir._types import Probabilities, Sums
from airchoir.bank import ScoreBank
from airchoir.exact import answer_probabilities, evaluate
from airchoir.montecarlo import simulate
from airchoir.participation import Participation
from airchoir.privacy import Privacy
from airchoir.quadrature import decision_probabilities
from airchoir.rules import SIMPLEX, Rule
from airchoir.rules.belief import BeliefSum
from airchoir.rules.vote import MajorityVote
from airchoir.scheme import Scheme

_QUADRATURE = 1e-6
"""What the engine promises of every decision probability."""
_REACH, _STEP = 9.0, 0.02
"""Of the oracle's trapezoid, in standard deviations: its own error is below 1e-14."""


@dataclass(frozen=True)
class Check:
    """How far the engine is from its oracle, and how far it may be."""

    name: str
    error: float
    allowed: float
    trouble: str = ""
    """What went wrong where nothing could be compared."""

    @property
    def passed(self) -> bool:
        return self.error <= self.allowed  # never so for NaN


def self_test() -> list[Check]:
    """Every check, in a fixed order; one that breaks down has an infinite error."""
    return [_run(name, allowed, compare) for name, (allowed, compare) in _CHECKS.items()]


def _run(name: str, allowed: float, compare: Callable[[], float]) -> Check:
    try:
        return Check(name, float(compare()), allowed)
    except Exception as error:  # whatever is broken, the other checks say more about it
        return Check(name, math.inf, allowed, " ".join(f"{type(error).__name__}: {error}".split()))


def trapezoid(sums: Sums, noise_std: float) -> Probabilities:
    """P(decide j): the integral of phi(x - s_j) times the product of Phi(x - s_l) over l != j, in units of the noise.

    >>> trapezoid(np.array([[1.0, 1.0, -50.0]]), 1.0).round(6)
    array([[0.5, 0.5, 0. ]])
    """
    nodes = np.arange(-_REACH, _REACH, _STEP)
    found = np.zeros(sums.shape)
    for query, row in enumerate(sums / noise_std):
        for j, own in enumerate(row):
            others = special.ndtr(nodes[:, None] + own - np.delete(row, j)).prod(axis=1)
            found[query, j] = _STEP * (np.exp(-(nodes**2) / 2.0) @ others) / math.sqrt(2.0 * math.pi)
    return found


def _decisions() -> float:
    rng = np.random.default_rng(0)
    errors = []
    for classes in (2, 3, 10, 40):
        sums = rng.multinomial(20, rng.dirichlet(np.full(classes, 0.5)), size=3).astype(np.float64)
        for noise_std in (0.5, 6.0):
            errors.append(np.abs(decision_probabilities(sums, noise_std) - trapezoid(sums, noise_std)).max())
    return float(np.max(errors))


def _calibration() -> float:
    """Theorem 1 with two Phis: how far delta at the calibrated sigma is from the delta asked for, relative to it."""
    errors = []
    for epsilon, delta in ((0.1, 1e-3), (1.0, 1e-6), (5.0, 1e-5)):
        sigma = Privacy(epsilon=epsilon, delta=delta).sigma(SIMPLEX, Participation(20, 1.0))
        mu = SIMPLEX.sensitivity / sigma
        x = epsilon / mu - mu / 2.0
        reached = special.ndtr(-x) - math.exp(epsilon) * special.ndtr(-x - mu)
        errors.append(abs(reached / delta - 1.0))
    return float(np.max(errors))


def _paths() -> float:
    """Votes are counted, beliefs are integrated over all sets of participants; of certain clients both say the same."""
    bank = _bank(certain=True)

    def probabilities(rule: Rule, participation: float) -> Probabilities:
        scheme = Scheme(rule=rule, privacy=Privacy(epsilon=3.0), participation=participation)
        return answer_probabilities(scheme, scheme.link(bank), bank.test_scores)

    errors = [np.abs(probabilities(MajorityVote(), p) - probabilities(BeliefSum(), p)).max() for p in (1.0, 0.6)]
    return float(np.max(errors))


def _simulation() -> float:
    """Standard errors between the exact macro-F1 and that of repeats."""
    scheme = Scheme(privacy=Privacy(epsilon=3.0), participation=0.6)
    bank = _bank(certain=False)
    exact, drawn = evaluate(scheme, bank), simulate(scheme, bank, repeats=400, seed=0)
    return abs(drawn.macro_f1 - exact.macro_f1) / drawn.macro_f1_se


def _bank(*, certain: bool) -> ScoreBank:
    """Six clients of middling skill; `certain` ones put everything on one class."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 4, 50)
    logits = rng.normal(0.0, 1.5, (6, 50, 4))
    logits[:, np.arange(50), labels] += 2.0
    scores = np.eye(4)[logits.argmax(axis=-1)] if certain else special.softmax(logits, axis=-1)
    return ScoreBank(scores.astype(np.float32), labels.astype(np.int64))


_CHECKS: dict[str, tuple[float, Callable[[], float]]] = {
    "decision probabilities against a direct trapezoid": (_QUADRATURE, _decisions),
    "calibrated noise against Theorem 1": (1e-8, _calibration),
    "counted votes against summed beliefs": (2.0 * _QUADRATURE, _paths),
    "simulation against exact, in standard errors": (4.0, _simulation),
}
