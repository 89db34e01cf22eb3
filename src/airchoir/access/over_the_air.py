"""Over the air: all of P_t at once, in k channel uses [paper, Algorithm 1]."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir._types import Indices, PerQuery, PerSlot, Present
from airchoir.access import Access, everyone
from airchoir.bank import ScoreBank
from airchoir.participation import Participation


@dataclass(frozen=True)
class OverTheAir(Access):
    """One slot for everyone; each of P_t adds noise of sigma / sqrt(|P_t|), so the sum carries sigma.

    The clients know |P_t|; the server must learn neither P_t nor |P_t|, or amplification by sampling is void.
    """

    name: ClassVar[str] = "over-the-air"
    fixed_noise: ClassVar[bool] = True

    def roster(self, bank: ScoreBank) -> Indices:
        return everyone(bank)

    def participation(self, clients: int, probability: float) -> Participation:
        return Participation(clients, probability)

    def hidden(self, participation: Participation) -> Participation:
        return participation

    def slots(self, clients: int) -> Indices:
        return np.zeros(clients, dtype=np.intp)

    def slot_use(self, participation: Participation) -> PerSlot:
        return np.ones(1)

    def on_air(self, present: Present) -> Present:
        return present

    def client_noise_std(self, sigma: float, present: Present) -> PerQuery:
        return sigma / np.sqrt(present.sum(axis=0))

    def mean_client_noise_variance(self, sigma: float, participation: Participation) -> float:
        return sigma**2 * participation.mean_inverse_size
