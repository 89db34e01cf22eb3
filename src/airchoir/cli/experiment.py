"""`airchoir experiment`: the paper's evaluation and what goes beyond it, on any banks."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from airchoir.cli.output import console, progress
from airchoir.experiments import Experiment
from airchoir.experiments.choirs import load_choirs
from airchoir.registry import build
from airchoir.report.findings import Findings, Table
from airchoir.report.tables import numeric_columns
from airchoir.report.writing import write

EXAMPLES = "Example: airchoir experiment table1 results/banks/*/seed-0.safetensors --out my-results"
_MOST_ROWS = 40
"""Of a table on a screen."""


def experiment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="table1, snr, participation, figure2, noise, ... (airchoir list).", show_default=False
        ),
    ],
    banks: Annotated[
        list[Path] | None,
        typer.Argument(metavar="BANK...", help="Score banks of any tasks; noise needs none.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where data, tables and figures go.")] = Path(
        "airchoir-results"
    ),
) -> None:
    """Run an experiment on score banks: what it shows in sentences and a table, and every number, table and figure in DIR."""
    chosen: Experiment = build(Experiment, name)
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; --out wants a folder")
    if chosen.needs_banks and not banks:
        raise ValueError(f"{name} needs at least one score bank, got none; airchoir demo makes one")
    choirs = load_choirs(banks or [])
    with progress(chosen.title) as report:
        findings = chosen.run(choirs, progress=report)
    with progress("writing"):
        written = write(findings, out)
    printer = console()
    show(findings, printer)
    printer.print(f"Written to {out}: {', '.join(file.name for file in written.files)}", soft_wrap=True)
    for remark in written.remarks:
        printer.print(remark, soft_wrap=True)
    printer.print(f"Next: airchoir report {out}", soft_wrap=True)


def show(findings: Findings, printer: Console) -> None:
    """The main table, what it shows, and what a careful reader should know."""
    printer.print(Text(findings.title, style="bold"))
    if findings.tables:
        main = findings.tables[0]
        if len(main.rows) <= _MOST_ROWS:
            printer.print(main.caption, soft_wrap=True)
            made = drawn(main)
            if printer.measure(made, options=printer.options.update(max_width=10_000)).minimum >= printer.width:
                made.padding = (0, 0, 0, 0)  # what a narrow terminal can do without
            printer.print(made)
        else:
            printer.print(f"{main.caption}: {len(main.rows)} rows in {main.name}.md", soft_wrap=True)
        for note in main.notes:
            printer.print(note, soft_wrap=True)
    printer.print()
    for sentence in findings.summary:
        printer.print(f"* {sentence}", soft_wrap=True)
    printer.print()
    for note in findings.notes:
        printer.print(f"Note: {note}", soft_wrap=True)


def drawn(table: Table) -> Drawn:
    """The table for a terminal: where it is narrow, words go to the next line, and numbers stay whole."""
    made = Drawn()
    for column, (heading, number) in enumerate(zip(table.header, numeric_columns(table), strict=True)):
        texts = [row[column].text for row in table.rows]
        whole = [*" / ".join(texts).split(" / " if number else None), *heading.split()]
        made.add_column(heading, justify="right" if number else "left", min_width=max(map(len, whole)))
    for place, row in enumerate(table.rows):
        cells = [Text(cell.text, style="bold" if cell.bold else "") for cell in row]
        made.add_row(*cells, end_section=place + 1 in table.sections)
    return made
