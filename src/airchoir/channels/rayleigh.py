"""Rayleigh block fading with truncated channel inversion [METHOD, Fading]."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from airchoir._types import Present, Received, Symbols
from airchoir.channels import Channel, add_up, check_snr
from airchoir.link import Link


@dataclass(frozen=True)
class Rayleigh(Channel):
    """h is CN(0, 1) per client and query; a client takes part only if |h|^2 exceeds a threshold t.

    Without a threshold t = -log p. With one the fading alone gives exp(-t), thinned by a coin of p exp(t).
    """

    name: ClassVar[str] = "rayleigh"
    fades: ClassVar[bool] = True
    snr_db: float = 10.0
    threshold: float | None = None
    """t, in units of the mean of |h|^2."""

    def __post_init__(self) -> None:
        check_snr(self.snr_db)
        check_threshold(self.threshold)

    def check_participation(self, probability: float) -> None:
        if probability == 1.0:
            raise ValueError(
                "participation 1 with Rayleigh fading needs infinite power, as gains near 0 would be inverted; "
                "choose a participation below 1"
            )
        if self.threshold is not None and math.log(probability) + self.threshold > 1e-12:
            raise ValueError(
                f"threshold {self.threshold:g} lets a client take part with probability at most "
                f"{math.exp(-self.threshold):g}, got participation {probability:g}; lower one of them"
            )

    def inversion_cost(self, probability: float) -> float:
        """E[1/|h|^2 given |h|^2 > t] = E1(t) / exp(-t).

        >>> round(Rayleigh().inversion_cost(math.exp(-1.0)), 6)
        0.596347
        """
        threshold = self._threshold(probability)
        if threshold > 500.0:  # E1(t) e^t = 1/t - 1/t^2 + 2/t^3 - 6/t^4 + ..., where E1 itself underflows
            series = 1.0
            for order in range(6, 0, -1):
                series = 1.0 - order / threshold * series
            return series / threshold
        return float(special.exp1(threshold)) * math.exp(threshold)

    def transmit(self, private: Symbols, on_air: Present, link: Link, rng: np.random.Generator) -> Received:
        """Whoever is on air has |h|^2 = t + Exp(1): P_t was drawn first, so only gains above the threshold remain."""
        threshold = self._threshold(link.participation.probability)
        magnitude = np.sqrt(threshold + rng.standard_exponential(on_air.shape))
        gain = magnitude * np.exp(2j * np.pi * rng.random(on_air.shape))
        amplitude = link.amplitudes[link.slots][:, None]
        sent = (amplitude / gain)[:, :, None] * private
        return add_up((gain[:, :, None] * sent).real, on_air, link, rng)

    def _threshold(self, probability: float) -> float:
        return -math.log(probability) if self.threshold is None else self.threshold


def check_threshold(threshold: float | None) -> None:
    """A ValueError unless the threshold is None or a positive number."""
    if threshold is not None and not 0.0 < threshold < math.inf:
        raise ValueError(f"threshold must be > 0, got {threshold!r}; inverting gains near 0 needs infinite power")
