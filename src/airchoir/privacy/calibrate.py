"""Turn a bound on delta around: sigma or epsilon from the rest, always on the private side.

The bound is a monotone function, so the smallest argument that satisfies it is bracketed (the bracket expands as far as it
must: the published code clips it at 20 and silently breaks its promise) and bisected down to neighbouring floats. What is
returned is the end that satisfies the bound. Arguments become Python floats first: with a float32 numpy would calculate in
single precision, and the bound would not be one.
"""

import math
from collections.abc import Callable

_SMALLEST_LOG, _LARGEST_LOG = -708.0, 709.0

LogDelta = Callable[[float, float], float]
"""(epsilon, sigma) -> an upper bound on log delta."""


def delta(log_delta: LogDelta, epsilon: float, sigma: float) -> float:
    """The bound itself, rounded up."""
    return _exp_up(min(0.0, log_delta(float(epsilon), float(sigma))))


def _exp_up(log: float) -> float:
    return 0.0 if log == -math.inf else min(1.0, math.nextafter(math.exp(log), math.inf))


def log_target(delta: float) -> float:
    """The largest log, about, whose exponential is at most `delta` even rounded up: who meets it is seen to meet it.

    >>> math.log(0.5) - 1e-14 < log_target(0.5) < math.log(0.5)
    True
    """
    delta = float(delta)
    target = math.log(delta)
    step = math.ulp(target)
    while _exp_up(target) > delta:
        target, step = target - step, 2.0 * step
    return target


def sigma(log_delta: LogDelta, epsilon: float, delta: float) -> float:
    """The smallest sigma with bound(epsilon, sigma) <= delta; 0 where no noise is needed."""
    epsilon, target = float(epsilon), log_target(delta)
    if log_delta(epsilon, 0.0) <= target:
        return 0.0
    return smallest(lambda sigma: log_delta(epsilon, sigma) <= target, start=1.0)


def costly_sigma(log_delta: LogDelta, epsilon: float, delta: float, *, start: float, tolerance: float) -> float:
    """`sigma` with few evaluations of a smooth bound, too large by a relative `tolerance` at most."""
    epsilon, target = float(epsilon), log_target(delta)
    if log_delta(epsilon, 0.0) <= target:
        return 0.0
    return smallest_smooth(lambda sigma: log_delta(epsilon, sigma) - target, start=start, tolerance=tolerance)


def epsilon(log_delta: LogDelta, delta: float, sigma: float) -> float:
    """The smallest epsilon with bound(epsilon, sigma) <= delta; 0 exactly where delta(0) is enough."""
    sigma, target = float(sigma), log_target(delta)
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


def smallest_smooth(excess: Callable[[float], float], *, start: float, tolerance: float = 1e-12) -> float:
    """The smallest positive x with excess(x) <= 0, where the excess falls smoothly and costs much to evaluate.

    Within a relative `tolerance`, on the side that satisfies it: by interpolation, truncation and projection in log x, which
    never needs many more steps than bisection [Oliveira and Takahashi 2020].

    >>> round(smallest_smooth(lambda x: 2.0 - x * x, start=1.0), 11)
    1.41421356237
    """
    at_start = low = high = math.log(start)
    low_excess = high_excess = excess(start)
    stride = math.log(2.0)
    while high_excess > 0.0:
        low, low_excess = high, high_excess
        high, stride = high + stride, 2.0 * stride
        if high > _LARGEST_LOG:
            return math.inf
        high_excess = excess(math.exp(high))
    while low_excess <= 0.0:
        high, high_excess = low, low_excess
        if low == _SMALLEST_LOG:
            break
        low, stride = max(low - stride, _SMALLEST_LOG), 2.0 * stride
        low_excess = excess(math.exp(low))
    found = start if high == at_start else math.exp(high)
    return _interpolate(excess, (low, low_excess), (high, high_excess), found=found, tolerance=tolerance)


def _interpolate(
    excess: Callable[[float], float],
    low: tuple[float, float],
    high: tuple[float, float],
    *,
    found: float,
    tolerance: float,
) -> float:
    (low_at, low_excess), (high_at, high_excess) = low, high
    radius = tolerance / 2.0
    slack = radius * 2.0 ** (1 + max(0, math.ceil(math.log2(max(high_at - low_at, tolerance) / tolerance))))
    while high_at - low_at > tolerance:
        middle, width = (low_at + high_at) / 2.0, high_at - low_at
        secant = middle
        if math.isfinite(low_excess) and math.isfinite(high_excess):
            secant = (high_at * low_excess - low_at * high_excess) / (low_excess - high_excess)
        truncated = secant + math.copysign(min(0.2 * width * width, abs(middle - secant)), middle - secant)
        within = max(slack - width / 2.0, 0.0)
        at = min(max(truncated, middle - within), middle + within)
        at = at if low_at < at < high_at else middle
        if not low_at < at < high_at:
            break
        slack /= 2.0
        value = excess(math.exp(at))
        if value <= 0.0:
            high_at, high_excess, found = at, value, math.exp(at)
        else:
            low_at, low_excess = at, value
    return found
