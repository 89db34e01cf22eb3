"""The privacy-loss law of one query, from a bound on its delta [Doroshenko et al. 2022, connect the dots], and of T."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from airchoir._types import Float

Profile = Callable[[Float], Float]
"""Every epsilon >= 0 -> an upper bound on log delta of one query."""

_ROUNDING = 4.0 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class LossLaw:
    """The law of one privacy loss L = log dP/dQ under P: finitely many values, and infinity."""

    losses: Float
    """Rising."""
    log_mass: Float
    log_infinite: float
    """log P(L = infinity)."""

    def cumulant(self, tilt: float) -> tuple[float, float]:
        """K = log E e^(tilt L) over the finite losses, and its derivative, the tilted mean."""
        logs = self.log_mass + tilt * self.losses
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        return top + math.log(total), float((weights * self.losses).sum()) / total

    def moments(self) -> tuple[float, float]:
        """The mean and the standard deviation of the finite losses."""
        mass = np.exp(self.log_mass - self.cumulant(0.0)[0])
        mean = float((mass * self.losses).sum())
        return mean, math.sqrt(float((mass * (self.losses - mean) ** 2).sum()))

    def tilted(self, tilt: float) -> "LossLaw":
        """The law with masses e^(tilt L - K)."""
        log_mass = self.log_mass + tilt * self.losses - self.cumulant(tilt)[0]
        return LossLaw(self.losses, log_mass, self.log_infinite)

    def tilt_towards(self, mean: float) -> float:
        """The tilt >= 0 at which a loss has this mean, roughly: the one of Chernoff's bound."""
        return self._tilt(lambda tilt: self.cumulant(tilt)[1] >= mean, +1.0)

    def tilt_down_to(self, level: float, sign: float) -> float:
        """The tilt of this sign at which Chernoff's bound K - tilt K' has fallen to `level`, roughly."""

        def fallen(tilt: float) -> bool:
            cumulant, mean = self.cumulant(tilt)
            return cumulant - tilt * mean <= level

        return self._tilt(fallen, sign)

    def _tilt(self, reached: Callable[[float], bool], sign: float) -> float:
        """The tilt from which on a condition holds, within 1 %; the largest that changes anything where it never does."""
        if reached(0.0) or len(self.losses) == 1:
            return 0.0
        far = 1e-3 / float(np.abs(self.losses).max())
        most = 1e3 / float(np.diff(self.losses).min())
        while not reached(sign * far) and far < most:
            far *= 2.0
        near = far / 2.0
        for _ in range(6):
            middle = (near + far) / 2.0
            near, far = (near, middle) if reached(sign * middle) else (middle, far)
        return sign * far


def chords(losses: Float, log_bound: Float) -> LossLaw:
    """The law whose profile is the bound's chords between the nodes e^losses, 0 = losses[0] < ..., constant beyond the last.

    Where a chord's slope in alpha = e^epsilon changes there is mass; loss -l has e^-l of the mass of loss l, by symmetry, and
    loss 0 has the rest. A mass that came out negative, by rounding or where the bound is not quite convex, is 0: more mass
    is more delta, as long as all of it is at least 1.

    >>> law = chords(np.array([0.0, 1.0, 2.0]), np.log([0.4, 0.1, 0.01]))
    >>> law.losses, np.exp(law.log_mass).round(4)
    (array([-2., -1.,  0.,  1.,  2.]), array([0.0193, 0.1553, 0.2508, 0.4222, 0.1424]))
    """
    log_bound = np.minimum(log_bound, 0.0)
    fall = np.maximum(-np.diff(np.exp(log_bound)), 0.0)
    gap = np.diff(losses)
    left = fall / -np.expm1(-gap)
    right = left * np.exp(-gap)
    mass = np.maximum(left - np.append(right[1:], 0.0), 0.0) + _ROUNDING * left
    opposite = mass * np.exp(-losses[1:])
    middle = max(1.0 - math.exp(log_bound[-1]) - float((mass + opposite).sum()), 0.0) + 4 * _ROUNDING
    masses = np.concatenate([opposite[::-1], [middle], mass])
    values = np.concatenate([-losses[:0:-1], losses])
    possible = masses > 0.0
    return LossLaw(values[possible], np.log(masses[possible]), float(log_bound[-1]))


def convolve(
    law: LossLaw, *, queries: int, step: float, window: tuple[int, int], kind: np.dtype[Any]
) -> tuple[Float, tuple[float, float]]:
    """The law of the sum of T losses, at `window` = (first, number of) steps, by an FFT that wraps around; how far off it is.

    That is by rounding alone: a bound on the largest error of a mass, and one on the Euclidean norm of all errors.
    """
    from scipy import fft  # numpy's has no long double in its older versions

    first, size = window
    index = np.rint(law.losses / step).astype(np.int64)
    single = np.bincount(index % size, weights=np.exp(law.log_mass), minlength=size).astype(kind)
    spectrum = fft.rfft(single)
    others = _power(spectrum, queries - 1)
    masses = np.roll(fft.irfft(others * spectrum, size), -(first % size)).astype(np.float64)
    norm, total_norm = (math.sqrt(float((values**2).sum())) for values in (single, masses))
    # An FFT errs by less than 8 log2(size) units of rounding in the Euclidean norm [Higham 2002, Theorem 24.2; radix 3 and 5
    # are no worse], which the power multiplies by T |spectrum|^(T-1). Each of its T products errs by less than 3 units.
    unit = float(np.finfo(kind).eps) / 2.0
    before, after = 8.0 * math.log2(size) * norm, (8.0 * math.log2(size) + 3.0 * queries) * total_norm
    power = np.abs(others)
    largest = queries * before * math.sqrt(2.0 * float((power**2).sum()) / size) + after
    together = queries * before * float(power.max()) + after
    return np.maximum(masses, 0.0), (unit * largest, unit * together)


def fast_size(steps: float) -> int:
    """A number of steps, at least so many, that an FFT is fast for: a product of 2s, 3s and 5s."""
    from scipy import fft

    size: int = fft.next_fast_len(math.ceil(max(steps, 32.0)), real=True)
    return size


def _power(base: Any, exponent: int) -> Any:
    """base^exponent by squaring: a complex power by logarithms costs 50 products."""
    result = np.ones_like(base)
    while exponent:
        if exponent % 2:
            result = result * base
        base, exponent = base * base, exponent // 2
    return result
