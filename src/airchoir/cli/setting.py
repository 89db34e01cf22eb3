"""Everything but epsilon, delta, sigma and the accountant that a promise depends on, from what was typed."""

import math
from dataclasses import dataclass
from typing import Any

from airchoir.access import Access, check_covers_lost
from airchoir.participation import Participation
from airchoir.privacy import check_lost, find_accountant
from airchoir.registry import build
from airchoir.rules import Geometry, Rule


@dataclass(frozen=True)
class Setting:
    """Who sings what, and who may be lost."""

    access: Access
    rule: Rule
    law: Participation
    """Of P_t, over the clients."""
    classes: int
    lost: int
    """Planned for: the others make up for so many."""
    asked: dict[str, Any]
    """As typed, for the record."""

    @classmethod
    def of(
        cls, access: str, rule: str, *, clients: int, participation: float, classes: int, lost: int = 0
    ) -> "Setting":
        """The setting that the options name, checked."""
        if classes < 2:
            raise ValueError(f"classes must be >= 2, got {classes}; deciding needs a choice")
        if clients < 1:
            raise ValueError(f"clients must be >= 1, got {clients}; a choir needs a voice")
        way: Access = build(Access, access)
        check_covers_lost(way, lost)
        check_lost(lost, clients)
        asked = {"access": access, "rule": rule, "clients": clients, "participation": participation, "classes": classes}
        law = way.participation(clients, participation, lost)
        return cls(way, build(Rule, rule), law, classes, lost, {**asked, "lost": lost})

    @property
    def geometry(self) -> Geometry:
        """What an accountant may assume of the symbols."""
        return self.rule.geometry(self.classes)

    @property
    def hidden(self) -> Participation:
        """The law of P_t as far as the server cannot see it."""
        return self.access.hidden(self.law, self.lost)

    def theorem(self, accountant: str) -> str:
        """The statement that applies."""
        return find_accountant(accountant).theorem(self.hidden)

    def client_noise(self, sigma: float) -> float:
        """The root mean square of the noise that a client adds itself."""
        return math.sqrt(self.access.mean_client_noise_variance(sigma, self.law, self.lost))
