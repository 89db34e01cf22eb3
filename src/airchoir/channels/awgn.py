"""Additive white Gaussian noise: the paper's simulation setting [METHOD, Fading]."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir._types import Present, Received, Symbols
from airchoir.channels import Channel, add_up, check_snr
from airchoir.link import Link


@dataclass(frozen=True)
class Awgn(Channel):
    """The gain has been inverted exactly and costs nothing; only the receiver's noise remains."""

    name: ClassVar[str] = "awgn"
    fades: ClassVar[bool] = False
    snr_db: float = 10.0

    def __post_init__(self) -> None:
        check_snr(self.snr_db)

    def check_participation(self, probability: float) -> None:
        pass  # any probability costs the same

    def inversion_cost(self, probability: float) -> float:
        return 1.0

    def transmit(self, private: Symbols, on_air: Present, link: Link, rng: np.random.Generator) -> Received:
        return add_up(private * link.amplitudes[link.slots][:, None, None], on_air, link, rng)
