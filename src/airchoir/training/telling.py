"""How the queue's events reach a person without a terminal, or a file."""

import json
import math
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from airchoir.training.queue import Event, Outcome


class JsonLog:
    """Appends one JSON line per event to a file, each at once and whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def __call__(self, event: Event) -> None:
        if self._file is None:
            self._file = _opened(self._path)
        record = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **event.record()}
        finite = {name: _json(value) for name, value in record.items()}
        line = json.dumps(finite, allow_nan=False).encode() + b"\n"
        written = os.write(self._file, line)  # one call: lines of several processes do not mix
        if written < len(line):
            raise OSError(f"{self._path}: only a part of a line could be written; the disk is full")

    def close(self) -> None:
        """Nothing more will happen."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Lines:
    """Writes one plain line for every fitted client and every bank, and one for all that was kept."""

    def __init__(self, write: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._pace = Pace(clock)
        self._said_kept = False

    def __call__(self, event: Event) -> None:
        self._pace(event)
        if event.what == "started" and not self._said_kept:
            self._said_kept = True
            if event.details["done"]:
                self._write(f"{event.details['done']} of {event.details['total']} clients are finished already")
        if event.what == "finished":
            self._write(f"{self._pace.fitted(event)}; {self._pace.left(event)}")
        if event.what == "bank":
            self._write(f"seed {event.seed}: {event.details['path']}{' is complete' if event.details['kept'] else ''}")


class Pace:
    """Remembers what people want to know: how the last epoch of each client went, and how long the rest will take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._epochs: dict[tuple[int, int | None], Event] = {}
        self._first: tuple[float, int] | None = None

    def __call__(self, event: Event) -> None:
        if event.what == "epoch":
            self._epochs[event.seed, event.client] = event
        if event.what == "started" and self._first is None:
            self._first = self._clock(), event.details["done"]

    def fitted(self, event: Event) -> str:
        """A finished client in words."""
        words = f"seed {event.seed}, client {event.client}: {event.details['seconds']:.3g} s"
        last = self._epochs.pop((event.seed, event.client), None)
        if last is None:
            return words
        return f"{words}, loss {last.details['loss']:.4f}, {last.details['examples_per_second']:,.0f} examples/s"

    def left(self, event: Event) -> str:
        """What is left after a finished client, in words; from what was fitted here so far."""
        left = event.details["total"] - event.details["done"]
        if left == 0 or self._first is None:
            return f"{left} left"
        started, done = self._first
        seconds = (self._clock() - started) / max(1, event.details["done"] - done) * left
        return f"{left} left, about {duration(seconds)}"


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(8.2), duration(200.0), duration(9000.0)
    ('9 s', '4 min', '2 h 30 min')
    """
    if seconds < 60.0:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60.0)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def summary(outcome: Outcome) -> str:
    """How a run of the queue ended, in one line."""
    words = f"{outcome.fitted} clients fitted, {outcome.kept} kept"
    return (
        f"{words}; {outcome.left} are left: run the same command again to go on"
        if outcome.left
        else f"{words}; all done"
    )


def _opened(path: Path) -> int:
    """The file, open for appending; what a full disk once left of a last line is cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    size = os.fstat(descriptor).st_size
    tail = os.pread(descriptor, 1 << 16, max(0, size - (1 << 16)))
    if tail and not tail.endswith(b"\n"):
        os.ftruncate(descriptor, size - len(tail) + tail.rfind(b"\n") + 1)
    return descriptor


def _json(value: object) -> object:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
