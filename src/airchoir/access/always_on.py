"""Always-on: every client transmits noise in every round, and its answer only if its own coin says so."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir._types import Indices, PerQuery, PerSlot, Present
from airchoir.access import Access, everyone
from airchoir.bank import ScoreBank
from airchoir.link import Link
from airchoir.participation import Participation


@dataclass(frozen=True)
class AlwaysOn(Access):
    """One slot; all n clients add noise of sigma / sqrt(n), or sigma / sqrt(n - d) where d may be lost.

    Nobody needs to know |P_t|, counting transmitters tells the server nothing, and each client's amplification rests on its
    own coin alone. The price: an empty round is a round, and its answer is noise.
    """

    name: ClassVar[str] = "always-on"
    fixed_noise: ClassVar[bool] = True
    covers_lost: ClassVar[bool] = True
    always_on_air: ClassVar[bool] = True

    def roster(self, bank: ScoreBank) -> Indices:
        return everyone(bank)

    def participation(self, clients: int, probability: float, lost: int = 0) -> Participation:
        return Participation(clients, probability, at_least=0)

    def hidden(self, participation: Participation, lost: int = 0) -> Participation:
        """All of it, lost clients or not, as long as no loss depends on the client's own coin, symbol or noise."""
        return participation

    def slots(self, clients: int) -> Indices:
        return np.zeros(clients, dtype=np.intp)

    def slot_use(self, participation: Participation) -> PerSlot:
        return np.ones(1)

    def on_air(self, present: Present) -> Present:
        return np.ones_like(present)

    def client_noise_std(self, link: Link, present: Present) -> PerQuery:
        return np.full(present.shape[1], link.sigma / np.sqrt(present.shape[0] - link.lost))

    def mean_client_noise_variance(self, sigma: float, participation: Participation, lost: int = 0) -> float:
        return sigma**2 / (participation.clients - lost)
