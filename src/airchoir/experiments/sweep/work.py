"""The work of a sweep: which stretch of it comes next, and how a process does one."""

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from airchoir.bank import ScoreBank
from airchoir.experiments.sweep.condition import Condition, engine, numbers
from airchoir.jobs import Note
from airchoir.training.setting import checksum

SLICE_SECONDS = 0.5
"""About how long a stretch takes: what a kill loses, and how often rows are written."""
_FIRST_SIZE, _LARGEST_SIZE = 8, 512
_WORTH_SECONDS = 5.0
"""How much work makes up for starting another process."""


@dataclass(frozen=True)
class Stretch:
    """Items of a sweep that follow each other."""

    start: int
    stop: int

    def __str__(self) -> str:
        return f"conditions {self.start + 1} to {self.stop}"


@dataclass(frozen=True)
class Done:
    """What came of the first items of a stretch: numbers, or in words why there are none."""

    outcomes: list[tuple[Any, ...] | str]
    seconds_each: float


class Agenda:
    """Stretches to do, in order, each about a slice long. What a slice was too short for comes back and is next."""

    def __init__(self, items: int) -> None:
        self._left = deque([Stretch(0, items)] if items else [])
        self._waiting = items
        self._size = _FIRST_SIZE
        self._seconds_each = 0.0

    def __iter__(self) -> "Agenda":
        return self

    def __next__(self) -> Stretch:
        if not self._left:
            raise StopIteration
        whole = self._left.popleft()
        split = min(whole.stop, whole.start + self._size)
        if split < whole.stop:
            self._left.appendleft(Stretch(split, whole.stop))
        self._waiting -= split - whole.start
        return Stretch(whole.start, split)

    def heard(self, stretch: Stretch, done: Done) -> None:
        """Learn from a stretch how large the next should be, and take back what is left of it."""
        count = len(done.outcomes)
        self._size = max(1, min(_LARGEST_SIZE, 2 * count))
        self._seconds_each = done.seconds_each
        if stretch.start + count < stretch.stop:
            self._left.appendleft(Stretch(stretch.start + count, stretch.stop))
            self._waiting += stretch.stop - stretch.start - count

    def processes(self, cores: int, *, alone: bool) -> int:
        """How many are worth having for what is left; 0 for none but this one, where it may work `alone`."""
        worth = min(cores, int(self._waiting * self._seconds_each / _WORTH_SECONDS))
        return 0 if alone and worth < 2 else max(1, worth)


@dataclass(frozen=True, eq=False)
class BankFile:
    """A bank on a disk that whoever works can reach."""

    path: Path
    checksum: str
    bank: ScoreBank | None = None
    """The bank itself, as long as it stays in this process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return BankFile, (self.path, self.checksum)

    def load(self) -> ScoreBank:
        """The bank, if it is still what it was."""
        if self.bank is not None:
            return self.bank
        bank = ScoreBank.load(self.path)
        if content(bank) != self.checksum:
            raise ValueError(f"{self.path} has changed since the sweep began; run the same command again")
        return bank


@dataclass(frozen=True, eq=False)
class BankParcel:
    """A bank that travels with the work."""

    tensors: Mapping[str, NDArray[Any]]
    metadata: Mapping[str, str]

    @classmethod
    def of(cls, bank: ScoreBank) -> "BankParcel":
        """Everything in the bank."""
        return cls(bank.tensors(), dict(bank.metadata))

    def load(self) -> ScoreBank:
        """The bank."""
        return ScoreBank(**self.tensors, metadata=self.metadata)


def content(bank: ScoreBank) -> str:
    """The checksum of everything in a bank."""
    return checksum(bank.tensors(), bank.metadata)


@dataclass(frozen=True, eq=False)
class Orders:
    """All that is to be evaluated; called, it makes what evaluates it in this process."""

    banks: tuple[BankFile | BankParcel, ...]
    items: tuple[tuple[int, Condition], ...]
    engine: str = field(default_factory=engine)

    def __call__(self) -> "Evaluator":
        if engine() != self.engine:
            raise ValueError("this machine's airchoir is not that where the sweep was started; install the same here")
        return Evaluator(self)


class Evaluator:
    """Evaluates stretches, with one bank at a time in memory."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._bank: tuple[int, ScoreBank] | None = None

    def __call__(self, stretch: Stretch, note: Note) -> Done:
        outcomes: list[tuple[Any, ...] | str] = []
        began = first = time.monotonic()
        for index in range(stretch.start, stretch.stop):
            outcomes.append(self._evaluate(*self._orders.items[index]))
            now = time.monotonic()
            first = now if len(outcomes) == 1 else first  # which sorts what the others find sorted
            if now - began > SLICE_SECONDS:
                break
        count = len(outcomes)
        return Done(outcomes, (now - first) / (count - 1) if count > 1 else now - began)

    def _evaluate(self, index: int, condition: Condition) -> tuple[Any, ...] | str:
        if self._bank is None or self._bank[0] != index:
            self._bank = index, self._orders.banks[index].load()
        try:
            return numbers(condition.estimate(self._bank[1]))
        except (ValueError, ArithmeticError) as error:
            return str(error)
