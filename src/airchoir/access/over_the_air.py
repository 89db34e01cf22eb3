"""Over the air: all of P_t at once, in k channel uses [paper, Algorithm 1]."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir._types import Indices, PerQuery, PerSlot, Present
from airchoir.access import NOTHING_HIDDEN, Access, everyone
from airchoir.bank import ScoreBank
from airchoir.link import Link
from airchoir.participation import Participation


@dataclass(frozen=True)
class OverTheAir(Access):
    """One slot for everyone; each of P_t adds noise of sigma / sqrt(|P_t|), so the sum carries sigma.

    Where up to d may be lost each adds sigma / sqrt(|P_t| - d), and a round with |P_t| <= d is drawn again.

    The clients know |P_t|; the server must learn neither P_t nor |P_t|, or amplification by sampling is void.
    """

    name: ClassVar[str] = "over-the-air"
    fixed_noise: ClassVar[bool] = True
    covers_lost: ClassVar[bool] = True
    always_on_air: ClassVar[bool] = False

    def roster(self, bank: ScoreBank) -> Indices:
        return everyone(bank)

    def participation(self, clients: int, probability: float, lost: int = 0) -> Participation:
        return Participation(clients, probability, at_least=lost + 1)

    def hidden(self, participation: Participation, lost: int = 0) -> Participation:
        """Nothing where clients may be lost: a colluder knows |P_t|, and who is lost may depend on who takes part."""
        return participation if lost == 0 else NOTHING_HIDDEN

    def slots(self, clients: int) -> Indices:
        return np.zeros(clients, dtype=np.intp)

    def slot_use(self, participation: Participation) -> PerSlot:
        return np.ones(1)

    def on_air(self, present: Present) -> Present:
        return present

    def client_noise_std(self, link: Link, present: Present) -> PerQuery:
        return link.sigma / np.sqrt(present.sum(axis=0) - link.lost)

    def mean_client_noise_variance(self, sigma: float, participation: Participation, lost: int = 0) -> float:
        return sigma**2 * participation.mean_inverse_size(lost)
