"""What table 1 looks like: the rows, the same beside the paper's, and the differences between methods."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from airchoir.experiments import paper
from airchoir.experiments.bootstrap import LEVEL, Difference
from airchoir.experiments.choirs import Choir, Measurement
from airchoir.experiments.paper import Published
from airchoir.experiments.wording import listing, macro_f1, points, promise, signed, small, with_spread
from airchoir.report.findings import ABSENT, Cell, Table

Key = tuple[str, float]
"""A method and its epsilon."""


@dataclass(frozen=True, eq=False)
class Result:
    """Table 1 of one task."""

    choir: Choir
    measured: Mapping[Key, Measurement]
    """In the table's order; without the best client where there are no validation scores."""
    differences: Mapping[Key, Difference]
    """Of each method but the reference, to the reference at the same epsilon."""
    reference: str

    @cached_property
    def published(self) -> dict[Key, Published]:
        """What the paper says of the same."""
        said = {(m, e): paper.in_table1(m, e, self.choir.task) for m, e in self.measured}
        return {key: value for key, value in said.items() if value is not None}

    def percent(self, key: Key) -> float:
        """Mean macro-F1 in percent."""
        return 100.0 * self.measured[key].pooled.macro_f1

    def off(self, key: Key) -> float:
        """Ours less the paper's, in the paper's standard deviations."""
        said = self.published[key]
        return (self.percent(key) - said.mean) / said.std

    def best(self, epsilon: float) -> list[Key]:
        """The methods of highest macro-F1 under a promise, as far as two decimals tell."""
        shown = {key: round(self.percent(key), 2) for key in self.measured if key[1] == epsilon}
        return [key for key, value in shown.items() if value == max(shown.values())]

    def rows(self) -> list[dict[str, Any]]:
        """All numbers, with the scheme and banks behind each."""
        return [measurement.row(**self._words(key)) for key, measurement in self.measured.items()]

    def _words(self, key: Key) -> dict[str, Any]:
        words: dict[str, Any] = {"method": key[0], "epsilon": key[1]}
        if key in self.published:
            said = self.published[key]
            words |= {"paper_percent": said.mean, "paper_std_percent": said.std, "off_in_paper_stds": self.off(key)}
        if key in self.differences:
            one = self.differences[key]
            words |= {"difference_to": self.reference, "difference": one.value}
            words |= {"difference_low": one.low, "difference_high": one.high, "difference_level": LEVEL}
        return words


def keys(results: Sequence[Result]) -> list[Key]:
    """Every row that any task has, in the table's order."""
    longest = max((result.measured for result in results), key=len)
    return list(longest)


def sections(keys: Sequence[Key]) -> tuple[int, ...]:
    """The rows at which another promise begins."""
    return tuple(place for place in range(1, len(keys)) if keys[place][1] != keys[place - 1][1])


def main_table(results: Sequence[Result]) -> Table:
    """The paper's ten rows: macro-F1 by task, the best of each half in bold, and what a query costs."""
    rows = []
    for key in keys(results):
        scores = [_score(result, key) for result in results]
        rows.append((Cell(promise(key[1])), Cell(key[0]), *scores, Cell(_channel_uses(results, key))))
    return Table(
        name="table1",
        caption=f"Macro-F1 in percent on the test set (± {_over(results)}), and channel uses per query",
        header=("Privacy", "Method", *(result.choir.title for result in results), "Channel uses"),
        rows=tuple(rows),
        sections=sections(keys(results)),
        notes=(f"{setting(results)} {spread(results)} The best of each half in bold.{_classes(results)}",),
    )


def _score(result: Result, key: Key) -> Cell:
    if key not in result.measured:
        return ABSENT
    return Cell(macro_f1(result.measured[key].pooled), bold=key in result.best(key[1]))


def _channel_uses(results: Sequence[Result], key: Key) -> str:
    """In numbers, or as multiples of the number of classes k where that differs by task."""
    those = [result for result in results if key in result.measured]
    used = [result.measured[key].pooled.channel_uses for result in those]
    if _one(result.choir.classes for result in results) and len(set(used)) == 1:
        return f"{used[0]:,.0f}"
    times = [value / result.choir.classes for value, result in zip(used, those, strict=True)]
    return listing(dict.fromkeys("k" if value == 1.0 else f"{value:g} k" for value in times))


