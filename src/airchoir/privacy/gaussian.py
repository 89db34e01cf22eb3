"""The Gaussian mechanism, stably: an upper bound on its delta that is tight to 12 digits [Balle and Wang 2018, Theorem 8].

    delta(epsilon) = Phi(-x) - e^epsilon Phi(-x - mu),   x = epsilon/mu - mu/2,   mu = C / sigma

As e^epsilon phi(x + mu) = phi(x), this is phi(x) [M(x) - M(x + mu)] with the Mills ratio M: nothing overflows, and the
difference of two Mills ratios is known without cancellation.
"""

import numpy as np
from scipy import special

from airchoir._types import Float
from airchoir.privacy.mills import LOG_SQRT_2PI, drop, mills

_ALLOWANCE = 2e-13
"""Added to log delta: more than the evaluation can be off (tests: 4e-14), less than the 12 digits we promise."""


_BEYOND = 1e150
"""Further out than this many standard deviations log delta is -infinity in floats too."""


_SMALLEST = float(np.finfo(float).smallest_subnormal)
"""What must not underflow to 0 is raised to it: the private side."""


_CERTAIN = 100.0
"""Phi of it is 1 and phi of it is 0 in floats."""


def log_delta(epsilon: float, mu: float) -> float:
    """log delta of two unit Gaussians `mu` apart, rounded up [Balle and Wang 2018, Theorem 8].

    >>> import math
    >>> round(math.exp(log_delta(1.0, math.sqrt(2.0) / 5.0)), 16)
    2.34529156512e-05
    """
    return float(log_deltas(np.array([epsilon]), mu)[0])


def log_deltas(epsilons: Float, mu: float) -> Float:
    """`log_delta` of every epsilon >= 0."""
    if mu == 0.0:
        return np.full(epsilons.shape, -np.inf)
    if mu > _BEYOND:
        return np.where(np.isinf(epsilons), -np.inf, 0.0)
    with np.errstate(over="ignore"):
        ratio = epsilons / mu
    possible = ratio < _BEYOND
    ratio = np.where(possible, ratio, 0.0)
    x = ratio - mu / 2
    # mu and epsilon / mu carry a rounding error each, which x's own size amplifies.
    allowance = _ALLOWANCE + 4 * np.finfo(float).eps * (1.0 + np.abs(x)) * (mu / 2 + ratio)
    return np.where(possible, np.minimum(_log_deltas(x, mu) + allowance, 0.0), -np.inf)


def _log_deltas(x: Float, mu: float) -> Float:
    right = np.maximum(x, -1.0)
    difference = np.maximum(drop(right, np.array(mu)), _SMALLEST)
    result: Float = np.log(difference) - right**2 / 2 - LOG_SQRT_2PI
    left = x < -1.0
    if np.any(left):
        # Here x + mu >= -x > 1, so the two terms differ enough.
        x = x[left]
        density = np.exp(-(np.maximum(x, -_CERTAIN) ** 2) / 2 - LOG_SQRT_2PI)
        result[left] = np.log(special.ndtr(-x) - density * mills(x + mu))
    return result
