"""What hiding a client among others does to epsilon [Balle, Barthe and Gaboardi 2018, advanced joint convexity]."""

import math

import numpy as np

from airchoir._types import Float
from airchoir.participation import Participation

_ALLOWANCE = 2e-15
"""Added to log eta, times 1 - log eta: more than the rounding errors of eta, of its logarithm and of sums with it."""


def log_inclusion(hidden: Participation) -> float:
    """log eta, rounded up; eta = P(client i takes part).

    >>> log_inclusion(Participation(20, 1.0))
    0.0
    """
    if hidden.certain:
        return 0.0
    log_eta = math.log(hidden.inclusion)
    return min(0.0, log_eta + _ALLOWANCE * (1.0 - log_eta))


def inner_epsilons(epsilons: Float, eta: Float | float) -> Float:
    """epsilon of the unsampled mechanism, log(1 + (e^epsilon' - 1) / eta) [paper, Theorem 2], without overflow.

    >>> inner_epsilons(np.array([0.0, 1.0, 800.0]), 0.5).round(8)
    array([  0.        ,   1.48988013, 800.69314718])
    """
    high = np.maximum(epsilons, 1.0)
    large = high - np.log(eta) + np.log1p(-(1.0 - eta) * np.exp(-high))
    small = np.log1p(np.expm1(np.minimum(epsilons, 1.0)) / eta)
    return np.where(epsilons > 1.0, large, small)
