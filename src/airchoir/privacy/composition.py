"""Many queries: what a single-query bound adds up to, by its privacy-loss law [Zhu, Dong and Wang 2022].

B(alpha), the bound at alpha = e^epsilon >= 1, continued below 1 by symmetry, 1 - alpha + alpha B(1/alpha), is convex and
non-increasing, hence the profile of a pair of laws that dominates every neighbouring pair: T queries, even adaptive ones,
leak at most what T independent draws L of that pair's privacy loss add up to,

    delta_T(epsilon) = E (1 - exp(epsilon - L_1 - ... - L_T))_+

Every approximation errs on the private side. The profile is replaced by its chords between the nodes of a grid, losses
beyond the last node count as infinite, and what the FFT may lose by rounding or by wrapping around is added. As rounding is
relative to the likeliest sums, the law is first tilted by e^(lambda L), so that the sums near epsilon are the likeliest:
otherwise nothing below 1e-12 would be a bound. epsilon is within 1e-4 of the limit of ever finer grids up to some 1e6 queries;
beyond, the grid grows coarser, and in the end delta <= 1 is all that is said.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from airchoir._types import Float
from airchoir.privacy import calibrate
from airchoir.privacy.loss_law import LossLaw, Profile, chords, convolve

_NODES_PER_DEVIATION = 240.0
"""How many nodes lie in one standard deviation of a single loss, where losses matter most and the grid has as many steps."""
_GROWTH = 0.001
"""How much further apart nodes lie, per distance from there: rare losses need no fine grid."""
_LIFT = 0.02
"""The widest spacing at a loss of 1; it grows with the loss's root, so that chords lift every loss by the same share."""
_STEPS_PER_DEVIATION = 90.0
"""How many steps of the grid, at least, lie in the smallest standard deviation; up to 8 times more for few queries."""
_NEGLIGIBLE = -12.0
"""log of the largest part of delta_T that may come from what is left out, and about of what rounding may add to it."""
_SMALL = -100.0
"""log of the delta_T below which rounding may be what matters: then the bound is true but not tight."""
_LOWEST = -650.0
"""log of the smallest single-query delta that is told from 0: floats end at -745."""
_COARSENESS = 8.0
"""How much coarser a rough grid is."""
_LARGEST = 2**21
"""Steps of the largest window."""
_ROUNDING = 4.0 * float(np.finfo(float).eps)
_COARSE = np.append(0.0, np.exp2(np.arange(-50.0, 50.0, 0.125)))


def log_delta(profile: Profile, epsilon: float, *, queries: int) -> float:
    """log delta_T(epsilon), rounded up.

    >>> from airchoir.privacy.gaussian import log_deltas
    >>> four, one = log_delta(lambda e: log_deltas(e, 0.1), 0.5, queries=4), log_deltas(np.array([0.5]), 0.2)[0]
    >>> bool(one < four < one + 1e-3)
    True
    """
    if epsilon == math.inf:
        return -math.inf
    return _total_near(_Single.of(profile, queries), epsilon, 1.0).log_delta(epsilon)


def epsilon(profile: Profile, delta: float, *, queries: int) -> float:
    """The smallest epsilon with delta_T(epsilon) <= delta, rounded up.

    >>> from airchoir.privacy.gaussian import log_deltas
    >>> round(epsilon(lambda e: log_deltas(e, 0.1), 1e-6, queries=4), 3)
    0.834
    """
    target = calibrate.log_target(delta)
    single = _Single.of(profile, queries)
    if _at_least_once(float(single.log_bound[-1]), queries) > target:
        return math.inf
    found = single.chernoff_epsilon(target)
    for coarseness in (_COARSENESS, 1.0):
        for _ in range(8):  # every round finds a bound, but the grid fits it only once it stays
            total = _total_near(single, found, coarseness)
            if total is _TRIVIAL:
                return math.inf
            before, found = found, total.epsilon(target)
            if found == math.inf:
                found = 2.0 * before
            elif abs(found - before) <= 0.01 * (coarseness - 1.0) * before:
                break
    bump = 1e-9
    while found != before and _total_near(single, found, 1.0).log_delta(found) > target:
        found, bump = found * (1.0 + bump), 4.0 * bump
    return found


