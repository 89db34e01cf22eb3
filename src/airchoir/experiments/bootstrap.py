"""A paired bootstrap over the test set: how much would another test set of this size change a difference of methods?

A resample gives query q the weight w_q, how often it was drawn: one multinomial vector for all methods and for all banks
of one test set. Macro-F1 of a resample is that of the weighted expected counts,

    T_c = sum over q of w_q P_qc [c is the truth],    D_c = sum of w_q P_qc,    n_c = sum of w_q [c is the truth],

with the exact decision probabilities P. So an interval covers the sampling of test queries, and neither noise (which is
averaged exactly) nor training.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airchoir._types import Float, Labels, Probabilities
from airchoir.exact import decisions
from airchoir.experiments.choirs import Choir
from airchoir.metrics import per_class_f1
from airchoir.scheme import Scheme

LEVEL = 0.95
RESAMPLES = 1000
SEED = 20220203
_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True)
class Difference:
    """A difference of macro-F1 and the interval that another test set of the same size would leave it in."""

    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval leaves 0 out, to the two decimals of a percentage point that are shown."""
        return round(100.0 * self.low, 2) > 0.0 or round(100.0 * self.high, 2) < 0.0


@dataclass(frozen=True, eq=False)
class Resamples:
    """Macro-F1 of every method on every resample of the test set, and on the test set itself."""

    resampled: Float
    """(resamples, methods), the mean over banks."""
    observed: Float
    """(methods)"""

    def difference(self, one: int, other: int, value: float) -> Difference:
        """`value`, the expected macro-F1 of method `one` less that of `other`, with what resampling moves it by.

        The observed difference here lacks the small second-order term of `metrics.summarise`, which `value` has: so the
        percentiles are taken around it.
        """
        moved = (self.resampled[:, one] - self.resampled[:, other]) - (self.observed[one] - self.observed[other])
        low, high = np.quantile(moved, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
        return Difference(value, value + float(low), value + float(high))


def resample(choir: Choir, schemes: Sequence[Scheme], *, resamples: int = RESAMPLES, seed: int = SEED) -> Resamples:
    """The schemes on resamples of the choir's test set; banks with other labels are resampled on their own."""
    resampled, observed = np.zeros((resamples, len(schemes))), np.zeros(len(schemes))
    test_sets: list[Labels] = []
    for bank in choir.banks:
        own = next((i for i, labels in enumerate(test_sets) if np.array_equal(labels, bank.test_labels)), None)
        if own is None:
            own = len(test_sets)
            test_sets.append(bank.test_labels)
        rows = [decisions(scheme, bank).probabilities.astype(np.float32) for scheme in schemes]
        counted = Counted.of(rows, bank.test_labels)
        observed += counted.macro_f1(np.ones((1, bank.queries), dtype=np.float32))[0]
        blocks = weights(bank.queries, resamples, np.random.SeedSequence(seed, spawn_key=(own,)))
        resampled += np.concatenate([counted.macro_f1(block) for block in blocks])
    return Resamples(resampled / len(choir.banks), observed / len(choir.banks))


def weights(queries: int, resamples: int, seed: np.random.SeedSequence) -> Iterator[NDArray[np.float32]]:
    """Blocks (resamples, queries) of how often each query is drawn in a resample as large as the test set."""
    rng = np.random.Generator(np.random.SFC64(seed))
    size = max(1, _BLOCK_BYTES // (8 * queries))
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        drawn = rng.integers(0, queries, (rows, queries)) + np.arange(rows)[:, None] * queries
        yield np.bincount(drawn.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Counted:
    """The decision probabilities of several methods, queries sorted by their truth, ready to be weighted."""

    order: NDArray[np.intp]
    """The queries, class by class."""
    start: NDArray[np.intp]
    """Where each class begins, and the end."""
    probabilities: NDArray[np.float32]
    """(queries, methods x classes), in that order."""
    right: NDArray[np.float32]
    """(queries, methods): of the truth."""

    @classmethod
    def of(cls, rows: Sequence[NDArray[Any] | Probabilities], labels: Labels) -> "Counted":
        """The methods' probability rows (queries, classes), one array for each."""
        order = np.argsort(labels, kind="stable")
        start = np.searchsorted(labels[order], np.arange(rows[0].shape[1] + 1))
        right = np.stack([method[order, labels[order]] for method in rows], axis=1)
        return cls(order, start, np.concatenate([method[order] for method in rows], axis=1), right)

    def macro_f1(self, weight: NDArray[np.float32]) -> Float:
        """(resamples, methods), for the weights (resamples, queries)."""
        sorted_weight = np.ascontiguousarray(weight[:, self.order])
        classes, methods = len(self.start) - 1, self.right.shape[1]
        decided = (sorted_weight @ self.probabilities).reshape(len(weight), methods, classes)
        hits, support = np.empty_like(decided), np.empty((len(weight), 1, classes), dtype=np.float32)
        for label in range(classes):
            members = slice(self.start[label], self.start[label + 1])
            hits[:, :, label] = sorted_weight[:, members] @ self.right[members]
            support[:, 0, label] = sorted_weight[:, members].sum(axis=1)
        return per_class_f1(hits.astype(np.float64), decided.astype(np.float64), support.astype(np.float64)).mean(
            axis=2
        )
