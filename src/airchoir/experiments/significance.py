"""Do the methods differ over data sets? Friedman's test on their ranks, and Nemenyi's critical difference [Demsar 2006].

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
from itertools import combinations, permutations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from airchoir._types import Float
from airchoir.channels.awgn import Awgn
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, source
from airchoir.experiments.conditions import Condition, Measured, measure_all
from airchoir.experiments.table1 import EPSILONS, METHODS, SNR_DB
from airchoir.experiments.wording import listing, promise, under
from airchoir.privacy import Privacy
from airchoir.report.findings import Cell, Curve, Figure, Findings, Panel, Table
from airchoir.scheme import Scheme

_EXACT_UP_TO = 6
"""Data sets for which every order of every data set is counted."""


@dataclass(frozen=True, eq=False)
class Friedman:
    """What the ranks of some methods on some data sets say."""

    ranks: Float
    """(data sets, methods)"""
    mean_ranks: Float
    statistic: float
    """chi2; NaN where every data set ranks all methods alike."""
    p_value: float
    exact: bool
    """Whether every order was counted, instead of the chi-squared approximation."""


@dataclass(frozen=True)
class Significance(Experiment):
    """The five methods of table 1, ranked on every task."""

    name: ClassVar[str] = "significance"
    title: ClassVar[str] = "Significance over data sets"
    epsilons: tuple[float, ...] = EPSILONS
    alpha: float = 0.05
    delta: float = 1e-6
    snr_db: float = SNR_DB

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        conditions = [
            Condition(
                {"method": method, "epsilon": epsilon},
                choir,
                Scheme(*METHODS[method], Awgn(self.snr_db), Privacy(epsilon, self.delta)),
            )
            for choir in choirs
            for epsilon in self.epsilons
            for method in METHODS
        ]
        found = measure_all(conditions, progress=progress)
        tests = {epsilon: friedman(self._scores(choirs, found, epsilon)) for epsilon in self.epsilons}
        caption = (
            f"Mean ranks of the methods over {_datasets(len(choirs))}, 1 the best (SNR {self.snr_db:g} dB, delta "
            f"{self.delta:g})."
        )
        bars = (
            f" The bars are half a critical difference to either side (Nemenyi, alpha {self.alpha:g}): methods whose bars "
            "do not touch differ."
            if len(choirs) > 1
            else ""
        )
        return Findings(
            name=self.name,
            title=self.title,
            summary=self._summary(choirs, tests),
            tables=(self._table(choirs, tests, caption),),
            figures=(Figure(self.name, caption + bars, tuple(self._panel(e, test) for e, test in tests.items())),),
            rows=found.rows(),
            notes=(
                "A data set is a task, ranked by the mean over its banks: seeds of one task share data and are not "
                "independent.",
                "Mean ranks say which method is better how often, not by how much.",
            ),
            source=source(),
        )

    def _scores(self, choirs: Sequence[Choir], found: Measured, epsilon: float) -> Float:
        """Macro-F1 (data sets, methods)."""
        return np.array([[found.f1(choir, method=method, epsilon=epsilon) for method in METHODS] for choir in choirs])

    def _panel(self, epsilon: float, test: Friedman) -> Panel:
        datasets, methods = test.ranks.shape
        half = critical_difference(methods, datasets, self.alpha) / 2.0 if datasets > 1 else 0.0
        order = np.argsort(test.mean_ranks, kind="stable")
        curves = []
        for place, method in enumerate(METHODS):
            height = 1.0 + float(np.flatnonzero(order == place)[0])
            rank = float(test.mean_ranks[place])
            x = (rank - half, rank, rank + half) if half else (rank,)
            curves.append(Curve(method, x, (height,) * len(x), style=place))
        ticks = tuple(map(float, range(1, methods + 1)))
        return Panel(
            promise(epsilon),
            "mean rank (1 is best)",
            "place",
            tuple(curves),
            x_ticks=ticks,
            x_tick_labels=tuple(f"{tick:g}" for tick in ticks),
        )

    def _table(self, choirs: Sequence[Choir], tests: dict[float, Friedman], caption: str) -> Table:
        rows = []
        for epsilon, test in tests.items():
            best = test.mean_ranks.min()
            for place, method in enumerate(METHODS):
                mean = float(test.mean_ranks[place])
                rows.append(
                    (
                        Cell(f"{epsilon:g}"),
                        Cell(method),
                        *(Cell(f"{rank:g}") for rank in test.ranks[:, place]),
                        Cell(f"{mean:.2f}", bold=bool(mean == best)),
                    )
                )
        header = ("epsilon", "method", *(choir.title for choir in choirs), "mean rank")
        sections = tuple(range(len(METHODS), len(rows), len(METHODS)))
        return Table(self.name, caption, header, tuple(rows), sections)

    def _summary(self, choirs: Sequence[Choir], tests: dict[float, Friedman]) -> tuple[str, ...]:
        names = listing(choir.title for choir in choirs)
        if len(choirs) < 2:
            return (
                f"With one data set ({names}) nothing can be tested: ranks on it say nothing about another one.",
                *(self._order(epsilon, test) for epsilon, test in tests.items()),
            )
        return (
            *(self._verdict(epsilon, test) for epsilon, test in tests.items()),
            self._power(len(choirs), names),
        )

    def _order(self, epsilon: float, test: Friedman) -> str:
        methods = list(METHODS)
        ordered = sorted(range(len(methods)), key=lambda place: (test.mean_ranks[place], place))
        words = listing(f"{methods[place]} ({test.mean_ranks[place]:.2f})" for place in ordered)
        return f"{under(epsilon).capitalize()} the mean ranks are, from the best: {words}."

    def _verdict(self, epsilon: float, test: Friedman) -> str:
        order = self._order(epsilon, test).removesuffix(".")
        if math.isnan(test.statistic):
            return f"{order}; every data set finds all methods equal, so there is nothing to test."
        how = "exact" if test.exact else "by the chi-squared approximation"
        verdict = "the methods are not all alike" if test.p_value <= self.alpha else "no difference is shown"
        pairs = self._apart(test)
        apart = listing(pairs) if pairs else "no two methods"
        return (
            f"{order}; Friedman's chi2 = {test.statistic:.2f} with p = {test.p_value:.2g} ({how}): {verdict} at level "
            f"{self.alpha:g}; Nemenyi's test tells apart {apart}."
        )

    def _apart(self, test: Friedman) -> list[str]:
        """The pairs of methods that differ by more than the critical difference; none where Friedman's test finds nothing."""
        if test.p_value > self.alpha:
            return []
        datasets, methods = test.ranks.shape
        least, names = critical_difference(methods, datasets, self.alpha), list(METHODS)
        pairs = [
            sorted(pair, key=lambda place: float(test.mean_ranks[place])) for pair in combinations(range(methods), 2)
        ]
        return [
            f"{names[better]} from {names[worse]}"
            for better, worse in pairs
            if test.mean_ranks[worse] - test.mean_ranks[better] >= least
        ]

    def _power(self, datasets: int, names: str) -> str:
        methods = len(METHODS)
        least, widest = critical_difference(methods, datasets, self.alpha), methods - 1
        can = (
            f"so only methods further apart than {least / widest:.0%} of the whole scale can be told apart"
            if least <= widest
            else "so no two methods can be told apart, whatever they do"
        )
        needed = datasets_needed(methods, self.alpha)
        return (
            f"What {_datasets(datasets)} ({names}) can show: at level {self.alpha:g} mean ranks must differ by {least:.2f} of at "
            f"most {widest}, {can}; two methods one rank apart on every data set would need {needed}."
        )


