"""sweep(): every condition of a grid on every bank, a row each; stop it at any moment, in any way, and start it again."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from airchoir import provenance
from airchoir.bank import ScoreBank
from airchoir.experiments import Progress, silent
from airchoir.experiments.sweep.condition import NUMBERS, Condition
from airchoir.experiments.sweep.grid import Grid, GridError, Plan
from airchoir.experiments.sweep.rows import JsonLines, Row, Rows, open_rows
from airchoir.experiments.sweep.work import Agenda, BankFile, BankParcel, Orders, content
from airchoir.jobs import LOCAL, check_place, run
from airchoir.jobs.processes import cores, has_one_thread

_BEFORE = {"key": str, "task": str, "bank": str, "bank_seed": str, "clients": int, "classes": int}
_AFTER = {"commit": str, "versions": str}
_WHOLE = ("draws", "queries", "lost", "repeats", "seed")
_WORDS = ("rule", "access", "channel", "accountant", "method")
COLUMNS: dict[str, type] = {
    **_BEFORE,
    **{name: int if name in _WHOLE else str if name in _WORDS else float for name in (*Condition._fields, *NUMBERS)},
    **_AFTER,
}
"""What a row holds, in order: where it is from, the condition, the numbers, and what computed them."""


@dataclass(frozen=True)
class Swept:
    """What a sweep came to."""

    path: Path
    new: int
    kept: int
    skipped: int
    aside: int
    """Rows of earlier grids that this one does not ask for: in a folder of their own, until a grid asks for them again."""


def sweep(
    grid: Grid,
    banks: Sequence[tuple[Path, ScoreBank]],
    out: Path,
    *,
    on: str = LOCAL,
    form: str = JsonLines.name,
    progress: Progress = silent,
) -> Swept:
    """Evaluate what is missing below `out`. Finished rows stay whatever happens; at the end they are in the grid's order."""
    check_place(on)
    sources = [_Source.of(path, bank) for path, bank in banks]
    _check_different(sources)
    plan = grid.plan(banks)
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; --out wants a folder")
    rows = open_rows(out, form, COLUMNS)
    aside = open_rows(out / "earlier", form, COLUMNS)
    with ExitStack() as stack:
        stack.enter_context(_alone(out))
        stack.callback(rows.close)
        return _Sweep(plan, sources, rows, aside).run(on, progress)


@dataclass(frozen=True, eq=False)
class _Source:
    """A bank, and what its rows say about it."""

    path: Path
    bank: ScoreBank
    checksum: str
    words: Row

    @classmethod
    def of(cls, path: Path, bank: ScoreBank) -> "_Source":
        words = {
            "task": bank.metadata.get("task") or path.resolve().parent.name,
            "bank": str(path),
            "bank_seed": bank.metadata.get("seed", ""),
            "clients": bank.clients,
            "classes": bank.classes,
        }
        return cls(path, bank, content(bank), words)


def _check_different(sources: Sequence[_Source]) -> None:
    known: dict[str, Path] = {}
    for source in sources:
        if source.checksum in known:
            raise ValueError(f"{source.path} holds the same bank as {known[source.checksum]}; give it once")
        known[source.checksum] = source.path


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Nobody else writes below `out`; the system gives it back when a process ends, however it ends."""
    out.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(out / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ValueError(f"another sweep is writing to {out}; wait for it, or give another --out") from None
    finally:
        os.close(descriptor)


class _Sweep:
    """The rows there are, and those still to come."""

    def __init__(self, plan: Plan, sources: Sequence[_Source], rows: Rows, aside: Rows) -> None:
        self._plan, self._sources, self._rows, self._aside = plan, sources, rows, aside
        self._keys = [condition.key(sources[index].checksum) for index, condition in plan.items]
        self._made_by = {"commit": provenance.commit(), "versions": _versions()}
        self._failed: dict[int, str] = {}
        """Items that only their evaluation showed to be impossible, and why."""

    def run(self, on: str, progress: Progress) -> Swept:
        """Take stock, evaluate what is missing, and put the rows in order."""
        on_disk, set_aside = self._take_stock()
        kept, known = len(on_disk), set(on_disk)
        todo = [index for index, key in enumerate(self._keys) if key not in known]
        finished = kept
        progress(finished, len(self._keys))
        for indices, outcomes in self._evaluated(todo, on):
            rows = self._made(indices, outcomes)
            if rows:
                self._rows.append(rows)
                on_disk += [row["key"] for row in rows]
            finished += len(indices)
            progress(finished, len(self._keys))
        self._put_in_order(on_disk)
        self._check_failed()
        new = len(on_disk) - kept
        return Swept(self._rows.path, new, kept, self._plan.skipped + len(self._failed), set_aside)

    def _take_stock(self) -> tuple[list[str], int]:
        """The keys of the rows that still apply, in their order on the disk, and how many rows are set aside."""
        have, tidy = self._rows.known()
        old, _ = self._aside.known()
        wanted = set(self._keys)
        stay = {key: row for key, row in {**have, **old}.items() if key in wanted}
        leave = {key: row for key, row in {**old, **have}.items() if key not in wanted}
        if not leave.keys() <= old.keys():  # first a row is in both places, then in one: never in none
            self._aside.replace({**old, **leave}.values())
        if not tidy or stay.keys() != have.keys():
            self._rows.replace(stay.values())
        if not old.keys() <= leave.keys():
            self._aside.replace(leave.values())
        return list(stay), len(leave)

    def _evaluated(self, todo: list[int], on: str) -> Iterator[tuple[list[int], list[tuple[Any, ...] | str]]]:
        """Items with what came of them, stretch by stretch as they finish."""
        banks: list[BankFile | BankParcel] = [
            BankFile(source.path.absolute(), source.checksum, source.bank)
            if on == LOCAL
            else BankParcel.of(source.bank)
            for source in self._sources
        ]
        orders = Orders(tuple(banks), tuple(self._plan.items[index] for index in todo))
        agenda, limit, alone = Agenda(len(todo)), cores(), has_one_thread()
        for stretch, done in run(agenda, orders, on=on, processes=lambda: agenda.processes(limit, alone=alone)):
            agenda.heard(stretch, done)
            yield todo[stretch.start : stretch.start + len(done.outcomes)], done.outcomes

    def _made(self, indices: list[int], outcomes: list[tuple[Any, ...] | str]) -> list[Row]:
        rows = []
        for index, outcome in zip(indices, outcomes, strict=True):
            if isinstance(outcome, str):
                self._failed[index] = outcome
            else:
                rows.append(self._row(index, outcome))
        return rows

    def _row(self, index: int, numbers: tuple[Any, ...]) -> Row:
        bank, condition = self._plan.items[index]
        return {
            "key": self._keys[index],
            **self._sources[bank].words,
            **condition.record(),
            **dict(zip(NUMBERS, numbers, strict=True)),
            **self._made_by,
        }

    def _put_in_order(self, on_disk: list[str]) -> None:
        self._rows.close()
        known = set(on_disk)
        ordered = [key for key in self._keys if key in known]
        if ordered != on_disk or self._rows.pieces() > 1:
            have, _ = self._rows.read()
            self._rows.replace(have[key] for key in ordered)

    def _check_failed(self) -> None:
        if not self._failed or self._plan.skip_impossible:
            return
        items = [(self._plan.items[index], reason) for index, reason in sorted(self._failed.items())]
        raise GridError(
            [f"{condition} on {self._sources[bank].path}: {reason}" for (bank, condition), reason in items],
        )


@cache
def _versions() -> str:
    return ", ".join(f"{name} {version}" for name, version in provenance.versions("numpy", "scipy").items())
