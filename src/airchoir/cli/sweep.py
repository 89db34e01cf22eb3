"""`airchoir sweep`: every condition of a grid on every bank."""

from pathlib import Path
from typing import Annotated

import typer

from airchoir.bank import ScoreBank
from airchoir.cli.output import console, progress
from airchoir.experiments.sweep import Swept
from airchoir.experiments.sweep import sweep as sweep_grid
from airchoir.experiments.sweep.grid import Grid, GridError, read_grid
from airchoir.jobs import LOCAL

EXAMPLES = "Example: airchoir sweep grid.toml results/banks/*/seed-*.safetensors --out my-sweep"


def sweep(
    grid: Annotated[Path, typer.Argument(metavar="GRID.toml", help="The grid of conditions.", show_default=False)],
    banks: Annotated[
        list[Path], typer.Argument(metavar="BANK...", help="Score banks (files) of any tasks.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the rows go.")] = Path("sweep"),
    on: Annotated[str, typer.Option(help="local (all cores), ray, or ray://HOST:PORT for a cluster.")] = LOCAL,
    form: Annotated[
        str, typer.Option("--format", help="jsonl (DIR/rows.jsonl) or parquet (DIR/rows.parquet).")
    ] = "jsonl",
) -> None:
    r"""Evaluate every condition of a grid on every bank, a row each, as `airchoir evaluate BANK` would.

    Stop it at any moment and run the same command again: finished rows are kept, also when the grid has changed.

    A grid file crosses every list with every other; several \[\[grid]] blocks are united, keys above them hold for all:

    \[grid]

    rule = \["vote", "belief"]

    epsilon = \["inf", 1.0]

    snr_db = { from = -2, to = 20, step = 2 }

    skip_impossible = true

    Keys are the options of `airchoir evaluate`, with their defaults. skip_impossible leaves out what cannot be.
    """
    try:
        known = read_grid(grid)
        loaded = [(path, ScoreBank.load(path)) for path in banks]
        swept = _swept(known, loaded, out, on=on, form=form)
    except GridError as error:
        for mistake in error.mistakes:
            typer.echo(f"airchoir: {mistake}", err=True)
        raise typer.Exit(2) from None
    console().print(_summary(swept), soft_wrap=True)


def _swept(grid: Grid, banks: list[tuple[Path, ScoreBank]], out: Path, *, on: str, form: str) -> Swept:
    try:
        with progress("sweep") as report:
            return sweep_grid(grid, banks, out, on=on, form=form, progress=report)
    except OSError as error:
        place, reason = error.filename or out, error.strerror or error
        raise ValueError(
            f"{place}: {reason}; finished rows are kept: mend that and run the same command again"
        ) from None
    except KeyboardInterrupt:
        typer.echo("airchoir: finished rows are kept; the same command goes on from there", err=True)
        raise


def _summary(swept: Swept) -> str:
    """One line: how many rows, where, and how to look at them."""
    told = f"{swept.new:,} new, {swept.kept:,} kept"
    if swept.skipped:
        told += f", {swept.skipped:,} impossible ones skipped"
    if swept.aside:
        told += f", {swept.aside:,} of other grids set aside in {swept.path.parent / 'earlier'}"
    read = "read_parquet({!r})" if swept.path.suffix == ".parquet" else "read_json({!r}, lines=True)"
    total = swept.new + swept.kept
    return f"{total:,} rows in {swept.path} ({told}); to look at them: pandas.{read.format(str(swept.path))}"
