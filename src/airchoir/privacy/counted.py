"""What holds when the server can count the transmitters (by energy, pilots or timing): it learns |P_t|, not P_t."""

import math
from functools import lru_cache
from typing import ClassVar

import numpy as np

from airchoir._types import Float, PerSize
from airchoir.participation import Participation
from airchoir.privacy import Accountant
from airchoir.privacy.gaussian import log_deltas
from airchoir.privacy.sampling import inner_epsilons
from airchoir.privacy.tight import Tight
from airchoir.rules import Geometry

_RARE = 1e-60
"""Sizes with a smaller probability are counted as the largest size, which is the worst."""
_MOST_SIZES = 512
_NODES = 48
_ALLOWANCE = 1e-11
"""Added to log delta where a quadrature replaces many sizes: more than it is off (tests: 1e-13)."""
_BLOCK = 2**16


class Counted(Accountant):
    """delta' = E [(m/n) delta(log(1 + (n/m)(e^epsilon' - 1)))] over m = |P_t| [docs/privacy.md].

    Given |P_t| = m, client 1 is in P_t with probability m/n; it and the client that stands in for it differ by at most
    the sensitivity, so every geometry is covered. The bound is attained (all others sending client 1's other symbol): for
    one query it is exact. Where everyone transmits in every round (always-on) there is nothing to count: the tight bound.

    Who sees what: the server may learn |P_t|, never P_t.
    """

    name: ClassVar[str] = "counted"
    assumption: ClassVar[str] = "the server may count the transmitters, so it learns |P_t|, but never P_t"

    def theorem(self, hidden: Participation) -> str:
        if hidden.at_least == 0:
            return Tight().theorem(hidden)
        return "Theorem 1" if hidden.certain else "Theorem 2 given |P_t|"

    def log_deltas(self, epsilons: Float, sigma: float, *, geometry: Geometry, hidden: Participation) -> Float:
        if hidden.at_least == 0:
            return Tight().log_deltas(epsilons, sigma, geometry=geometry, hidden=hidden)
        mu = geometry.sensitivity / sigma if sigma > 0.0 else math.inf
        if hidden.certain:
            return log_deltas(epsilons, mu)
        sizes, log_law = _law(hidden)
        eta = sizes / hidden.clients
        log_weight = log_law + np.log(eta)
        block = max(1, _BLOCK // len(sizes))
        blocks = [
            _log_mean(inner_epsilons(epsilons[i : i + block, None], eta), mu, log_weight)
            for i in range(0, len(epsilons), block)
        ]
        return np.minimum(np.concatenate(blocks), 0.0)


def _log_mean(inner: Float, mu: float, log_weight: PerSize) -> Float:
    logs = log_deltas(inner, mu) + log_weight
    top = logs.max(axis=1)
    reference = np.where(top == -np.inf, 0.0, top)
    with np.errstate(divide="ignore"):
        return reference + np.log(np.exp(logs - reference[:, None]).sum(axis=1))


@lru_cache(maxsize=16)
def _law(hidden: Participation) -> tuple[PerSize, PerSize]:
    """Sizes m that P_t has, and log P(|P_t| = m), with the sizes that are as good as impossible counted as m = n.

    The summand grows with m, being the perspective t f(1/t) of a decreasing convex f, so that this is the private side. Many
    sizes are replaced by the nodes of the binomial law's own Gaussian quadrature.
    """
    sizes, law = hidden.size_law
    kept = law > _RARE
    kept[-1] = False
    rare = max(law[-1], (hidden.clients + 1) * _RARE)
    if np.count_nonzero(kept) > _MOST_SIZES and not kept[0]:
        nodes, weights = _quadrature(hidden)
        log_weights = np.log(weights) + _ALLOWANCE
    else:
        nodes, log_weights = sizes[kept], np.log(law[kept])
    return np.append(nodes, sizes[-1]), np.append(log_weights, np.log(rare))


def _quadrature(hidden: Participation) -> tuple[PerSize, PerSize]:
    """Gaussian nodes and weights of Binomial(n, p), from the Krawtchouk polynomials' recurrence [Golub and Welsch 1969]."""
    n, p = hidden.clients, hidden.probability
    k = np.arange(_NODES, dtype=np.float64)
    beside = np.sqrt(k[1:] * (n - k[1:] + 1.0) * p * (1.0 - p))
    nodes, vectors = np.linalg.eigh(np.diag(p * (n - k) + (1.0 - p) * k) + np.diag(beside, 1) + np.diag(beside, -1))
    return nodes, vectors[0] ** 2
