"""Accuracy and F1, from labels or from expected counts.

The counts of one run are sums over queries of independent decisions: T_c, how often class c was decided rightly, and
D_c, how often it was decided at all. F1_c = 2 T_c / (n_c + D_c) where n_c is how often c is the truth [scikit-learn's
f1_score with labels=range(k), average="macro", zero_division=0].
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from airchoir._types import Float, Labels, PerClass, Probabilities

_ROUNDING = 1e-13
"""What rounding may leave of a difference of two sums, relative to them: where nothing is random the spread is 0."""
_LEAST = 1e-300
"""What a class that neither occurs nor is decided is divided by: all its sums are 0."""


class Tally(Protocol):
    """Sums over queries of the decision probabilities P_qj: all that the metrics need."""

    @property
    def support(self) -> PerClass:
        """How often each class is the truth."""

    @property
    def hits(self) -> PerClass:
        """E T_c, the sum of P_qc over the queries of class c."""

    @property
    def hits_squared(self) -> PerClass:
        """The sum of P_qc^2 over the queries of class c."""

    @property
    def decided(self) -> PerClass:
        """E D_c, the sum of P_qc over all queries."""

    @property
    def decided_squared(self) -> PerClass:
        """The sum of P_qc^2 over all queries."""

    def mean_squares(self, on_hits: PerClass, on_decided: PerClass) -> float:
        """The sum over queries of (E g_q)^2, g_q(j) = on_decided[j] + on_hits[j] [j is the truth of q]."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Expected metrics of a scheme on a bank, their spread over independent repeats, and what the scheme cost."""

    macro_f1: float
    macro_f1_std: float
    """Over repeats: noise and participation drawn anew (several banks: and another bank)."""
    macro_f1_se: float
    """Of what was drawn to compute this estimate; 0 where nothing was drawn."""
    accuracy: float
    accuracy_std: float
    accuracy_se: float
    per_class_f1: PerClass
    per_class_f1_std: PerClass
    hits: PerClass
    decided: PerClass
    sigma: float = 0.0
    """Standard deviation of the aggregate privacy noise."""
    channel_noise_variance: float = 0.0
    """Of the receiver in the decision variable, summed over slots, expected over P_t."""
    channel_uses: float = 0.0
    accountant: str = ""
    draws: int = 0
    """Participant sets drawn per query (exact evaluation) or repeats (simulation); 0 where nothing was drawn."""


def per_class_f1(hits: Float, decided: Float, support: PerClass) -> Float:
    """2 T / (n + D), and 0 where a class neither occurs nor is decided.

    >>> per_class_f1(np.array([3.0, 0.0]), np.array([4.0, 0.0]), np.array([5.0, 0.0])).round(3)
    array([0.667, 0.   ])
    """
    total = support + decided
    return np.divide(2.0 * hits, total, out=np.zeros_like(total), where=total > 0.0)


def macro_f1(labels: Labels, decisions: Labels, classes: int) -> float:
    """scikit-learn's macro-F1 over all classes."""
    hits, decided, support = count(labels, decisions, classes)
    return float(per_class_f1(hits, decided, support).mean())


def count(labels: Labels, decisions: Labels, classes: int) -> tuple[PerClass, PerClass, PerClass]:
    """T_c, D_c and n_c of one run."""
    hits = np.bincount(labels[labels == decisions], minlength=classes).astype(np.float64)
    decided = np.bincount(decisions, minlength=classes).astype(np.float64)
    return hits, decided, np.bincount(labels, minlength=classes).astype(np.float64)


def gradient(tally: Tally) -> tuple[PerClass, PerClass]:
    """The derivatives of macro-F1 by T_c and by D_c at the expected counts: how much one decision moves it."""
    on_hits, on_decided, _ = _own_gradient(tally)
    return on_hits / len(on_hits), on_decided / len(on_decided)


def _own_gradient(tally: Tally) -> tuple[PerClass, PerClass, PerClass]:
    """The derivatives of every class's own F1 = 2 T / d by T and by D, and d = n + E D.

    The derivatives are 0 for a class that never occurs: its F1 is 0 however often it is decided, if only 1e-300 times.
    """
    total = np.maximum(tally.support + tally.decided, _LEAST)
    on_hits = 2.0 * (tally.support > 0.0) / total
    return on_hits, on_hits * tally.hits / -total, total


