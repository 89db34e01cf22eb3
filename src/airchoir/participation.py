"""Who takes part in a query: the law of P_t [METHOD, step 1; paper, Algorithm 1]."""

from dataclasses import dataclass

import numpy as np

from airchoir._types import Present


@dataclass(frozen=True)
class Participation:
    """The law of P_t: each of `clients` clients takes part independently with `probability`, afresh for every query.

    With `redraw_empty` a round in which nobody takes part is drawn again, so P_t is conditioned on being non-empty.
    """

    clients: int
    probability: float
    redraw_empty: bool = True

    def __post_init__(self) -> None:
        check_participation(self.probability)
        if not (isinstance(self.clients, int | np.integer) and self.clients >= 1):
            raise ValueError(f"clients must be a whole number >= 1, got {self.clients!r}; a choir needs a voice")

    @property
    def certain(self) -> bool:
        """Whether every client takes part in every query."""
        return self.probability == 1.0 or (self.clients == 1 and self.redraw_empty)

    @property
    def empty_probability(self) -> float:
        """(1 - p)^n, the chance that one draw is empty."""
        return float(np.exp(self._log_empty)) if self.probability < 1.0 else 0.0

    @property
    def inclusion(self) -> float:
        """eta = P(client i is in P_t) = p / (1 - (1 - p)^n) [paper, Theorem 2].

        >>> round(Participation(20, 0.1).inclusion, 14)
        0.11384032599155
        """
        if self.certain:
            return 1.0
        return self.probability / -float(np.expm1(self._log_empty)) if self.redraw_empty else self.probability

    @property
    def mean_size(self) -> float:
        """E|P_t| = n eta."""
        return self.clients * self.inclusion

    @property
    def mean_inverse_size(self) -> float:
        """E[1/|P_t| given that client i takes part] = (1 - (1 - p)^n) / (n p)."""
        if self.probability == 1.0:
            return 1.0 / self.clients
        return -float(np.expm1(self._log_empty)) / (self.clients * self.probability)

    @property
    def _log_empty(self) -> float:
        return self.clients * float(np.log1p(-self.probability))

    def draw(self, queries: int, rng: np.random.Generator) -> Present:
        """One participant set per query, `present[i, t]` telling whether client i takes part in query t."""
        if self.certain:
            return np.ones((self.clients, queries), dtype=bool)
        present = rng.random((self.clients, queries)) < self.probability
        if self.redraw_empty:
            empty = np.flatnonzero(~present.any(axis=0))
            present[:, empty] = self._draw_non_empty(len(empty), rng)
        return present

    def _draw_non_empty(self, queries: int, rng: np.random.Generator) -> Present:
        """Sets from the law given that they are not empty, without rejection (p may be tiny).

        The first client present is a geometric variable cut off at n; whoever comes after it is independent.
        """
        covered = rng.random(queries) * -np.expm1(self._log_empty)
        first = np.floor(np.log1p(-covered) / np.log1p(-self.probability)).astype(np.intp)
        first = np.minimum(first, self.clients - 1)
        order = np.arange(self.clients)[:, None]
        return (order == first) | ((order > first) & (rng.random((self.clients, queries)) < self.probability))


def check_participation(probability: float) -> None:
    """A ValueError unless 0 < p <= 1."""
    if not 0.0 < probability <= 1.0:
        raise ValueError(f"participation must be in (0, 1], got {probability!r}; 1 means that every client answers")
