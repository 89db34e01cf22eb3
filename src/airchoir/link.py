"""Link: everything about a transmission that is fixed before any query."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airchoir._types import Indices, PerSlot
from airchoir.participation import Participation


@dataclass(frozen=True, eq=False)
class Link:
    """Sigma, slots, amplitudes and receiver noise of a scheme on a bank.

    Powers are in units of a transmitter's average power budget per channel use, so the receiver's noise variance is
    1 / snr and a slot's amplitude A the largest at which no client that may use the slot exceeds 1 on average.
    """

    classes: int
    roster: Indices
    """The bank's clients that may take part, in the order of every `clients` axis from here on."""
    participation: Participation
    """The law of P_t over the roster."""
    sigma: float
    """Standard deviation of the aggregate privacy noise."""
    lost: int
    """How many of P_t may add no noise without breaking the promise: the others make up for them."""
    slots: Indices
    """The slot in which each client of the roster transmits."""
    slot_use: PerSlot
    """The probability that each slot is used in a query."""
    amplitudes: PerSlot
    receiver_noise_variance: float

    @property
    def slot_noise_variance(self) -> PerSlot:
        """v = v_rx / A^2, the receiver's noise in each slot after the division by A."""
        return self.receiver_noise_variance / self.amplitudes**2

    @cached_property
    def channel_noise_variance(self) -> float:
        """The receiver's noise in the decision variable, summed over the slots used, expected over P_t."""
        return float(self.slot_use @ self.slot_noise_variance)

    @property
    def channel_uses(self) -> float:
        """k times the number of slots used, expected over P_t."""
        return self.classes * float(self.slot_use.sum())


def amplitudes(powers: PerSlot, slots: Indices) -> PerSlot:
    """The largest amplitude per slot that keeps each of its clients' average `powers` (at amplitude 1) within budget.

    >>> amplitudes(np.array([0.25, 1.0, 4.0]), np.array([0, 0, 1]))
    array([1. , 0.5])
    """
    largest = np.full(int(slots.max()) + 1, np.finfo(float).tiny)
    np.maximum.at(largest, slots, powers)
    return 1.0 / np.sqrt(largest)
