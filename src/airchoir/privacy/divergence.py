"""D3: how far one symbol is from another when each hides among the same others with the same chance.

Up to a common shift the three means are x = f_1, 0 and y = f_1'. With z ~ N(0, sigma^2 I), U = <x, z>/sigma^2 -
|x|^2/(2 sigma^2), V likewise with y, B = e^epsilon' and A = (e^epsilon' - 1)(1 - eta)/eta, the divergence is

    D3 = E (e^U - B e^V - A)_+

It does not fall when both norms are raised to the largest norm r at a fixed inner product, nor when the inner product is
lowered to the smallest one, c: so (r, c) is the worst case of every set of symbols. There the sum and the difference of U
and V are independent. Given the sum, that is given t ~ N(0, 1), the difference has a closed form; with half = |x - y| / (2
sigma) and Mills' ratio M,

    a = A exp(-c / (2 sigma^2) - t sqrt((r^2 + c) / 2) / sigma),     w = (epsilon'/2 + asinh(a e^(-epsilon'/2) / 2)) / half,
    theta = a exp(-half w),     x = w - half,
    D3 = E_t phi(x) [ (1 - theta) (M(x) - M(x + 2 half)) + theta (M(x) - M(x + half)) ]

in which nothing is negative. Its integrand is log-concave in t with a curvature of at least 1, so that a window of fixed
width around its maximum holds all of it, and the trapezoid rule converges exponentially.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from airchoir._types import Float
from airchoir.privacy.gaussian import log_deltas
from airchoir.privacy.mills import LOG_SQRT_2PI, drop, mills
from airchoir.rules import Geometry

_ALLOWANCE = 1e-11
"""Added to log D3: more than quadrature and rounding can be off (tests: 2e-14), less than the 9 digits we promise."""
_WINDOW = 8.5
"""Half the width of the window in t: the integrand falls at least like exp(-t^2 / 2) from its maximum."""
_NEGLIGIBLE = -25.0
"""log of how far the integrand must have fallen at both ends of the window: what is left out is below the allowance."""
_MOST_NODES = 2**15
_LOG2 = math.log(2.0)
_BLOCK = 2**16
_DEEPEST = 1e6
"""Standard deviations from which on log D3, below -5e11, is bounded without A, that is by the Gaussian mechanism's."""


def log_divergences(epsilons: Float, eta: float, sigma: float, geometry: Geometry) -> Float:
    """log D3 of every finite epsilon >= 0, rounded up, for 0 < sigma.

    >>> from airchoir.rules import SIMPLEX
    >>> np.exp(log_divergences(np.array([1.0]), 0.5, 3.2, SIMPLEX)).round(14)
    array([2.17147761e-06])
    """
    triple = _Triple.worst(geometry, sigma)
    if triple.half == 0.0:
        return np.full(epsilons.shape, -np.inf)
    nodes = triple.nodes if max(triple.half, triple.along) < _MOST_NODES else np.empty(0)
    if not 0 < len(nodes) <= _MOST_NODES:
        return np.zeros(epsilons.shape)  # the trivial bound: sigma is so small that nearly every one is
    result = log_deltas(epsilons, 2 * triple.half)
    near = np.flatnonzero(epsilons < 2 * triple.half * _DEEPEST)
    for rows in np.array_split(near, math.ceil(len(near) * len(nodes) / _BLOCK) or 1):
        result[rows] = triple.log_divergences(epsilons[rows], eta, nodes)
    return result