def _classes(results: Sequence[Result]) -> str:
    """What k is, where a table needs it."""
    if _one(result.choir.classes for result in results):
        return ""
    titles: dict[int, list[str]] = {}
    for result in results:
        titles.setdefault(result.choir.classes, []).append(result.choir.title)
    return f" k is {listing(f'{classes} for {listing(those)}' for classes, those in titles.items())}."


def _one(values: Iterable[object]) -> bool:
    return len(set(values)) == 1


def setting(results: Sequence[Result]) -> str:
    """Where all the numbers hold."""
    scheme = next(m.scheme for (_, e), m in results[0].measured.items() if e < math.inf)
    clients = " / ".join(dict.fromkeys(str(result.choir.clients) for result in results))
    return (
        f"{clients} clients, all taking part (p = 1), SNR {scheme.channel.snr_db:g} dB, δ = {small(scheme.privacy.delta)}, "
        f"accountant {scheme.privacy.accountant}."
    )


def spread(results: Sequence[Result]) -> str:
    """What the standard deviations are of."""
    counts = [len(result.choir.banks) for result in results]
    one = "± is the standard deviation of one noisy run"
    if max(counts) == 1:
        return f"{one} on the one bank of each task: its noise, without what another training seed would change."
    if min(counts) == max(counts):
        return f"{one} over {counts[0]} banks: noise within banks and spread between them."
    listed = ", ".join(f"{result.choir.title} {count}" for result, count in zip(results, counts, strict=True))
    return f"{one} over the banks of each task ({listed}): noise within banks and, from two on, spread between them."


def _over(results: Sequence[Result]) -> str:
    """The same in a few words, for a caption."""
    several = max(len(result.choir.banks) for result in results) > 1
    return "over the banks of each task" if several else "within the one bank of each task"


def paper_table(results: Sequence[Result]) -> Table | None:
    """Ours beside the paper's, None where no task is one of the paper's."""
    rows: list[tuple[Cell, ...]] = []
    starts: list[int] = []
    for result in results:
        shared = [key for key in result.measured if key in result.published]
        starts += [len(rows) + place for place in (0, *sections(shared))] if shared else []
        for key in shared:
            rows.append((Cell(result.choir.title), Cell(promise(key[1])), Cell(key[0]), *_beside(result, key)))
    if not rows:
        return None
    return Table(
        name="table1_paper",
        caption="Macro-F1 in percent, ours beside the paper's",
        header=("Task", "Privacy", "Method", "Ours", "Paper", "Difference", "In the paper's std."),
        rows=tuple(rows),
        sections=tuple(start for start in starts if start > 0),
        notes=(
            f"{spread(results)} The paper's is over {paper.RUNS} seeds [{paper.source('table1')}]. Last column: the "
            "difference divided by the paper's standard deviation.",
        ),
    )


def _beside(result: Result, key: Key) -> tuple[Cell, ...]:
    said = result.published[key]
    return (
        Cell(macro_f1(result.measured[key].pooled)),
        Cell(with_spread(said.mean, said.std)),
        Cell(signed(result.percent(key) - said.mean)),
        Cell(signed(result.off(key), 1)),
    )


def difference_table(results: Sequence[Result]) -> Table:
    """Every other method less the reference, with its interval."""
    reference = results[0].reference
    rows: list[tuple[Cell, ...]] = []
    starts: list[int] = []
    for result in results:
        own = list(result.differences)
        starts += [len(rows) + place for place in (0, *sections(own))]
        for method, epsilon in own:
            one = result.differences[method, epsilon]
            interval = Cell(f"{points(one.low)} to {points(one.high)}", bold=one.clear)
            rows.append(
                (Cell(result.choir.title), Cell(promise(epsilon)), Cell(method), Cell(points(one.value)), interval)
            )
    return Table(
        name="table1_differences",
        caption=f"Difference in macro-F1 to {reference} at the same ε, in percentage points",
        header=("Task", "Privacy", "Method", "Difference", f"{100 * LEVEL:g} % interval"),
        rows=tuple(rows),
        sections=tuple(start for start in starts if start > 0),
        notes=(
            "Intervals of a paired bootstrap over the test set, each for itself. They cover which queries the test set "
            "happens to hold, not the noise of a single run (averaged exactly here) and not training. Bold: it leaves 0 out.",
        ),
    )
