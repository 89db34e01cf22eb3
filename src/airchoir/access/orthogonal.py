"""Orthogonal: each of P_t alone in its own k channel uses, the paper's baseline."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir._types import Indices, PerQuery, PerSlot, Present
from airchoir.access import NOTHING_HIDDEN, Access, everyone
from airchoir.bank import ScoreBank
from airchoir.link import Link
from airchoir.participation import Participation


@dataclass(frozen=True)
class Orthogonal(Access):
    """One slot per client. The server hears each one alone, so each adds the full sigma and sampling hides nothing."""

    name: ClassVar[str] = "orthogonal"
    fixed_noise: ClassVar[bool] = False
    covers_lost: ClassVar[bool] = False
    always_on_air: ClassVar[bool] = False

    def roster(self, bank: ScoreBank) -> Indices:
        return everyone(bank)

    def participation(self, clients: int, probability: float, lost: int = 0) -> Participation:
        return Participation(clients, probability)

    def hidden(self, participation: Participation, lost: int = 0) -> Participation:
        return NOTHING_HIDDEN

    def slots(self, clients: int) -> Indices:
        return np.arange(clients)

    def slot_use(self, participation: Participation) -> PerSlot:
        return np.full(participation.clients, participation.inclusion)

    def on_air(self, present: Present) -> Present:
        return present

    def client_noise_std(self, link: Link, present: Present) -> PerQuery:
        return np.full(present.shape[1], link.sigma)

    def mean_client_noise_variance(self, sigma: float, participation: Participation, lost: int = 0) -> float:
        return sigma**2
