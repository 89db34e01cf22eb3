"""Conditions: any number of schemes on choirs, told apart by words, measured one after the other."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from airchoir.experiments import Progress, silent
from airchoir.experiments.choirs import Choir, Measurement, measure
from airchoir.metrics import Estimate
from airchoir.report.findings import Curve
from airchoir.scheme import Scheme

Words = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Condition:
    """A scheme on a choir, and the words that tell it apart from the others of an experiment."""

    words: Words
    choir: Choir
    scheme: Scheme


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured, found again by its words."""

    conditions: tuple[Condition, ...]
    measurements: tuple[Measurement, ...]
    _places: dict[Any, int] = field(default_factory=dict, repr=False, init=False)

    def __post_init__(self) -> None:
        for place, condition in enumerate(self.conditions):
            key = _key(condition.choir.task, condition.words)
            assert key not in self._places, f"two conditions are {key}"
            self._places[key] = place

    def at(self, choir: Choir, **words: Any) -> Measurement:
        """What was measured on the choir's task under these words."""
        return self.measurements[self._places[_key(choir.task, words)]]

    def pooled(self, choir: Choir, **words: Any) -> Estimate:
        """The same, over all banks."""
        return self.at(choir, **words).pooled

    def f1(self, choir: Choir, **words: Any) -> float:
        """Its macro-F1."""
        return self.pooled(choir, **words).macro_f1

    def rows(self) -> tuple[dict[str, Any], ...]:
        """Every number, in JSON's own types."""
        pairs = zip(self.conditions, self.measurements, strict=True)
        return tuple(measurement.row(**condition.words) for condition, measurement in pairs)


def _key(task: str, words: Words) -> Any:
    return task, frozenset(words.items())


def measure_all(conditions: Sequence[Condition], *, progress: Progress = silent) -> Measured:
    """Every condition, exactly."""
    measurements = []
    for condition in conditions:
        measurements.append(measure(condition.scheme, condition.choir))
        progress(len(measurements), len(conditions))
    return Measured(tuple(conditions), tuple(measurements))


def percent_curve(label: str, points: Iterable[tuple[float, float]], *, style: int, line: bool = True) -> Curve:
    """A curve of fractions, drawn in percent."""
    x, y = zip(*points, strict=True)
    return Curve(label, tuple(map(float, x)), tuple(100.0 * value for value in y), style=style, line=line)


def set_off(values: Sequence[float]) -> tuple[float, ...]:
    """Ascending values with infinity at a place of its own on a logarithmic axis, set off from the last finite one.

    >>> set_off((1.0, 10.0, math.inf))
    (1.0, 10.0, 30.0)
    """
    finite = [value for value in values if math.isfinite(value)]
    return tuple(value if math.isfinite(value) else 3.0 * max(finite, default=1.0) for value in values)


def check_ascending(name: str, values: Sequence[float], *, least: int = 1) -> None:
    """A ValueError unless there are `least` values or more, each larger than the one before."""
    if len(values) < least or any(not one < next_one for one, next_one in pairwise(values)):
        raise ValueError(f"{name} must be {least} or more and ascending, got {tuple(values)}; sort them, each once")


def steady_from(good: Sequence[bool]) -> int | None:
    """The first place from which on all are good, or None.

    >>> steady_from([True, False, True, True]), steady_from([True, False])
    (2, None)
    """
    bad = [place for place, each_one in enumerate(good) if not each_one]
    first = bad[-1] + 1 if bad else 0
    return first if first < len(good) else None
