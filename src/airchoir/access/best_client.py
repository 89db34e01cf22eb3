"""Best client: the one with the highest validation macro-F1 answers alone, the paper's baseline."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir._types import Indices, Labels, PerQuery, PerSlot, Present, Scores
from airchoir.access import NOTHING_HIDDEN, Access
from airchoir.bank import ScoreBank
from airchoir.link import Link
from airchoir.metrics import macro_f1
from airchoir.participation import Participation


@dataclass(frozen=True)
class BestClient(Access):
    """One slot for one client: over the air with n = 1. Empty rounds are drawn again, so it answers every query."""

    name: ClassVar[str] = "best-client"
    fixed_noise: ClassVar[bool] = True
    covers_lost: ClassVar[bool] = False
    always_on_air: ClassVar[bool] = False

    def roster(self, bank: ScoreBank) -> Indices:
        if bank.val_scores is None or bank.val_labels is None:
            raise ValueError("the bank has no validation scores, so no client is known to be best; use another access")
        scores, labels = bank.val_scores, bank.val_labels
        best = bank.remember("best client", lambda: best_client(scores, labels))
        return np.array([best])

    def participation(self, clients: int, probability: float, lost: int = 0) -> Participation:
        return Participation(1, probability)

    def hidden(self, participation: Participation, lost: int = 0) -> Participation:
        return NOTHING_HIDDEN

    def slots(self, clients: int) -> Indices:
        return np.zeros(clients, dtype=np.intp)

    def slot_use(self, participation: Participation) -> PerSlot:
        return np.ones(1)

    def on_air(self, present: Present) -> Present:
        return present

    def client_noise_std(self, link: Link, present: Present) -> PerQuery:
        return np.full(present.shape[1], link.sigma)

    def mean_client_noise_variance(self, sigma: float, participation: Participation, lost: int = 0) -> float:
        return sigma**2


def best_client(scores: Scores, labels: Labels) -> int:
    """The client with the highest macro-F1, the lowest index on ties; non-private."""
    f1 = [macro_f1(labels, np.argmax(client, axis=-1), scores.shape[2]) for client in scores]
    return int(np.argmax(f1))
