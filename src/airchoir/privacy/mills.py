"""The Mills ratio of the normal law, M(x) = Phi(-x) / phi(x), and its differences, to 13 digits.

Every divergence here is a Gaussian density times a difference of two Mills ratios: that form neither overflows nor, where
the two nearly agree, cancels.
"""

from functools import cache

import numpy as np
from scipy import special

from airchoir._types import Float

LOG_SQRT_2PI = 0.5 * float(np.log(2 * np.pi))
_CANCELS = 0.03
_SERIES_FROM = 10.0


def mills(x: Float) -> Float:
    """M(x) = Phi(-x) / phi(x) = sqrt(pi / 2) erfcx(x / sqrt 2), for x above -30.

    >>> mills(np.array([0.0, 1.0])).round(8)
    array([1.25331414, 0.65567954])
    """
    ratio: Float = np.sqrt(np.pi / 2) * special.erfcx(x / np.sqrt(2.0))
    return ratio


def drop(x: Float, gap: Float) -> Float:
    """M(x) - M(x + gap) for gap >= 0 and x >= -1, without cancellation.

    Where the difference is small against M(x) it is the integral of -M'(z) = 1 - z M(z) over the gap.

    >>> f"{drop(np.array([2.0]), np.array([2.0**-40]))[0]:.12e}"
    '1.430285387176e-13'
    """
    first = mills(x)
    difference = first - mills(x + gap)
    small = difference < _CANCELS * first
    if np.any(small):
        x, gap, difference = np.broadcast_arrays(x, gap, difference)
        difference = difference.copy()
        difference[small] = _integral_of_decay(x[small], gap[small])
    return difference


def _integral_of_decay(x: Float, gap: Float) -> Float:
    """The integral of 1 - z M(z) over (x, x + gap), by four Gauss-Legendre nodes: the integrand hardly changes there."""
    nodes, weights = _gauss_legendre()
    integral: Float = gap * (_decay(x[..., None] + gap[..., None] * nodes) @ weights)
    return integral


def _decay(z: Float) -> Float:
    """-M'(z) = 1 - z M(z); from z = 10 on its asymptotic series 1/z^2 - 3/z^4 + 15/z^6 - ..., where the difference cancels."""
    decay = 1.0 - z * mills(z)
    far = z > _SERIES_FROM
    if np.any(far):
        inverse_square = z[far] ** -2.0
        series = np.zeros_like(inverse_square)
        for odd in range(39, 0, -2):
            series = odd * inverse_square * (1.0 - series)
        decay[far] = series
    return decay


@cache
def _gauss_legendre() -> tuple[Float, Float]:
    nodes, weights = special.roots_legendre(4)
    return (nodes + 1) / 2, weights / 2
