"""The Gaussian mechanism, stably: an upper bound on its delta that is tight to 12 digits [Balle and Wang 2018, Theorem 8].

    delta(epsilon) = Phi(a) - e^epsilon Phi(b),   a = mu/2 - epsilon/mu,  b = -mu/2 - epsilon/mu,  mu = C / sigma

With erfcx(x) = exp(x^2) erfc(x) the overflow of e^epsilon disappears, as e^epsilon phi(b) = phi(a). Where mu is so small
that the two terms cancel, delta = integral over m from 0 to mu of phi(epsilon/m - m/2) dm has no cancellation.
"""

import math
from functools import cache

import numpy as np
from scipy import special

from airchoir._types import Float

_SQRT2 = math.sqrt(2.0)
_ALLOWANCE = 2e-13
"""Added to log delta: more than the evaluation can be off (tests: 4e-14), less than the 12 digits we promise."""


def log_delta(epsilon: float, mu: float) -> float:
    """log delta of two unit Gaussians `mu` apart, rounded up [Balle and Wang 2018, Theorem 8].

    >>> round(math.exp(log_delta(1.0, math.sqrt(2.0) / 5.0)), 16)
    2.34529156512e-05
    """
    if mu == 0.0 or epsilon == math.inf or epsilon / mu == math.inf:
        return -math.inf
    if mu == math.inf:
        return 0.0
    a = mu / 2 - epsilon / mu
    # mu and epsilon / mu carry a rounding error each, which a's own size amplifies.
    allowance = _ALLOWANCE + 4 * math.ulp(1.0) * (1.0 + abs(a)) * (mu / 2 + epsilon / mu)
    return min(0.0, _log_delta(epsilon, mu, a) + allowance)


def _log_delta(epsilon: float, mu: float, a: float) -> float:
    b = -mu / 2 - epsilon / mu
    if a > 0:
        first, second, log_scale = special.ndtr(a), 0.5 * math.exp(-a * a / 2) * special.erfcx(-b / _SQRT2), 0.0
    else:
        first, second = 0.5 * special.erfcx(-a / _SQRT2), 0.5 * special.erfcx(-b / _SQRT2)
        log_scale = -a * a / 2
    if first - second > 0.1 * first:
        return float(math.log(first - second) + log_scale)
    return _log_delta_by_quadrature(epsilon, mu, a)


def _log_delta_by_quadrature(epsilon: float, mu: float, a: float) -> float:
    """log of the integral of phi(epsilon/m - m/2) over 0 < m < mu, in the variable log(mu/m).

    Beyond t = epsilon/m - m/2 = sqrt(t0^2 + 84) the integrand is below 1e-18 of its largest value, at t0 = max(-a, 0).
    """
    start = max(-a, 0.0)
    t = math.sqrt(start**2 + 84.0)
    lowest = 2 * epsilon / (t + math.sqrt(t * t + 2 * epsilon))
    span = min(math.log(mu / lowest), 40.0) if lowest > 0.0 else 40.0
    x, weights = _gauss_legendre()
    m = mu * np.exp(-span * x)
    exponent = (start**2 - (epsilon / m - m / 2) ** 2) / 2
    integral = span * float(weights @ (m * np.exp(exponent))) / math.sqrt(2 * math.pi)
    return math.log(integral) - start**2 / 2


@cache
def _gauss_legendre() -> tuple[Float, Float]:
    """64 nodes and weights on [0, 1]."""
    x, weights = special.roots_legendre(64)
    return (x + 1) / 2, weights / 2