def summarise(
    tally: Tally,
    *,
    drawn_f1_variance: float = 0.0,
    drawn_accuracy_variance: float = 0.0,
    drawn_class_f1_variance: PerClass | float = 0.0,
) -> Estimate:
    """Expected metrics and their standard deviation over repeats.

    Accuracy is exact. F1 is a ratio of counts, so its expectation is the ratio of expectations plus a second-order
    (delta-method) correction, E[2T/(n+D)] = 2T/d - 2 Cov(T, D)/d^2 + 2 T Var(D)/d^3 with d = n + E D. What remains is at
    most 0.07 / n^2 for a class that is the truth of n queries (worst found by search: 0.0689): 7e-4 at n = 10, 1.8e-2 at
    n = 2. At 10,000 queries x 10 classes macro-F1 is within 5e-5 of its expectation where every class has 38 queries. The
    spread is the delta method's first order, summed query by query.

    Where participant sets were drawn, `drawn_*_variance` is the variance that drawing them leaves in the metrics: it is
    the squared standard error, and what the drawn squares overestimate is put back into the spread. (The correction of
    the mean needs nothing: the plug-in bias of the drawn counts and the missing variance cancel.)
    """
    classes, queries = len(tally.support), float(tally.support.sum())
    hits_variance = np.maximum(tally.hits - tally.hits_squared, 0.0)  # also Cov(T, D), as D - T is independent of T
    decided_variance = np.maximum(tally.decided - tally.decided_squared, 0.0)
    on_hits, on_decided, total = _own_gradient(tally)
    f1 = on_hits * tally.hits - (on_hits * hits_variance + on_decided * decided_variance) / total

    # A decision moves a class's F1 by on_decided if it is wrong, and by on_decided + on_hits if it is right.
    by_hits, by_decided = on_hits * (on_hits + 2.0 * on_decided), on_decided * on_decided
    squares = float(by_decided @ tally.decided + by_hits @ tally.hits)
    spread = squares - tally.mean_squares(on_hits, on_decided)
    f1_variance = (spread / classes**2 if spread > _ROUNDING * squares else 0.0) + drawn_f1_variance
    own_variance = by_hits * hits_variance + by_decided * decided_variance + drawn_class_f1_variance
    accuracy_variance = float(hits_variance.sum()) / queries**2 + drawn_accuracy_variance
    return Estimate(
        macro_f1=float(f1.sum()) / classes,
        macro_f1_std=math.sqrt(f1_variance),
        macro_f1_se=math.sqrt(drawn_f1_variance),
        accuracy=float(tally.hits.sum()) / queries,
        accuracy_std=math.sqrt(accuracy_variance),
        accuracy_se=math.sqrt(drawn_accuracy_variance),
        per_class_f1=f1,
        per_class_f1_std=np.sqrt(np.maximum(own_variance, 0.0)),
        hits=tally.hits,
        decided=tally.decided,
    )


@dataclass(frozen=True, eq=False)
class DenseTally:
    """A tally of full probability rows; tallies of disjoint queries add up."""

    support: PerClass
    hits: PerClass
    decided: PerClass
    products: Float
    """Sum over queries of P_qi P_qj."""
    hit_products: Float
    """Sum over the queries of class c of P_qc P_qj, at [c, j]."""

    @classmethod
    def of(cls, probabilities: Probabilities, labels: Labels) -> "DenseTally":
        """The tally of a block of queries."""
        classes = probabilities.shape[1]
        rows = np.arange(len(labels))
        right = probabilities[rows, labels]
        only_right = np.zeros_like(probabilities)
        only_right[rows, labels] = right
        return cls(
            support=np.bincount(labels, minlength=classes).astype(np.float64),
            hits=np.bincount(labels, weights=right, minlength=classes).astype(np.float64, copy=False),
            decided=probabilities.sum(axis=0, dtype=np.float64),
            products=(probabilities.T @ probabilities).astype(np.float64),
            hit_products=(only_right.T @ probabilities).astype(np.float64),
        )

    def __add__(self, other: "DenseTally") -> "DenseTally":
        return DenseTally(
            support=self.support + other.support,
            hits=self.hits + other.hits,
            decided=self.decided + other.decided,
            products=self.products + other.products,
            hit_products=self.hit_products + other.hit_products,
        )

    @property
    def hits_squared(self) -> PerClass:
        return self.hit_products.diagonal()

    @property
    def decided_squared(self) -> PerClass:
        return self.products.diagonal()

    def mean_squares(self, on_hits: PerClass, on_decided: PerClass) -> float:
        mixed = float(on_hits @ (self.hit_products @ on_decided))
        return float(on_decided @ self.products @ on_decided) + 2.0 * mixed + float(on_hits**2 @ self.hits_squared)


def pool(estimates: list[Estimate]) -> Estimate:
    """Several banks as one: means, and the spread of one run on a random bank.

    macro_f1_std^2 = mean variance within banks + population variance between banks.
    """
    first = estimates[0]
    if len(estimates) == 1:
        return first
    pooled: dict[str, Any] = {
        name: np.mean([getattr(e, name) for e in estimates], axis=0)
        for name, value in vars(first).items()
        if not isinstance(value, str | int)
    }
    for name in ("macro_f1", "accuracy", "per_class_f1"):
        within = np.mean([getattr(e, f"{name}_std") ** 2 for e in estimates], axis=0)
        pooled[f"{name}_std"] = np.sqrt(within + np.var([getattr(e, name) for e in estimates], axis=0))
        if name != "per_class_f1":  # means of independent draws are less uncertain than each
            errors = [getattr(e, f"{name}_se") for e in estimates]
            pooled[f"{name}_se"] = np.linalg.norm(errors) / len(errors)
    values: dict[str, Any] = {name: value if np.ndim(value) else float(value) for name, value in pooled.items()}
    return replace(first, **values)
