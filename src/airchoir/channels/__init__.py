"""[open] The air: what power buys, what gains cost, and what the receiver hears.

To add a channel, add a file here with one frozen dataclass that derives from `Channel`.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from airchoir._types import Present, Received, Symbols
from airchoir.link import Link


class Channel(ABC):
    """Adds up, slot by slot, what everyone sends, and adds the receiver's noise."""

    name: ClassVar[str]
    fades: ClassVar[bool]
    """Whether a client may be unable to transmit."""
    snr_db: float
    """A transmitter's average power budget over the receiver's noise, per channel use."""

    @abstractmethod
    def check_participation(self, probability: float) -> None:
        """A ValueError where no power budget can make clients take part with this probability."""

    @abstractmethod
    def inversion_cost(self, probability: float) -> float:
        """E[1/|h|^2 given that the client takes part]: by how much inverting the gain multiplies the power."""

    @abstractmethod
    def transmit(self, private: Symbols, on_air: Present, link: Link, rng: np.random.Generator) -> Received:
        """One sum per slot, in the receiver's units. A slot in which nobody is on air is not used: zeros."""


def add_up(signals: Received, on_air: Present, link: Link, rng: np.random.Generator) -> Received:
    """The sum of the real `signals` in each slot plus the receiver's noise, N(0, v_rx) per channel use."""
    slots = len(link.amplitudes)
    received = np.stack([signals[link.slots == slot].sum(axis=0) for slot in range(slots)])
    used = np.stack([on_air[link.slots == slot].any(axis=0) for slot in range(slots)])
    if link.receiver_noise_variance > 0.0:
        received += rng.normal(0.0, np.sqrt(link.receiver_noise_variance), received.shape)
    return np.where(used[:, :, None], received, 0.0)


def check_snr(snr_db: float) -> None:
    """A ValueError unless the SNR is at least -100 decibels; +infinity means no receiver noise."""
    if not snr_db >= -100.0:
        raise ValueError(f"snr_db must be >= -100 decibels, or inf, got {snr_db!r}; the paper uses 10")
