"""How results reach a person or a program: tables, one JSON object, a progress bar where it takes long."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from airchoir.exact import Progress as Report
from airchoir.provenance import plain

_PATIENCE_SECONDS = 2.0
_WIDE = 10_000


def console() -> Console:
    """Standard output; where it is no terminal, wide enough that no row breaks."""
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDE)


def table(*columns: str) -> Table:
    """An empty table: words to the left, and every further column of numbers to the right."""
    made = Table()
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    return made


def foldable(column: Column) -> None:
    """Let a column of names fold where a terminal is too narrow, so that no number beside it is cut."""
    column.no_wrap, column.overflow = False, "fold"


def number(value: float, digits: int = 6) -> str:
    """A number for people.

    >>> number(0.25), number(float("inf"))
    ('0.25', 'inf')
    """
    return f"{value:.{digits}g}"


def percent(value: float, spread: float | None = None) -> str:
    """A share in percent, with its spread.

    >>> percent(0.8127, 0.001)
    '81.27 ± 0.10'
    """
    return f"{100 * value:.2f}" if spread is None else f"{100 * value:.2f} ± {100 * spread:.2f}"


ASKED = ("clients", "participation", "queries", "lost", "access", "rule", "classes")
"""What a promise was asked for, in the order of every table."""


def add_terms(made: Table, record: Mapping[str, Any], *names: str) -> None:
    """Rows with the named values of a promise's record, and the accountant that keeps it."""
    for name in names:
        value = record[name]
        made.add_row(name, value if isinstance(value, str) else number(value, 12))
    made.add_row("accountant", f"{record['accountant']} ({record['theorem']})")


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object on standard output; infinity is the string "inf"."""
    typer.echo(json.dumps(plain(values), allow_nan=False))


@contextmanager
def progress(title: str) -> Iterator[Report]:
    """A callback (done, total) that draws a bar on standard error once the work has taken two seconds."""
    started = time.monotonic()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(title, total=None)

    def report(done: int, total: int) -> None:
        if not bar.live.is_started and sys.stderr.isatty() and time.monotonic() - started > _PATIENCE_SECONDS:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        if bar.live.is_started:  # stopping an unseen bar would print an empty line
            bar.stop()
