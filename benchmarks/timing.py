"""CPU time, side by side: what runs on the machine meanwhile disturbs both alike."""

import time
from collections.abc import Callable

from benchmarks.answer import Sample

Action = Callable[[], object]


def cpu_seconds(action: Action) -> float:
    """The CPU time of one call."""
    start = time.process_time()
    action()
    return time.process_time() - start


def race(ours: Action, rival: Action, *, repeats: int) -> tuple[Sample, Sample]:
    """Seconds of each, in turns, after one call of each that does not count."""
    ours()
    rival()
    times = [(cpu_seconds(ours), cpu_seconds(rival)) for _ in range(repeats)]
    first, second = zip(*times, strict=True)
    return Sample(first, "s"), Sample(second, "s")


def per(sample: Sample, count: int, unit: str) -> Sample:
    """Seconds in all as nanoseconds for each of `count`."""
    return Sample(tuple(1e9 * value / count for value in sample.values), unit)