@dataclass(frozen=True)
class _Single:
    """One query's bound, coarsely, to find out which losses matter."""

    profile: Profile
    queries: int
    losses: Float
    log_bound: Float
    scale: float
    """Where the bound is an e-th of what it is at 0."""

    @staticmethod
    def of(profile: Profile, queries: int) -> "_Single":
        log_bound = profile(_COARSE)
        scale = float(_COARSE[int(np.argmax(log_bound < log_bound[0] - 1.0))])
        # Chords much shorter than that would be rounding noise.
        kept = (_COARSE == 0.0) | (scale * 2.0**-10 <= _COARSE)
        return _Single(profile, queries, _COARSE[kept], log_bound[kept], scale)

    def last(self, log_delta: float) -> int:
        """The node from which on losses no longer matter to a delta_T of this size."""
        deep = self.log_bound <= max(log_delta + _NEGLIGIBLE - 2.0 - math.log(self.queries), _LOWEST)
        return int(np.argmax(deep)) if np.any(deep) else len(deep) - 1

    def law(self, log_delta: float) -> LossLaw:
        """The coarse law, with losses infinite from there on."""
        nodes = slice(self.last(log_delta) + 1)
        return chords(self.losses[nodes], self.log_bound[nodes])

    def chernoff_epsilon(self, log_delta: float) -> float:
        """About the epsilon of a delta."""
        law = self.law(log_delta)
        return max(0.0, self.queries * law.cumulant(law.tilt_down_to(log_delta / self.queries, +1.0))[1])

    def log_chernoff(self, law: LossLaw, epsilon: float) -> float:
        """Chernoff's bound on log delta_T(epsilon)."""
        tilt = law.tilt_towards(epsilon / self.queries)
        return self.queries * law.cumulant(tilt)[0] - tilt * epsilon


def _nodes(law: LossLaw, tilt: float, *, scale: float, step: float) -> Float:
    """Where the bound is evaluated: multiples of `step`, no denser than losses matter near this tilt."""
    means, deviations = np.transpose([law.tilted(share * tilt).moments() for share in (0.0, 0.5, 1.0)])
    # Rare large losses make the deviation say nothing of the usual ones.
    deviations[0] = min(deviations[0], 2.0 * scale)
    reach = float(law.losses[-1])
    losses = np.append(0.0, np.geomspace(step, max(reach, 2 * step), 4096))
    far = np.maximum(means[0] - losses, 0.0) + np.maximum(losses - means[-1], 0.0)
    usual = deviations[0] + np.abs(losses - means[0])
    spacing = np.minimum(np.interp(losses, means, deviations), usual) / _NODES_PER_DEVIATION + _GROWTH * far
    spacing = np.minimum(spacing, _LIFT * np.sqrt(losses))  # a chord lifts a loss by spacing^2 / 12
    density = 1.0 / np.maximum(spacing, np.maximum(step, 1e-4 * losses))
    count = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(losses)))
    nodes = np.interp(np.arange(math.ceil(count[-1]) + 1), count, losses)
    return np.unique(np.rint(nodes / step)) * step


def _step(law: LossLaw, tilt: float, queries: int) -> float:
    """The power of two that resolves a loss's standard deviation under every tilt that matters."""
    deviation = min(law.tilted(share * tilt).moments()[1] for share in (0.0, 0.5, 1.0))
    finer = min(max(100.0 / math.sqrt(queries), 1.0), 8.0)
    wanted = max(deviation / (finer * _STEPS_PER_DEVIATION), float(law.losses[-1]) * 2.0**-30, 2.0**-60)
    return 2.0 ** math.floor(math.log2(wanted))


