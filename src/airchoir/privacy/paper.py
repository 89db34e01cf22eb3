"""The paper's Theorems 1 and 2: full and random participation."""

import math
from typing import ClassVar

from airchoir._types import Float
from airchoir.participation import Participation
from airchoir.privacy import Accountant
from airchoir.privacy.gaussian import log_deltas
from airchoir.privacy.sampling import inner_epsilons, log_inclusion
from airchoir.rules import Geometry


class Paper(Accountant):
    """Theorem 2, delta' = eta delta(epsilon) with e^epsilon = 1 + (e^epsilon' - 1) / eta; with eta = 1 it is Theorem 1.

    Who sees what: the server must learn neither P_t nor |P_t| for the amplification to hold. The proof compares sums that
    differ by a symbol exchanged (at most the sensitivity) or added (at most the largest norm), so a geometry whose
    symbols are longer than they differ is refused for p < 1.
    """

    name: ClassVar[str] = "paper"
    assumption: ClassVar[str] = "the server learns neither P_t nor |P_t| (Theorem 2, as published)"

    def theorem(self, hidden: Participation) -> str:
        return "Theorem 1" if hidden.certain else "Theorem 2"

    def log_deltas(self, epsilons: Float, sigma: float, *, geometry: Geometry, hidden: Participation) -> Float:
        eta = hidden.inclusion
        if eta < 1.0 and geometry.largest_norm > geometry.sensitivity:
            raise ValueError(
                f"Theorem 2 does not cover symbols of norm {geometry.largest_norm:g} that differ by at most "
                f"{geometry.sensitivity:g}; use participation 1 or shorter symbols"
            )
        mu = geometry.sensitivity / sigma if sigma > 0.0 else math.inf
        return log_inclusion(hidden) + log_deltas(inner_epsilons(epsilons, eta), mu)
