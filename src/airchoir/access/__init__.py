"""[open] Who transmits when, and how much noise each client adds [METHOD, table].

To add an access, add a file here with one frozen dataclass that derives from `Access`.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, final

import numpy as np

from airchoir._types import Indices, PerQuery, PerSlot, Present, Received, Sums, Symbols
from airchoir.bank import ScoreBank
from airchoir.link import Link
from airchoir.participation import Participation


class Access(ABC):
    """Splits P_t into slots of k channel uses and the privacy noise among the clients.

    Every axis `clients` below is the roster's. The final methods turn what a concrete access declares into what one query
    does, literally (`perturb`, `collect`) and in one stroke (`sums`, `noise_variance`).
    """

    name: ClassVar[str]
    fixed_noise: ClassVar[bool]
    """Whether the sum's noise variance is the same for every participant set while none may be lost: the noise is shared."""
    covers_lost: ClassVar[bool]
    """Whether the others' noise can make up for that of a client that is lost or colludes."""
    always_on_air: ClassVar[bool]
    """Whether every client transmits in every round, so that none may be in a deep fade."""

    @abstractmethod
    def roster(self, bank: ScoreBank) -> Indices:
        """The bank's clients that may take part."""

    @abstractmethod
    def participation(self, clients: int, probability: float, lost: int = 0) -> Participation:
        """The law of P_t over a roster of `clients`, of whom up to `lost` may fail to add noise."""

    @abstractmethod
    def hidden(self, participation: Participation, lost: int = 0) -> Participation:
        """The part of that law which the server cannot see: what an accountant may count on."""

    @abstractmethod
    def slots(self, clients: int) -> Indices:
        """The slot, 0, 1, ..., in which each client of the roster transmits."""

    @abstractmethod
    def slot_use(self, participation: Participation) -> PerSlot:
        """The probability that each slot is used in a query."""

    @abstractmethod
    def on_air(self, present: Present) -> Present:
        """Who transmits, given who takes part."""

    @abstractmethod
    def client_noise_std(self, link: Link, present: Present) -> PerQuery:
        """s, the standard deviation of the noise that each client on air adds."""

    @abstractmethod
    def mean_client_noise_variance(self, sigma: float, participation: Participation, lost: int = 0) -> float:
        """E[s^2 given that the client is on air]: what the noise costs a client in power."""

    @final
    def perturb(self, symbols: Symbols, present: Present, link: Link, rng: np.random.Generator) -> Symbols:
        """What each client sends: its symbol if it takes part, plus its own noise if it is on air."""
        private = np.where(present[:, :, None], symbols, 0.0)
        if link.sigma > 0.0:
            noise_std = self.client_noise_std(link, present) * self.on_air(present)
            private += rng.standard_normal(symbols.shape) * noise_std[:, :, None]
        return private

    @final
    def collect(self, received: Received, link: Link) -> Sums:
        """The server's sum: each slot divided by its amplitude, all slots added.

        Scaling up and down by A leaves rounding errors near 1e-15, which must not break ties where there is no noise.
        """
        sums = (received / link.amplitudes[:, None, None]).sum(axis=0)
        return np.round(sums, 12)

    @final
    def sums(self, symbols: Symbols, present: Present) -> Sums:
        """The mean of the server's sum, given who is present."""
        return np.einsum("cq,cqk->qk", present.astype(np.float64), symbols)

    @final
    def noise_variance(self, present: Present, link: Link) -> PerQuery:
        """The noise variance per class of the server's sum, given who is present: privacy noise plus receiver noise."""
        on_air = self.on_air(present)
        privacy = self.client_noise_std(link, present) ** 2 * on_air.sum(axis=0)
        used = np.stack([on_air[link.slots == slot].any(axis=0) for slot in range(len(link.amplitudes))])
        variance: PerQuery = privacy + link.slot_noise_variance @ used
        return variance


def check_covers_lost(access: Access, lost: int) -> None:
    """A ValueError where clients may be lost and the access has nobody to make up for them."""
    if lost > 0 and not access.covers_lost:
        raise ValueError(
            f"lost must be 0 with {access.name}, got {lost}: nobody else's noise covers a client that is heard alone; "
            f"use over-the-air or always-on"
        )


def everyone(bank: ScoreBank) -> Indices:
    """The roster of all clients."""
    return np.arange(bank.clients)


NOTHING_HIDDEN = Participation(clients=1, probability=1.0)
"""The law of a participant set that the server sees: no accountant may amplify."""