@dataclass(frozen=True)
class _Total:
    """The law of the sum of all losses, tilted, on a window of the grid."""

    tilt: float
    log_scale: float
    """T K(tilt): a sum s has the probability masses[s] e^(log_scale - tilt s)."""
    sums: Float
    masses: Float
    slack: float
    """How far every mass may be off by rounding."""
    log_missing: float
    """log of how likely it is, at most, that the sum is infinite or above the window."""
    log_allowance: float

    def log_delta(self, epsilon: float) -> float:
        """log delta_T(epsilon), rounded up; the trivial bound 0 below the window."""
        if epsilon < self.sums[0]:
            return 0.0
        seen, rounding = self.log_parts(epsilon)
        return min(0.0, float(np.logaddexp(np.logaddexp(seen, rounding), self.log_missing)) + self.log_allowance)

    def log_parts(self, epsilon: float) -> tuple[float, float]:
        """The window's part of log delta_T(epsilon), and what rounding may add to it."""
        above = int(np.searchsorted(self.sums, epsilon, side="right"))
        excess = self.sums[above:] - epsilon
        weights = np.exp(-self.tilt * excess) * -np.expm1(-excess)
        # A sum of products, not a dot product: threads would cost more than they save.
        parts = np.array([(self.masses[above:] * weights).sum(), self.slack * weights.sum()])
        with np.errstate(divide="ignore"):
            seen, rounding = np.log(parts) + self.log_scale - self.tilt * epsilon
        return float(seen), float(rounding)

    def epsilon(self, target: float) -> float:
        """The smallest epsilon with log_delta(epsilon) <= target."""
        if self.log_delta(0.0) <= target:
            return 0.0
        if self.log_missing + self.log_allowance > target:
            return math.inf
        middle = float(self.sums[len(self.sums) // 2])
        return calibrate.smallest_smooth(lambda epsilon: self.log_delta(epsilon) - target, start=max(middle, 1e-9))


def _only_infinite(epsilon: float, log_probability: float) -> _Total:
    """The law of a sum that exceeds epsilon only where it is infinite."""
    return _Total(
        tilt=0.0,
        log_scale=0.0,
        sums=np.full(1, epsilon),
        masses=np.zeros(1),
        slack=0.0,
        log_missing=log_probability,
        log_allowance=0.0,
    )


_TRIVIAL = _only_infinite(0.0, 0.0)
"""What is left to say where so many queries do not fit the largest window: delta is at most 1."""


def _total_near(single: _Single, epsilon: float, finest: float) -> _Total:
    """The law of the sum of all losses, tilted towards epsilon, with all that matters to delta_T(epsilon).

    A rough grid finds out how large delta_T is, and so what matters: where tails are heavy Chernoff's bound is far above it.
    """
    law = single.law(-math.inf)
    for _ in range(2):
        expected = single.log_chernoff(law, epsilon) + _NEGLIGIBLE
        law = single.law(expected)
    coarseness = _COARSENESS
    kind: np.dtype[Any] = np.dtype(np.float64)
    while True:
        law = single.law(expected)
        total = _compose(single, law, epsilon, log_delta=expected, coarseness=coarseness, kind=kind)
        if total is _TRIVIAL:
            return total
        seen, rounding = total.log_parts(epsilon)
        deeper = min(1.5 * expected - 6.0, max(seen, total.log_missing + _NEGLIGIBLE))
        if total.log_missing > seen + _NEGLIGIBLE and single.last(deeper) > single.last(expected):
            expected = deeper
        elif rounding > max(seen + 0.75 * _NEGLIGIBLE, _SMALL) and kind != np.longdouble:
            kind = np.dtype(np.longdouble)
        elif coarseness > finest:
            coarseness, expected = finest, max(expected, seen - 2.0)
        else:
            return total


def _compose(
    single: _Single,
    coarse: LossLaw,
    epsilon: float,
    *,
    log_delta: float,
    coarseness: float,
    kind: np.dtype[Any],
) -> _Total:
    """The sum's law tilted towards epsilon, on a window that leaves out what is negligible against this log delta_T."""
    queries, tilt = single.queries, coarse.tilt_towards(epsilon / single.queries)
    if epsilon >= queries * coarse.losses[-1]:
        return _only_infinite(epsilon, _at_least_once(coarse.log_infinite, queries))
    outside = min(log_delta - single.log_chernoff(coarse, epsilon), 0.0) + 1.5 * _NEGLIGIBLE
    step = _step(coarse, tilt, queries) * coarseness
    largest = _LARGEST / min(coarseness, 4.0)
    while True:
        nodes = _nodes(coarse, tilt, scale=single.scale, step=step)
        law = chords(nodes, single.profile(nodes))
        tilted = law.tilted(tilt)
        low, high = (tilted.tilt_down_to(outside / queries, sign) for sign in (-1.0, +1.0))
        lowest, highest = queries * tilted.cumulant(low)[1], queries * tilted.cumulant(high)[1]
        top = max(epsilon, min(highest, epsilon - outside / tilt) if tilt > 0.0 else highest)
        # Sums from outside (lowest, highest) are rare; the others must not be wrapped into (epsilon, top).
        steps = max(top - lowest, highest - epsilon) / step + 2.0
        size = 2 ** max(5, math.ceil(math.log2(8 / 7 * steps)))
        if size <= largest or step > coarse.losses[-1]:
            break
        step *= size / largest
    if size > largest:
        return _TRIVIAL
    last = (math.floor(top / step / (size // 8)) + 1) * (size // 8)  # the same window for neighbouring epsilons
    masses, slack = convolve(tilted, queries=queries, step=step, window=(last - size, size), kind=kind)
    cumulant, _ = law.cumulant(tilt)
    beyond = min(queries * tilted.cumulant(high)[0] - high * last * step, 0.0) + queries * cumulant - tilt * last * step
    if last * step > queries * law.losses[-1]:
        beyond = -math.inf
    infinite = _at_least_once(law.log_infinite, queries)
    magnitude = 10.0 + abs(cumulant) + tilt * float((np.exp(tilted.log_mass) * np.abs(law.losses)).sum())
    return _Total(
        tilt=tilt,
        log_scale=queries * cumulant,
        sums=np.arange(last - size, last) * step,
        masses=masses,
        slack=slack,
        log_missing=float(np.logaddexp(beyond, infinite)),
        log_allowance=(queries * magnitude + size) * _ROUNDING,
    )


def _at_least_once(log_probability: float, queries: int) -> float:
    """log of how likely an event is in T independent tries, rounded up."""
    probability = math.exp(log_probability)
    if probability == 1.0:
        return 0.0
    if probability * queries < 1e-3:
        return log_probability + math.log(queries)
    return min(0.0, math.log(-math.expm1(queries * math.log1p(-probability))) + queries * _ROUNDING)
