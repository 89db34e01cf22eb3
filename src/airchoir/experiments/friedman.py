"""Do methods differ over data sets? Friedman's test on their ranks and Nemenyi's critical difference [Demsar 2006].

Each data set ranks the k methods by macro-F1, 1 the best, ties sharing their mean rank. Where all methods are alike every
order is as likely as any other, and with R_j the mean rank of method j over N data sets

    chi2 = 12 N / (k (k + 1)) sum over j of (R_j - (k + 1) / 2)^2,    over 1 - sum (t^3 - t) / (N k (k^2 - 1)) for ties of t,

is about chi-squared with k - 1 degrees of freedom for large N. For few data sets the p-value is exact: the share of all
orders that give as large a chi2 [Friedman 1937]. Two methods differ at level alpha where their mean ranks are apart by
CD = q sqrt(k (k + 1) / (6 N)), q the 1 - alpha quantile of the studentized range of k, over sqrt 2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from airchoir._types import Float

_EXACT_UP_TO = 6
"""Data sets, of at most 5 methods, for which every order of every data set is counted."""


@dataclass(frozen=True, eq=False)
class Friedman:
    """What the ranks of some methods on some data sets say."""

    methods: tuple[str, ...]
    ranks: Float
    """(data sets, methods)"""
    mean_ranks: Float
    statistic: float
    """chi2; NaN where every data set finds all methods equal."""
    p_value: float
    """NaN where nothing can be tested."""
    exact: bool
    """Whether every order was counted, instead of the chi-squared approximation."""


def friedman(scores: Float, methods: Sequence[str]) -> Friedman:
    """Friedman's test on `scores` (data sets, methods), the higher the better."""
    from scipy import stats

    ranks = stats.rankdata(-scores, axis=1)
    datasets, columns = ranks.shape
    statistic = _statistic(ranks)
    exact = datasets <= _EXACT_UP_TO and columns <= 5
    if datasets < 2 or math.isnan(statistic):
        p_value, exact = math.nan, False
    elif exact:
        p_value = exact_p_value(ranks)
    else:
        p_value = float(stats.chi2.sf(statistic, columns - 1))
    return Friedman(tuple(methods), ranks, ranks.mean(axis=0), statistic, p_value, exact)


def _statistic(ranks: Float) -> float:
    datasets, methods = ranks.shape
    shared = [np.unique(row, return_counts=True)[1].astype(np.float64) for row in ranks]
    ties = sum(float(np.sum(counts**3 - counts)) for counts in shared)
    correction = 1.0 - ties / (datasets * methods * (methods**2 - 1))
    if correction <= 1e-12:
        return math.nan
    deviations = ranks.mean(axis=0) - (methods + 1) / 2.0
    return 12.0 * datasets / (methods * (methods + 1)) * float(deviations @ deviations) / correction


def exact_p_value(ranks: Float) -> float:
    """The share of all orders, of each data set on its own, whose rank sums are as unequal as these or more so.

    Only the multiset of rank sums matters, as the methods may be renamed: so there are few to count.
    """
    doubled = np.rint(2.0 * ranks).astype(np.int64)  # ties share half ranks
    observed = int(np.sum(doubled.sum(axis=0) ** 2))
    counts: dict[tuple[int, ...], float] = {tuple(np.sort(doubled[0])): 1.0}
    for row in doubled[1:]:
        orders = np.array(list(permutations(row)))
        merged: dict[tuple[int, ...], float] = {}
        for sums, share in counts.items():
            distinct, times = np.unique(np.sort(orders + sums, axis=1), axis=0, return_counts=True)
            for next_sums, often in zip(map(tuple, distinct.tolist()), times.tolist(), strict=True):
                merged[next_sums] = merged.get(next_sums, 0.0) + share * often / len(orders)
        counts = merged
    return math.fsum(share for sums, share in counts.items() if sum(value * value for value in sums) >= observed)


def critical_difference(methods: int, datasets: int, alpha: float) -> float:
    """How far apart mean ranks must be for Nemenyi's test to tell two methods apart.

    >>> round(critical_difference(4, 14, 0.05), 2)
    1.25
    """
    from scipy import stats

    quantile = float(stats.studentized_range.ppf(1.0 - alpha, methods, np.inf)) / math.sqrt(2.0)
    return quantile * math.sqrt(methods * (methods + 1) / (6.0 * datasets))


def datasets_needed(methods: int, alpha: float) -> int:
    """How many data sets tell two methods apart that are one rank apart on each of them."""
    return math.ceil(critical_difference(methods, 1, alpha) ** 2)