def _datasets(number: int) -> str:
    return f"{number} data set{'s' if number > 1 else ''}"


def friedman(scores: Float) -> Friedman:
    """Friedman's test on `scores` (data sets, methods), the higher the better."""
    from scipy import stats

    ranks = stats.rankdata(-scores, axis=1)
    datasets, methods = ranks.shape
    statistic = _statistic(ranks)
    if datasets < 2 or math.isnan(statistic):
        return Friedman(ranks, ranks.mean(axis=0), statistic, math.nan, exact=False)
    if datasets <= _EXACT_UP_TO and methods <= 5:
        return Friedman(ranks, ranks.mean(axis=0), statistic, exact_p_value(ranks), exact=True)
    return Friedman(ranks, ranks.mean(axis=0), statistic, float(stats.chi2.sf(statistic, methods - 1)), exact=False)


def _statistic(ranks: Float) -> float:
    datasets, methods = ranks.shape
    ties = sum(float(np.sum(counts**3 - counts)) for row in ranks for counts in [_multiplicities(row)])
    correction = 1.0 - ties / (datasets * methods * (methods**2 - 1))
    if correction <= 1e-12:
        return math.nan
    deviations = ranks.mean(axis=0) - (methods + 1) / 2.0
    return 12.0 * datasets / (methods * (methods + 1)) * float(deviations @ deviations) / correction


def _multiplicities(row: Float) -> NDArray[np.intp]:
    return np.unique(row, return_counts=True)[1]


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
