"""Significance over data sets: the methods of table 1, ranked on every task."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from airchoir._types import Float
from airchoir.channels.awgn import Awgn
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, check_any, source
from airchoir.experiments.conditions import Condition, Measured, measure_all
from airchoir.experiments.friedman import Friedman, critical_difference, datasets_needed, friedman
from airchoir.experiments.methods import EPSILONS, METHODS, SNR_DB, common_methods, style_of, without_best_client
from airchoir.experiments.wording import listing, promise, under
from airchoir.privacy import Privacy
from airchoir.report.findings import Cell, Curve, Figure, Findings, Panel, Table
from airchoir.scheme import Scheme


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
        check_any(choirs, self.name)
        methods = common_methods(choirs)
        conditions = [
            Condition(
                {"method": method, "epsilon": epsilon},
                choir,
                Scheme(*METHODS[method], Awgn(self.snr_db), Privacy(epsilon, self.delta)),
            )
            for choir in choirs
            for epsilon in self.epsilons
            for method in methods
        ]
        found = measure_all(conditions, progress=progress)
        tests = {e: friedman(_scores(choirs, found, methods, e), methods) for e in self.epsilons}
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
                *without_best_client(choirs),
            ),
            source=source(),
        )

    def _panel(self, epsilon: float, test: Friedman) -> Panel:
        datasets, methods = test.ranks.shape
        half = critical_difference(methods, datasets, self.alpha) / 2.0 if datasets > 1 else 0.0
        order = np.argsort(test.mean_ranks, kind="stable")
        curves = []
        for place, method in enumerate(test.methods):
            height = 1.0 + float(np.flatnonzero(order == place)[0])
            rank = float(test.mean_ranks[place])
            x = (rank - half, rank, rank + half) if half else (rank,)
            curves.append(Curve(method, x, (height,) * len(x), style=style_of(method)))
        ticks = tuple(map(float, range(1, methods + 1)))
        return Panel(
            promise(epsilon),
            "Mean rank (1 is best)",
            "Place",
            tuple(curves),
            x_ticks=ticks,
            x_tick_labels=tuple(f"{tick:g}" for tick in ticks),
        )

    def _table(self, choirs: Sequence[Choir], tests: dict[float, Friedman], caption: str) -> Table:
        rows = []
        for epsilon, test in tests.items():
            best = test.mean_ranks.min()
            for place, method in enumerate(test.methods):
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
        size = len(rows) // len(tests)
        sections = tuple(range(size, len(rows), size))
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
            self._power(len(choirs), names, methods=len(next(iter(tests.values())).methods)),
        )

    def _order(self, epsilon: float, test: Friedman) -> str:
        ordered = sorted(range(len(test.methods)), key=lambda place: (test.mean_ranks[place], place))
        words = listing(f"{test.methods[place]} ({test.mean_ranks[place]:.2f})" for place in ordered)
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
        least = critical_difference(methods, datasets, self.alpha)
        pairs = [
            sorted(pair, key=lambda place: float(test.mean_ranks[place])) for pair in combinations(range(methods), 2)
        ]
        return [
            f"{test.methods[better]} from {test.methods[worse]}"
            for better, worse in pairs
            if test.mean_ranks[worse] - test.mean_ranks[better] >= least
        ]

    def _power(self, datasets: int, names: str, *, methods: int) -> str:
        least, widest = critical_difference(methods, datasets, self.alpha), methods - 1
        can = (
            f"so only methods further apart than {least / widest:.0%} of the whole scale can be told apart"
            if least <= widest
            else "so no two methods can be told apart, whatever they do"
        )
        needed = datasets_needed(methods, self.alpha)
        return (
            f"What {_datasets(datasets)} ({names}) can show: at level {self.alpha:g} mean ranks must be apart by "
            f"{least:.2f} of at most {widest}, {can}; two methods one rank apart on every data set would need {needed}."
        )


def _scores(choirs: Sequence[Choir], found: Measured, methods: Sequence[str], epsilon: float) -> Float:
    """Macro-F1 (data sets, methods)."""
    return np.array([[found.f1(choir, method=method, epsilon=epsilon) for method in methods] for choir in choirs])


def _datasets(number: int) -> str:
    return f"{number} data set{'s' if number > 1 else ''}"
