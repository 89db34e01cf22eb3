"""The tighter theorem: what hides a client is mostly the others, not only the noise."""

import math
from typing import ClassVar

import numpy as np

from airchoir._types import Float
from airchoir.participation import Participation
from airchoir.privacy import Accountant
from airchoir.privacy.divergence import log_divergences
from airchoir.privacy.gaussian import log_deltas
from airchoir.privacy.sampling import inner_epsilons, log_inclusion
from airchoir.rules import Geometry


class Tight(Accountant):
    """delta' = eta [(1 - rho) D3 + rho delta(epsilon)], where Theorem 2 has eta delta(epsilon) [docs/privacy.md].

    D3 is the divergence between a client's two symbols among the same others (`divergence`), and rho is the chance that
    redrawing empty rounds makes the others differ by one client. Where an empty round is a round (always-on), eta = p and
    rho = 0. Full participation is Theorem 1.

    Who sees what: the server must learn neither P_t nor |P_t|; the participants share one p and are drawn afresh for every
    query, whatever the data. Every geometry that exists is covered: D3 needs the largest norm and the smallest inner
    product, the other term the sensitivity. The bound is never above Theorem 2 where that holds.
    """

    name: ClassVar[str] = "tight"
    assumption: ClassVar[str] = "the server learns neither P_t nor |P_t| (our proof, not yet peer-reviewed)"

    def theorem(self, hidden: Participation) -> str:
        return "Theorem 1" if hidden.certain else "Theorem 2, tightened"

    def log_deltas(self, epsilons: Float, sigma: float, *, geometry: Geometry, hidden: Participation) -> Float:
        if hidden.certain:
            return log_deltas(epsilons, geometry.sensitivity / sigma if sigma > 0.0 else math.inf)
        check_geometry(geometry)
        eta, rho = hidden.inclusion, others_differ(hidden)
        if sigma == 0.0:
            return np.where(np.isinf(epsilons), -np.inf, log_inclusion(hidden))
        inner = inner_epsilons(epsilons, eta)
        same = log_divergences(epsilons, eta, sigma, geometry)
        differ = log_deltas(inner, geometry.sensitivity / sigma)
        mixed = np.logaddexp(math.log1p(-rho) + same, math.log(rho) + differ) if rho > 0.0 else same
        # Joint convexity alone, without the geometry: no two of the three means are further apart than this.
        convex = log_deltas(inner, max(geometry.sensitivity, geometry.largest_norm) / sigma)
        return log_inclusion(hidden) + np.minimum(mixed, convex)


def others_differ(hidden: Participation) -> float:
    """rho = (n - 1) p q^(n-1) / (1 - q^(n-1)), q = 1 - p: how often the others are not the same set in both cases.

    Given that client i takes part, K ~ Binomial(n - 1, p) others do; given that it does not, K' is K given K >= 1. Coupled
    by quantiles K <= K' <= K + 1, so they differ with probability E K' - E K.

    >>> others_differ(Participation(3, 0.5))
    0.3333333333333333
    """
    if hidden.at_least > 1:
        raise ValueError(
            f"the tight theorem is proved for rounds of at least 0 or 1 clients, got {hidden.at_least}; use accountant 'paper'"
        )
    if hidden.at_least == 0 or hidden.clients == 1:
        return 0.0
    others = hidden.clients - 1
    log_empty = others * math.log1p(-hidden.probability)
    return min(1.0, others * hidden.probability * math.exp(log_empty) / -math.expm1(log_empty))


def check_geometry(geometry: Geometry) -> None:
    """A ValueError unless symbols x, y with |x|, |y| <= r and <x, y> >= c can exist and can differ as much as declared."""
    square, product = geometry.largest_norm**2, geometry.smallest_inner_product
    if not abs(product) <= square * (1.0 + 1e-12):
        raise ValueError(
            f"no two symbols of norm at most {geometry.largest_norm:g} have the smallest inner product {product:g}; "
            f"declare one between {-square:g} and {square:g}"
        )
    furthest = math.sqrt(2 * (square - min(product, square)))
    if not geometry.sensitivity <= furthest * (1.0 + 1e-12) + 1e-12 * geometry.largest_norm:
        raise ValueError(
            f"symbols of norm at most {geometry.largest_norm:g} and inner product at least {product:g} differ by at most "
            f"{furthest:g}, but the sensitivity is {geometry.sensitivity:g}; declare a larger norm or a smaller product"
        )