@dataclass(frozen=True)
class _Triple:
    """Three means x, 0, y in units of sigma."""

    half: float
    """|x - y| / 2"""
    along: float
    """|x + y| / 2"""
    half_product: float
    """<x, y> / 2"""

    @staticmethod
    def worst(geometry: Geometry, sigma: float) -> "_Triple":
        square, product = geometry.largest_norm**2, geometry.smallest_inner_product
        return _Triple(
            half=math.sqrt(max(square - product, 0.0) / 2) / sigma,
            # Not quite zero where x = -y: raising both Gram entries only raises the divergence.
            along=math.sqrt(max(square + product, 1e-18 * square) / 2) / sigma,
            half_product=product / 2 / sigma / sigma,
        )

    @property
    def nodes(self) -> Float:
        """The window's nodes around 0.

        Where |Im t| <= d < pi / (2 along), the nearest branch point of asinh, the integrand is analytic and grows by at most
        about exp(curvature d^2 / 2); the trapezoid rule's error is that times exp(-2 pi d / step), which is made e^-32.
        """
        curvature = 1.0 + (self.along / self.half) ** 2
        strip = min(math.pi / (2 * self.along), math.sqrt(64.0 / curvature))
        step = 2 * math.pi * strip / (32.0 + curvature * strip**2 / 2)
        count = math.ceil(min(_WINDOW / step, _MOST_NODES))
        return np.arange(-count, count + 1, dtype=np.float64) * step

    def log_divergences(self, epsilons: Float, eta: float, nodes: Float) -> Float:
        with np.errstate(divide="ignore"):
            log_a = epsilons + np.log(-np.expm1(-epsilons)) + np.log((1.0 - eta) / eta) - self.half_product
        centre = self._centre(epsilons, log_a)
        while True:
            t = centre[:, None] + nodes
            logs = self._log_conditional(t, epsilons[:, None], log_a[:, None]) - t**2 / 2 - LOG_SQRT_2PI
            top = logs.max(axis=1)
            if not np.any(np.maximum(logs[:, 0], logs[:, -1]) - top > _NEGLIGIBLE):
                break
            centre = t[np.arange(len(t)), logs.argmax(axis=1)]
        total: Float = top + np.log(np.exp(logs - top[:, None]).sum(axis=1) * (nodes[1] - nodes[0]))
        # The exponents carry a rounding error each, which their own size amplifies.
        size = 1.0 + np.abs(top) + (self.half + self.along) ** 2
        rounding: Float = 32 * float(np.finfo(float).eps) * size
        return np.minimum(total + _ALLOWANCE + rounding, 0.0)

    def _centre(self, epsilons: Float, log_a: Float) -> Float:
        """About where the integrand is largest, that is where exp(-t^2/2 - x(t)^2/2) is, by bisection to within 1/2."""
        slope = self.along / self.half

        def pull(t: Float) -> Float:
            log_ratio = log_a - self.along * t - epsilons / 2 - _LOG2
            x = (epsilons / 2 + _asinh_exp(log_ratio)) / self.half - self.half
            return slope * np.maximum(x, 0.0) * special.expit(2 * log_ratio) ** 0.5

        low, high = np.zeros_like(epsilons), pull(np.zeros_like(epsilons))
        while np.any(high - low > 1.0):
            middle = (low + high) / 2
            right = pull(middle) > middle
            low, high = np.where(right, middle, low), np.where(right, high, middle)
        return (low + high) / 2

    def _log_conditional(self, t: Float, epsilons: Float, log_a: Float) -> Float:
        """log of the divergence given t."""
        half = np.array(self.half)
        log_a = log_a - self.along * t
        threshold = epsilons / 2 + _asinh_exp(log_a - epsilons / 2 - _LOG2)
        theta, rest = np.exp(log_a - threshold), np.exp(epsilons - 2 * threshold)
        x = threshold / half - half
        right = np.maximum(x, -1.0)
        bracket = rest * drop(right, 2 * half) + theta * drop(right, half)
        result: Float = np.log(bracket) - right**2 / 2 - LOG_SQRT_2PI
        left = x < -1.0
        if np.any(left):
            # Here x + half >= 0, so the terms differ enough.
            x, theta, rest = x[left], theta[left], rest[left]
            density = np.exp(-(np.maximum(x, -100.0) ** 2) / 2 - LOG_SQRT_2PI)
            result[left] = np.log(special.ndtr(-x) - density * (rest * mills(x + 2 * half) + theta * mills(x + half)))
        return result


def _asinh_exp(exponent: Float) -> Float:
    """asinh(e^exponent), which is exponent + log 2 from 300 on."""
    result: Float = np.arcsinh(np.exp(np.minimum(exponent, 300.0))) + np.maximum(exponent - 300.0, 0.0)
    return result
