"""Turn a bound on delta around: sigma or epsilon from the rest, always on the private side.

The bound is a monotone function, so the smallest argument that satisfies it is bracketed (the bracket expands as far as it
must: the published code clips it at 20 and silently breaks its promise) and bisected down to neighbouring floats. What is
returned is the end that satisfies the bound.
"""

import math
from collections.abc import Callable

LogDelta = Callable[[float, float], float]
"""(epsilon, sigma) -> an upper bound on log delta."""


def delta(log_delta: LogDelta, epsilon: float, sigma: float) -> float:
    """The bound itself, rounded up."""
    bound = min(0.0, log_delta(epsilon, sigma))
    return 0.0 if bound == -math.inf else min(1.0, math.nextafter(math.exp(bound), math.inf))


def sigma(log_delta: LogDelta, epsilon: float, delta: float) -> float:
    """The smallest sigma with bound(epsilon, sigma) <= delta; 0 where no noise is needed."""
    target = math.log(delta)
    if log_delta(epsilon, 0.0) <= target:
        return 0.0
    return smallest(lambda sigma: log_delta(epsilon, sigma) <= target, start=1.0)


def epsilon(log_delta: LogDelta, delta: float, sigma: float) -> float:
    """The smallest epsilon with bound(epsilon, sigma) <= delta; 0 exactly where delta(0) is enough."""
    target = math.log(delta)
    if log_delta(0.0, sigma) <= target:
        return 0.0
    if sigma == 0.0:
        return math.inf
    return smallest(lambda epsilon: log_delta(epsilon, sigma) <= target, start=1.0)


def smallest(satisfied: Callable[[float], bool], *, start: float) -> float:
    """The smallest positive float that satisfies a condition which holds from some point on.

    >>> smallest(lambda x: x * x >= 2.0, start=1.0)
    1.4142135623730951
    """
    high = start
    while not satisfied(high):
        high *= 2.0
        if high == math.inf:
            return math.inf
    low = high / 2.0
    while low > 0.0 and satisfied(low):
        high, low = low, low / 2.0
    while low < (middle := low + (high - low) / 2.0) < high:
        low, high = (low, middle) if satisfied(middle) else (middle, high)
    return high
