"""What queries add up to: a mechanism's total cost, how many queries a budget buys, and a ledger that refuses the next."""

import threading
from dataclasses import dataclass

from airchoir.participation import Participation
from airchoir.privacy import Privacy, check_queries, check_sigma, delta_for, epsilon_for
from airchoir.rules import Geometry

_MOST_QUERIES = 2**40


@dataclass(frozen=True)
class Mechanism:
    """What an accountant must know of how one query is answered, noise included."""

    accountant: str
    geometry: Geometry
    hidden: Participation
    """The law of P_t as far as the server cannot see it."""
    sigma: float

    def __post_init__(self) -> None:
        check_sigma(self.sigma)

    def epsilon(self, delta: float, *, queries: int = 1) -> float:
        """What `queries` answers cost together at `delta`, rounded up.

        >>> from airchoir.rules import SIMPLEX
        >>> round(Mechanism("paper", SIMPLEX, Participation(20, 1.0), sigma=5.974598181957).epsilon(1e-6, queries=100), 9)
        13.507003111
        """
        return epsilon_for(
            delta,
            self.sigma,
            accountant=self.accountant,
            geometry=self.geometry,
            hidden=self.hidden,
            queries=queries,
        )

    def delta(self, epsilon: float, *, queries: int = 1) -> float:
        """With which probability `queries` answers together may break a promise of `epsilon`, rounded up."""
        return delta_for(
            epsilon,
            self.sigma,
            accountant=self.accountant,
            geometry=self.geometry,
            hidden=self.hidden,
            queries=queries,
        )

    def affordable(self, budget: Privacy) -> int:
        """The largest number of queries that stays within the budget's epsilon and delta.

        >>> from airchoir.rules import SIMPLEX
        >>> Mechanism("paper", SIMPLEX, Participation(20, 1.0), sigma=5.974598181957385).affordable(Privacy(13.51, 1e-6))
        100
        """

        def fits(queries: int) -> bool:
            return self.delta(budget.epsilon, queries=queries) <= budget.delta

        if not fits(1):
            return 0
        enough, too_many = 1, 2
        while fits(too_many):
            enough, too_many = too_many, 2 * too_many
            if too_many > _MOST_QUERIES:
                return _MOST_QUERIES
        while too_many - enough > 1:
            middle = (enough + too_many) // 2
            enough, too_many = (middle, too_many) if fits(middle) else (enough, middle)
        return enough


class BudgetExceeded(Exception):  # noqa: N818  (says what happened)
    """A query was refused, and nothing was transmitted: its answer would have cost more than the budget."""


class PrivacyLedger:
    """Counts queries against a budget of (epsilon, delta) in total and refuses the one that would exceed it.

    Of the budget it takes epsilon, delta and the accountant; it counts the queries itself. A ledger accounts for one
    mechanism, fixed by the first charge: the theorems on many queries hold for a number and a noise chosen beforehand. A
    charge is never taken back. Safe to share between threads.
    """

    def __init__(self, budget: Privacy) -> None:
        self.budget = budget
        self._lock = threading.Lock()
        self._mechanism: Mechanism | None = None
        self._affordable = 0
        self._charged = 0

    @property
    def charged(self) -> int:
        """How many queries have been charged."""
        return self._charged

    @property
    def left(self) -> int | None:
        """How many more the budget buys; None before the first charge has fixed the mechanism."""
        return None if self._mechanism is None else self._affordable - self._charged

    def charge(self, mechanism: Mechanism, *, queries: int = 1) -> None:
        """Charge `queries` before they are transmitted, all or none; BudgetExceeded where they do not fit."""
        check_queries(queries)
        with self._lock:
            if self._mechanism is None:
                if mechanism.accountant != self.budget.accountant:
                    raise ValueError(
                        f"the budget is kept by the accountant {self.budget.accountant}, got a mechanism of "
                        f"{mechanism.accountant}; give both the same"
                    )
                self._mechanism, self._affordable = mechanism, mechanism.affordable(self.budget)
            elif mechanism != self._mechanism:
                raise ValueError(
                    f"this ledger accounts for {self._mechanism}, got {mechanism}; split the budget and open another ledger"
                )
            if self._charged + queries > self._affordable:
                raise BudgetExceeded(
                    f"{queries} more queries would exceed the budget of epsilon {self.budget.epsilon:g} at delta "
                    f"{self.budget.delta:g}: it buys {self._affordable}, {self._charged} are spent; add noise or stop asking"
                )
            self._charged += queries
