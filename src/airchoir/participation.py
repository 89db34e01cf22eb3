"""Who takes part in a query: the law of P_t [METHOD, step 1; paper, Algorithm 1]."""

from dataclasses import dataclass

import numpy as np

from airchoir._types import PerSize, Present


@dataclass(frozen=True)
class Participation:
    """The law of P_t: each of `clients` clients takes part independently with `probability`, afresh for every query.

    A round with fewer than `at_least` of them is drawn again, so P_t is conditioned on being large enough: by default on
    being non-empty.
    """

    clients: int
    probability: float
    at_least: int = 1

    def __post_init__(self) -> None:
        check_participation(self.probability)
        if not (isinstance(self.clients, int | np.integer) and self.clients >= 1):
            raise ValueError(f"clients must be a whole number >= 1, got {self.clients!r}; a choir needs a voice")
        if not (isinstance(self.at_least, int | np.integer) and 0 <= self.at_least <= self.clients):
            raise ValueError(
                f"at_least must be a whole number from 0 to {self.clients}, got {self.at_least!r}; no round is larger"
            )
        object.__setattr__(self, "probability", float(self.probability))  # float32 would spread

    @property
    def certain(self) -> bool:
        """Whether every client takes part in every query."""
        return self.probability == 1.0 or self.clients == self.at_least

    @property
    def empty_probability(self) -> float:
        """(1 - p)^n, the chance that one draw is empty."""
        return float(np.exp(self._log_empty)) if self.probability < 1.0 else 0.0

    @property
    def inclusion(self) -> float:
        """eta = P(client i is in P_t) = E|P_t| / n; p / (1 - (1 - p)^n) where empty rounds are drawn again [Theorem 2].

        >>> round(Participation(20, 0.1).inclusion, 14)
        0.11384032599155
        """
        if self.certain:
            return 1.0
        if self.at_least == 0:
            return self.probability
        if self.at_least == 1:
            return self.probability / -float(np.expm1(self._log_empty))
        sizes, law = self.size_law
        return float(sizes @ law) / self.clients

    @property
    def mean_size(self) -> float:
        """E|P_t| = n eta."""
        return self.clients * self.inclusion

    @property
    def size_law(self) -> tuple[PerSize, PerSize]:
        """The sizes m = max(at_least, 1), ..., n that P_t can have with anyone in it, and P(|P_t| = m) for each.

        With `at_least` = 0 what is missing to 1 is the chance of an empty round.

        >>> Participation(2, 0.5).size_law
        (array([1., 2.]), array([0.66666667, 0.33333333]))
        """
        sizes = np.arange(max(self.at_least, 1), self.clients + 1, dtype=np.float64)
        if self.certain:
            return sizes, (sizes == self.clients).astype(np.float64)
        log_odds = np.log(self.probability) - np.log1p(-self.probability)
        log_step = np.log((self.clients - sizes[:-1]) / sizes[1:]) + log_odds  # log P(m + 1) / P(m), falling in m
        mode = np.count_nonzero(log_step > 0.0)
        # Adding steps up from the mode outwards errs far less than log-gammas near n log n that cancel.
        below, above = -np.cumsum(log_step[:mode][::-1])[::-1], np.cumsum(log_step[mode:])
        law = np.exp(np.concatenate([below, [0.0], above]))
        law /= law.sum()
        return sizes, law if self.at_least > 0 else law * -np.expm1(self._log_empty)

    def mean_inverse_size(self, lost: int = 0) -> float:
        """E[1 / (|P_t| - lost) given that client i takes part]; (1 - (1 - p)^n) / (n p) where none is lost.

        >>> Participation(2, 0.5).mean_inverse_size()
        0.75
        """
        smallest = self.clients if self.certain else max(self.at_least, 1)
        if not 0 <= lost < smallest:
            raise ValueError(f"lost must be >= 0 and below the smallest round, {smallest}, got {lost}; raise at_least")
        if self.certain:
            return 1.0 / (self.clients - lost)
        if lost == 0 and self.at_least <= 1:
            return -float(np.expm1(self._log_empty)) / (self.clients * self.probability)
        sizes, law = self.size_law
        return float((law * sizes) @ (1.0 / (sizes - lost)) / (law @ sizes))

    @property
    def _log_empty(self) -> float:
        return self.clients * float(np.log1p(-self.probability))

    def draw(self, queries: int, rng: np.random.Generator) -> Present:
        """One participant set per query, `present[i, t]` telling whether client i takes part in query t."""
        if self.certain:
            return np.ones((self.clients, queries), dtype=bool)
        present = rng.random((self.clients, queries)) < self.probability
        if self.at_least > 0:
            short = np.flatnonzero(present.sum(axis=0) < self.at_least)
            if len(short):
                present[:, short] = self._draw_by_size(len(short), rng)
        return present

    def sets(self, most: int) -> tuple[Present, PerSize]:
        """Participant sets and their weights: all 2^n where those are at most `most`, else `most` sets, always the same.

        >>> present, law = Participation(2, 0.5).sets(4)
        >>> present.T.astype(int).tolist(), law.round(3).tolist()
        ([[0, 0], [1, 0], [0, 1], [1, 1]], [0.0, 0.333, 0.333, 0.333])
        """
        if not self.can_list(most):
            return self.draw(most, np.random.default_rng(0)), np.full(most, 1.0 / most)
        present = (np.arange(2**self.clients) >> np.arange(self.clients)[:, None] & 1).astype(bool)
        sizes = present.sum(axis=0)
        law = np.where(
            sizes >= self.at_least, self.probability**sizes * (1.0 - self.probability) ** (self.clients - sizes), 0.0
        )
        return present, law / law.sum()

    def can_list(self, most: int) -> bool:
        """Whether there are at most `most` participant sets, so that `sets` leaves none out."""
        return 2.0**self.clients <= most

    def _draw_by_size(self, queries: int, rng: np.random.Generator) -> Present:
        """Sets that are large enough, without rejection (p may be tiny): first the size, then who it is."""
        sizes, law = self.size_law
        size = rng.choice(sizes, queries, p=law)
        rank = rng.random((self.clients, queries)).argsort(axis=0).argsort(axis=0)
        return rank < size


def check_participation(probability: float) -> None:
    """A ValueError unless 0 < p <= 1."""
    if not 0.0 < probability <= 1.0:
        raise ValueError(f"participation must be in (0, 1], got {probability!r}; 1 means that every client answers")
