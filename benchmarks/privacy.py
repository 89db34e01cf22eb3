"""What does a promise cost to calculate: one query's sigma by every accountant, and the epsilon of many queries?

n = 20, p = 0.5, delta 1e-6, sigma for epsilon 1. Rival: dp-accounting's privacy-loss distribution, pessimistic, at its default
grid of 1e-4 and with its default truncation. Both start from the same function, our bound on one query, and ask it where their
grids lie (dp-accounting's own sampled Gaussian assumes another mechanism). Wanted: 10 times faster at T = 10,000. The two
epsilons must agree to 1e-4; dp-accounting's is read from its delta, as at T = 100,000 its get_epsilon_for_delta gives 0.05 %
too much: beyond epsilon 745 e^-epsilon is 0 to it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

from airchoir._types import Float
from airchoir.participation import Participation
from airchoir.privacy import Accountant, epsilon_for, find_accountant, sigma_for
from airchoir.privacy.calibrate import smallest_smooth
from airchoir.registry import plugins
from airchoir.rules import SIMPLEX
from benchmarks.answer import Answer, Sample
from benchmarks.timing import cpu_seconds, race

HIDDEN = Participation(clients=20, probability=0.5)
EPSILON, DELTA = 1.0, 1e-6
QUERIES = (10, 1_000, 10_000, 100_000)
ASKED = 10_000
"""The T for which there is a target, and at which every accountant is timed."""
GRID = 1e-4
"""dp-accounting's value_discretization_interval, by default."""
HEAVY = (
    ("tight", 100_000, 1e-4, 0.752, 1e-10),
    ("counted", 100_000, 1e-3, 1.384, 1e-15),
    ("tight", 20, 0.5, 301.0, 1e-6),
)
"""Accountant, clients, participation, sigma and delta of hard settings: some losses are rare and far larger than the usual."""
LIMIT_SECONDS = 1.0
TRUNCATED = -50.0
"""dp-accounting's log_mass_truncation_bound, by default."""


def answers(quick: bool) -> Iterator[Answer]:
    for accountant in plugins(Accountant):
        yield one_query(accountant, repeats=2 if quick else 7)
    for queries in QUERIES[:2] if quick else QUERIES:
        for accountant in plugins(Accountant) if queries == ASKED else ["paper"]:
            yield many_queries(accountant, queries, repeats=3 if queries <= ASKED else 1)
    for setting in HEAVY[:1] if quick else HEAVY:
        yield heavy(*setting, repeats=1 if quick else 3)


def sigma_of(accountant: str) -> float:
    """The noise of one query."""
    return sigma_for(EPSILON, DELTA, accountant=accountant, geometry=SIMPLEX, hidden=HIDDEN)


def one_query(accountant: str, *, repeats: int) -> Answer:
    """How long sigma takes; dp-accounting does not know these theorems."""
    times = Sample(tuple(1e3 * cpu_seconds(lambda: sigma_of(accountant)) for _ in range(repeats)), "ms")
    question = f"sigma of one query, p = {HIDDEN.probability:g}, {accountant}"
    return Answer(question, times, note=f"sigma {sigma_of(accountant):.10f}")


def many_queries(accountant: str, queries: int, *, repeats: int) -> Answer:
    """How long the epsilon of `queries` takes, beside dp-accounting's."""
    sigma = sigma_of(accountant)
    rival = Rival(accountant, sigma, queries, last=last_step(accountant, sigma))

    def ours() -> float:
        return epsilon_for(DELTA, sigma, accountant=accountant, geometry=SIMPLEX, hidden=HIDDEN, queries=queries)

    mine, other = race(ours, rival.epsilon, repeats=repeats)
    epsilon, theirs = ours(), rival.exact_epsilon()
    gap = epsilon / theirs - 1.0
    verdict = "" if abs(gap) <= 1e-4 else ": THEY DISAGREE"
    return Answer(
        f"epsilon of {queries:,} queries, p = {HIDDEN.probability:g}, {accountant}",
        mine,
        other,
        ratio_wanted=10.0 if queries == ASKED else None,
        note=f"epsilon {epsilon:.6f}, dp-accounting {theirs:.6f}, apart by {gap:+.1e}{verdict}",
    )


def heavy(accountant: str, clients: int, participation: float, sigma: float, delta: float, *, repeats: int) -> Answer:
    """How long the epsilon of many queries takes where it is hardest; wanted: under a second."""
    hidden = Participation(clients, participation)
    known = {"accountant": accountant, "geometry": SIMPLEX, "hidden": hidden, "queries": ASKED}
    times = tuple(cpu_seconds(lambda: epsilon_for(delta, sigma, **known)) for _ in range(repeats))
    question = f"epsilon of {ASKED:,} queries, n = {clients:,}, p = {participation:g}, delta {delta:g}, {accountant}"
    return Answer(
        question, Sample(times, "s"), limit=LIMIT_SECONDS, note=f"epsilon {epsilon_for(delta, sigma, **known):.6f}"
    )


def log_bound(accountant: str, sigma: float, epsilons: Float) -> Float:
    """log delta of one query."""
    return find_accountant(accountant).log_deltas(epsilons, sigma, geometry=SIMPLEX, hidden=HIDDEN)


def last_step(accountant: str, sigma: float) -> int:
    """Where dp-accounting cuts the losses off, in steps of its grid."""
    last = smallest_smooth(lambda e: float(log_bound(accountant, sigma, np.array([e]))[0]) - TRUNCATED, start=1.0)
    return math.ceil(last / GRID)


@dataclass(frozen=True, eq=False)
class Rival:
    """dp-accounting, given a bound on one query."""

    accountant: str
    sigma: float
    queries: int
    last: int
    """The grid reaches from -last to last steps."""

    def compose(self) -> PrivacyLossDistribution:
        """The bound on the grid (below 0 by symmetry), the law of one loss, and that of the sum."""
        steps = np.arange(self.last + 1)
        above = np.exp(log_bound(self.accountant, self.sigma, steps * GRID))
        below = -np.expm1(-steps[:0:-1] * GRID) + np.exp(-steps[:0:-1] * GRID) * above[:0:-1]
        one = create_pmf_pessimistic_connect_dots_fixed_gap(GRID, -self.last, self.last, np.append(below, above))
        return PrivacyLossDistribution(one).self_compose(self.queries)

    def epsilon(self) -> float:
        """What is timed."""
        return float(self.compose().get_epsilon_for_delta(DELTA))

    def exact_epsilon(self) -> float:
        """From the deltas of the same law."""
        composed = self.compose()
        return smallest_smooth(
            lambda epsilon: math.log(composed.get_delta_for_epsilon(epsilon) / DELTA),
            start=composed.get_epsilon_for_delta(DELTA),
            tolerance=1e-9,
        )
