"""What does a promise cost to calculate: one query's sigma by every accountant, and the epsilon of many queries?

n = 20, p = 0.5, delta 1e-6, sigma for epsilon 1. Rival: dp-accounting's privacy-loss distribution at its default grid of 1e-4
and with its default truncation, pessimistic, composing the same single-query profile (our bound, evaluated beforehand and not
counted: its own sampled Gaussian assumes another mechanism). Wanted: 10 times faster at T = 10,000, by every accountant, and
below a second. The two epsilons must agree to 1e-4.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from numpy.typing import NDArray

from airchoir.participation import Participation
from airchoir.privacy import Accountant, epsilon_for, find_accountant, sigma_for
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
TRUNCATED = -50.0
"""dp-accounting's log_mass_truncation_bound, by default."""


def answers(quick: bool) -> Iterator[Answer]:
    for name in plugins(Accountant):
        yield one_query(name, repeats=2 if quick else 7)
    for queries in QUERIES[:2] if quick else QUERIES:
        for name in plugins(Accountant) if queries == ASKED else ["paper"]:
            yield many_queries(name, queries, repeats=1 if queries >= ASKED else 3)


def one_query(accountant: str, *, repeats: int) -> Answer:
    """How long sigma takes; there is no rival for these theorems."""

    def ours() -> float:
        return sigma_for(EPSILON, DELTA, accountant=accountant, geometry=SIMPLEX, hidden=HIDDEN)

    sigma = ours()
    return Answer(
        f"sigma of one query, p = {HIDDEN.probability:g}, {accountant}",
        Sample(tuple(1e3 * cpu_seconds(ours) for _ in range(repeats)), "ms"),
        note=f"sigma {sigma:.10f}",
    )


def many_queries(accountant: str, queries: int, *, repeats: int) -> Answer:
    """How long the epsilon of `queries` takes, beside dp-accounting's."""
    sigma = sigma_for(EPSILON, DELTA, accountant=accountant, geometry=SIMPLEX, hidden=HIDDEN)
    rival, found = Rival(*tabulate(accountant, sigma)), {}

    def ours() -> None:
        found["ours"] = epsilon_for(
            DELTA, sigma, accountant=accountant, geometry=SIMPLEX, hidden=HIDDEN, queries=queries
        )

    def theirs() -> None:
        found["theirs"] = rival.epsilon(queries)

    mine, other = race(ours, theirs, repeats=repeats)
    gap = found["ours"] / found["theirs"] - 1.0
    return Answer(
        f"epsilon of {queries:,} queries, p = {HIDDEN.probability:g}, {accountant}",
        mine,
        other,
        ratio_wanted=10.0 if queries == ASKED else None,
        note=f"epsilon {found['ours']:.6f}, dp-accounting {found['theirs']:.6f}, apart by {gap:+.1e}"
        + ("" if abs(gap) <= 1e-4 else ": THEY DISAGREE"),
    )


def tabulate(accountant: str, sigma: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The grid's epsilons, in steps, and our bound at each: by symmetry 1 - e^epsilon + e^epsilon B(-epsilon) below 0."""

    def log_bound(epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        return find_accountant(accountant).log_deltas(epsilons, sigma, geometry=SIMPLEX, hidden=HIDDEN)

    last = smallest(lambda steps: log_bound(np.array([steps * GRID]))[0] < TRUNCATED)
    steps = np.arange(last + 1)
    above = np.exp(log_bound(steps * GRID))
    alpha = np.exp(-steps[:0:-1] * GRID)
    below = 1.0 - alpha + alpha * above[:0:-1]
    return np.append(-steps[:0:-1], steps), np.append(below, above)


def smallest(holds: Callable[[int], bool]) -> int:
    """The smallest power of two from which on a condition holds."""
    steps = 1
    while not holds(steps):
        steps *= 2
    return steps


@dataclass(frozen=True, eq=False)
class Rival:
    """dp-accounting, given a profile on its own grid."""

    steps: NDArray[np.int64]
    deltas: NDArray[np.float64]

    def epsilon(self, queries: int) -> float:
        pmf = create_pmf_pessimistic_connect_dots(GRID, self.steps, self.deltas)
        return float(PrivacyLossDistribution(pmf).self_compose(queries).get_epsilon_for_delta(DELTA))
