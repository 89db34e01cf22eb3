"""(epsilon, delta) <-> sigma: what noise buys what promise, per query and per client model.

Neighbouring: two choirs that differ in one client's whole model. Who sees what: the server sees the received sum (every
slot of it) and nothing else; clients trust one another. sigma is always the standard deviation of the aggregate privacy
noise; the receiver's own noise is never counted. Every bound is rounded towards more privacy.

An accountant is a theorem: it bounds delta. `calibrate` turns any of them around.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, final

import numpy as np

from airchoir._types import Float
from airchoir.participation import Participation
from airchoir.privacy import calibrate, composition
from airchoir.privacy.gaussian import log_delta
from airchoir.privacy.loss_law import Profile
from airchoir.registry import lookup
from airchoir.rules import Geometry


class Accountant(ABC):
    """A theorem that bounds delta, given how symbols differ and which sampling the server cannot see."""

    name: ClassVar[str]
    assumption: ClassVar[str]
    """What must hold of the server for random participation to count, in one short sentence, for people."""

    @abstractmethod
    def theorem(self, hidden: Participation) -> str:
        """The name of the statement that applies, for people."""

    @abstractmethod
    def log_deltas(self, epsilons: Float, sigma: float, *, geometry: Geometry, hidden: Participation) -> Float:
        """An upper bound on log delta of one query for every epsilon, non-increasing in epsilon and in `sigma`.

        `hidden` is the law of the participant set as far as the server cannot see it (one client: nothing hidden).
        """

    @final
    def log_delta(self, epsilon: float, sigma: float, *, geometry: Geometry, hidden: Participation) -> float:
        """`log_deltas` of one epsilon."""
        return float(self.log_deltas(np.array([epsilon]), sigma, geometry=geometry, hidden=hidden)[0])


@dataclass(frozen=True)
class Privacy:
    """What every client's model is promised per query: (epsilon, delta)-differential privacy against the server."""

    epsilon: float = math.inf
    delta: float = 1e-6
    accountant: str = "paper"
    queries: int = 1
    """T: epsilon and delta hold for so many queries together."""
    lost: int = 0
    """How many of those who take part may be lost, or collude with the server, without breaking the promise."""

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_queries(self.queries)
        check_lost(self.lost)
        find_accountant(self.accountant)

    def sigma(self, geometry: Geometry, hidden: Participation) -> float:
        """The aggregate noise standard deviation that buys the promise, rounded up.

        `hidden` is what the access hides, `access.hidden(law, lost)`: where clients may be lost over the air that is nothing.

        >>> from airchoir.rules import SIMPLEX
        >>> Privacy(epsilon=1.0).sigma(SIMPLEX, Participation(20, 1.0))  # doctest: +ELLIPSIS
        5.974598181957...
        """
        return _sigma(self, geometry, hidden)


@lru_cache(maxsize=1 << 14)
def _sigma(privacy: Privacy, geometry: Geometry, hidden: Participation) -> float:
    """Many queries take half a second, and a grid asks for the same promise for every bank."""
    return sigma_for(
        privacy.epsilon,
        privacy.delta,
        accountant=privacy.accountant,
        geometry=geometry,
        hidden=hidden,
        queries=privacy.queries,
    )


def NoPrivacy() -> Privacy:  # noqa: N802  (reads as the value it is)
    """No promise and no noise: epsilon is infinite."""
    return Privacy(epsilon=math.inf)


def sigma_for(
    epsilon: float, delta: float, *, accountant: str, geometry: Geometry, hidden: Participation, queries: int = 1
) -> float:
    """The smallest sigma at which the accountant's bound on delta is at most `delta`, rounded up.

    For `queries` > 1 with random participation within a relative 1e-7, always on the private side.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    bound = _bound(accountant, geometry, hidden, queries)
    if queries == 1 or hidden.certain:
        sigma = calibrate.sigma(bound, epsilon, delta)
    else:
        sigma = calibrate.costly_sigma(bound, epsilon, delta, start=math.sqrt(queries), tolerance=1e-7)
    if sigma == math.inf:
        raise ValueError(
            f"no noise is known to keep {queries:,} queries within epsilon {epsilon:g} at delta {delta:g}, accountant "
            f"{accountant}; ask for fewer queries, or a larger budget"
        )
    return sigma


def delta_for(
    epsilon: float, sigma: float, *, accountant: str, geometry: Geometry, hidden: Participation, queries: int = 1
) -> float:
    """The accountant's bound on delta, rounded up."""
    check_epsilon(epsilon)
    check_sigma(sigma)
    return calibrate.delta(_bound(accountant, geometry, hidden, queries), epsilon, sigma)


