"""Many queries: what a single-query bound adds up to, by its privacy-loss law [Zhu, Dong and Wang 2022].

B(alpha), the bound at alpha = e^epsilon >= 1, continued below 1 by symmetry, 1 - alpha + alpha B(1/alpha), is convex and
non-increasing, hence the profile of a pair of laws that dominates every neighbouring pair: T queries, even adaptive ones,
leak at most what T independent draws L of that pair's privacy loss add up to,

    delta_T(epsilon) = E (1 - exp(epsilon - L_1 - ... - L_T))_+

Every approximation errs on the private side. The profile is replaced by its chords between the nodes of a grid, losses
beyond the last node count as infinite, and what the FFT may lose by rounding or by wrapping around is added. As rounding is
relative to the likeliest sums, the law is first tilted by e^(lambda L), so that the sums near epsilon are the likeliest:
otherwise nothing below 1e-12 would be a bound. epsilon is within 1e-4 of the limit of ever finer grids up to some 1e7 queries;
beyond, the grid grows coarser, and in the end delta <= 1 is all that is said.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from airchoir._types import Float
from airchoir.privacy import calibrate
from airchoir.privacy.loss_law import LossLaw, Profile, chords, convolve, fast_size

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
_SHARE = 0.9
"""How much of Chernoff's tilt is taken: rounding matters a little more then, but sums far beyond epsilon are much rarer, and
where tails are heavy the window is half as wide."""
_COARSENESS = 8.0
"""How much coarser a rough grid is."""
_LARGEST = 2**21
"""Steps of the largest window for up to a million queries; up to twice as many for more of them."""
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
    single = _Single.of(profile, queries)
    return _fine(single, _rough(single, single.anchor(epsilon))).log_delta(epsilon)


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
    rough = lru_cache(maxsize=1)(lambda anchor: _rough(single, anchor))
    fine = lru_cache(maxsize=1)(lambda anchor: _fine(single, rough(anchor)))
    found = single.chernoff_epsilon(target)
    for total_at in (rough, fine):
        # Every round finds a bound, but near its own anchor alone does it fit and is it what `log_delta` says.
        for _ in range(8):
            anchor = single.anchor(found)
            total = total_at(anchor)
            if total is _TRIVIAL:
                return math.inf
            found = total.epsilon(target)
            if found == math.inf:
                found = max(2.0 * anchor, single.scale)
            elif single.anchor(found) == anchor:
                break
    bump = 1e-9
    while found < math.inf and fine(single.anchor(found)).log_delta(found) > target:
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

    def anchor(self, epsilon: float) -> float:
        """The epsilon, a little below, that the law of the sum is made for: neighbours share it, and so agree on delta_T."""
        law = self.law(-math.inf)
        deviation = law.tilted(law.tilt_towards(epsilon / self.queries)).moments()[1]
        near = min(max(deviation * math.sqrt(self.queries) / 4.0, epsilon * 2.0**-30), epsilon / 16.0)
        spacing = 2.0 ** math.floor(math.log2(max(near, 2.0**-1000)))
        return math.floor(epsilon / spacing) * spacing

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
class _Plan:
    """What the law of the sum is wanted for."""

    epsilon: float
    log_delta: float
    """What is negligible against this log delta_T(epsilon) is left out."""
    coarseness: float
    kind: np.dtype[Any]


@dataclass(frozen=True)
class _Total:
    """The law of the sum of all losses, tilted, on a window of the grid."""

    plan: _Plan
    tilt: float
    log_scale: float
    """T K(tilt): a sum s has the probability masses[s] e^(log_scale - tilt s)."""
    sums: Float
    masses: Float
    slack: tuple[float, float]
    """How far every mass may be off by rounding, and all of them together in the Euclidean norm."""
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
        slack = min(self.slack[0] * weights.sum(), self.slack[1] * math.sqrt((weights**2).sum()))
        with np.errstate(divide="ignore"):
            parts = np.log([(self.masses[above:] * weights).sum(), slack])
        seen, rounding = parts + self.log_scale - self.tilt * epsilon
        return float(seen), float(rounding)

    def epsilon(self, target: float) -> float:
        """The smallest epsilon with log_delta(epsilon) <= target."""
        if self.log_delta(0.0) <= target:
            return 0.0
        if self.log_missing + self.log_allowance > target:
            return math.inf
        start = self.plan.epsilon or 1e-9
        return calibrate.smallest_smooth(lambda epsilon: self.log_delta(epsilon) - target, start=start)


def _only_infinite(plan: _Plan, log_probability: float) -> _Total:
    """The law of a sum that exceeds epsilon only where it is infinite."""
    return _Total(
        plan=plan,
        tilt=0.0,
        log_scale=0.0,
        sums=np.full(1, plan.epsilon),
        masses=np.zeros(1),
        slack=(0.0, 0.0),
        log_missing=log_probability,
        log_allowance=0.0,
    )


_TRIVIAL = _only_infinite(_Plan(0.0, 0.0, 1.0, np.dtype(np.float64)), 0.0)
"""What is left to say where so many queries do not fit the largest window: delta is at most 1."""


def _rough(single: _Single, epsilon: float) -> _Total:
    """The law of the sum of all losses near epsilon on a rough grid.

    It finds out how large delta_T is, and so what matters: where tails are heavy Chernoff's bound is far above it.
    """
    expected = _LOWEST
    for _ in range(2):
        law = single.law(expected)
        if epsilon < single.queries * law.losses[-1]:
            expected = single.log_chernoff(law, epsilon) + _NEGLIGIBLE
    return _settled(single, _Plan(epsilon, expected, _COARSENESS, np.dtype(np.float64)))


def _fine(single: _Single, rough: _Total) -> _Total:
    """The same law on a grid that gives delta_T."""
    if rough is _TRIVIAL:
        return rough
    seen, _ = rough.log_parts(rough.plan.epsilon)
    return _settled(single, replace(rough.plan, coarseness=1.0, log_delta=max(rough.plan.log_delta, seen - 2.0)))


def _settled(single: _Single, plan: _Plan) -> _Total:
    """The law with all that turns out to matter, and as exact as it must be."""
    while True:
        total = _compose(single, plan)
        if total is _TRIVIAL:
            return total
        seen, rounding = total.log_parts(plan.epsilon)
        deeper = min(1.5 * plan.log_delta - 6.0, max(seen, total.log_missing + _NEGLIGIBLE))
        if total.log_missing > seen + _NEGLIGIBLE and single.last(deeper) > single.last(plan.log_delta):
            plan = replace(plan, log_delta=deeper)
        elif rounding > max(seen + 0.75 * _NEGLIGIBLE, _SMALL) and plan.kind != np.longdouble:
            plan = replace(plan, kind=np.dtype(np.longdouble))
        else:
            return total


def _compose(single: _Single, plan: _Plan) -> _Total:
    """The sum's law tilted towards epsilon, on a window that leaves out what is negligible."""
    queries, epsilon, coarse = single.queries, plan.epsilon, single.law(plan.log_delta)
    tilt = _SHARE * coarse.tilt_towards(epsilon / queries)
    if epsilon >= queries * coarse.losses[-1]:
        return _only_infinite(plan, _at_least_once(coarse.log_infinite, queries))
    outside = min(plan.log_delta - (queries * coarse.cumulant(tilt)[0] - tilt * epsilon), 0.0) + 1.5 * _NEGLIGIBLE
    step = _step(coarse, tilt, queries) * plan.coarseness
    largest = _LARGEST * min(max(math.sqrt(queries / 1e6), 1.0), 2.0) / min(plan.coarseness, 8.0)
    if plan.kind == np.longdouble:  # which takes eight times as long
        largest /= 4.0
    while True:
        nodes = _nodes(coarse, tilt, scale=single.scale, step=step)
        law = chords(nodes, single.profile(nodes))
        tilted = law.tilted(tilt)
        low, high = (tilted.tilt_down_to(outside / queries, sign) for sign in (-1.0, +1.0))
        lowest, highest = queries * tilted.cumulant(low)[1], queries * tilted.cumulant(high)[1]
        top = max(epsilon, min(highest, epsilon - outside / tilt) if tilt > 0.0 else highest)
        # Sums from outside (lowest, highest) are rare; others that wrap into (epsilon, top) would make the bound too large.
        # But what wraps upwards by a width has at most e^(-tilt width) of its weight, and that is negligible earlier.
        width = min(top - lowest, -(plan.log_delta + _NEGLIGIBLE) / tilt) if tilt > 0.0 else top - lowest
        steps = max(width, highest - epsilon) / step + 2.0
        if steps <= largest or step > coarse.losses[-1]:
            break
        step *= math.ceil(8.0 * steps / largest) / 8.0  # still a step whose multiples are floats
    if steps > largest:
        return _TRIVIAL
    last, size = math.floor(top / step) + 1, fast_size(steps)
    masses, slack = convolve(tilted, queries=queries, step=step, window=(last - size, size), kind=plan.kind)
    cumulant, _ = law.cumulant(tilt)
    beyond = min(queries * tilted.cumulant(high)[0] - high * last * step, 0.0) + queries * cumulant - tilt * last * step
    if last * step > queries * law.losses[-1]:
        beyond = -math.inf
    infinite = _at_least_once(law.log_infinite, queries)
    magnitude = 10.0 + abs(cumulant) + tilt * float((np.exp(tilted.log_mass) * np.abs(law.losses)).sum())
    return _Total(
        plan=plan,
        tilt=tilt,
        log_scale=queries * cumulant,
        sums=np.arange(last - size, last, dtype=np.float64) * step,
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