def epsilon_for(
    delta: float, sigma: float, *, accountant: str, geometry: Geometry, hidden: Participation, queries: int = 1
) -> float:
    """The smallest epsilon at which the accountant's bound on delta is at most `delta`, rounded up."""
    check_delta(delta)
    check_sigma(sigma)
    check_queries(queries)
    if queries == 1 or hidden.certain:
        return calibrate.epsilon(_bound(accountant, geometry, hidden, queries), delta, sigma)
    composed = composition.epsilon(_profile(accountant, geometry, hidden, sigma), float(delta), queries=queries)
    return min(composed, calibrate.epsilon(_told_everything(geometry, queries), delta, sigma))


def find_accountant(name: str) -> Accountant:
    """The accountant called `name`."""
    found: Accountant = lookup(Accountant, name)()
    return found


def _bound(accountant: str, geometry: Geometry, hidden: Participation, queries: int) -> calibrate.LogDelta:
    theorem = find_accountant(accountant)
    check_queries(queries)
    if queries > 1 and not hidden.certain:
        known = _told_everything(geometry, queries)
        return lambda epsilon, sigma: min(
            composition.log_delta(_profile(accountant, geometry, hidden, sigma), epsilon, queries=queries),
            known(epsilon, sigma),
        )
    root = math.sqrt(queries)  # T queries are one Gaussian with mu = C sqrt(T) / sigma
    return lambda epsilon, sigma: theorem.log_delta(epsilon, sigma / root, geometry=geometry, hidden=hidden)


def _told_everything(geometry: Geometry, queries: int) -> calibrate.LogDelta:
    """Theorem 1 over many queries, which holds even if the server is told every P_t: where nothing better is known."""
    root = math.sqrt(queries)
    return lambda epsilon, sigma: log_delta(epsilon, geometry.sensitivity * root / sigma if sigma > 0.0 else math.inf)


def _profile(accountant: str, geometry: Geometry, hidden: Participation, sigma: float) -> Profile:
    theorem = find_accountant(accountant)
    return lambda epsilons: theorem.log_deltas(epsilons, float(sigma), geometry=geometry, hidden=hidden)


def check_epsilon(epsilon: float) -> None:
    """A ValueError unless epsilon >= 0 (infinity means no noise)."""
    if not epsilon >= 0.0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon!r}; use inf for no privacy")


def check_delta(delta: float) -> None:
    """A ValueError unless 0 < delta < 1."""
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be in (0, 1), got {delta!r}; 1e-6 is a common choice")


def check_queries(queries: int) -> None:
    """A ValueError unless queries is a whole number >= 1."""
    if not (isinstance(queries, int | np.integer) and queries >= 1):
        raise ValueError(
            f"queries must be a whole number >= 1, got {queries!r}; it is how many the promise covers together"
        )


def check_lost(lost: int, clients: int | None = None) -> None:
    """A ValueError unless 0 <= lost < clients."""
    if not (isinstance(lost, int | np.integer) and lost >= 0):
        raise ValueError(f"lost must be a whole number >= 0, got {lost!r}; it is how many clients may add no noise")
    if clients is not None and lost >= clients:
        raise ValueError(f"lost must be below the {clients} client(s) there are, got {lost}; somebody must add noise")


def check_sigma(sigma: float) -> None:
    """A ValueError unless sigma >= 0."""
    if not sigma >= 0.0:
        raise ValueError(f"sigma must be >= 0, got {sigma!r}; it is the standard deviation of the aggregate noise")
