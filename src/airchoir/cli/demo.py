"""`airchoir demo`: the whole comparison on handwritten digits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from airchoir import provenance
from airchoir.bank import ScoreBank
from airchoir.cli.output import console, percent, progress, table
from airchoir.cli.report import publish
from airchoir.experiments.choirs import load_choirs
from airchoir.experiments.epsilon import Epsilon
from airchoir.experiments.table1 import Row, Table1, insights, table1
from airchoir.report import figures, page
from airchoir.report.writing import write
from airchoir.tasks.digits import Digits
from airchoir.training import train

EXAMPLES = "Example: airchoir demo --out my-first-choir"


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the bank, the table and the page go.")] = Path(
        "airchoir-demo"
    ),
) -> None:
    """Train 20 clients on handwritten digits they do not share, and compare five ways to ask them all at once."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; --out wants a folder")
    for room in (page, figures):
        room.check_installed()  # before any work
    printer = console()
    task = Digits()
    with progress("training clients") as report:
        bank = train(task, progress=report)
    path = out / "banks" / task.name / "seed-0.safetensors"
    bank.save(path)
    printer.print(
        f"{bank.clients} clients, each trained on its own ~{_shard(bank)} images; {bank.queries} test queries.\n"
    )
    with progress("table 1") as report:
        rows = table1([bank], progress=report)
    printer.print(f"Table 1 for {task.title}; ± is the spread of one run", soft_wrap=True)
    printer.print(_table(rows))
    for sentence in insights(rows, bank):
        printer.print(f"* {sentence}", soft_wrap=True)
    written = _report(path, out)
    printer.print(
        f"\nThe answers of all clients: {path}\nThe table as data:          {out / 'table1.json'}", soft_wrap=True
    )
    printer.print(f"All of it on one page:      {written}", soft_wrap=True)
    printer.print(f"Next: airchoir evaluate {path} --epsilon 1 --participation 0.5", soft_wrap=True)


def _report(bank: Path, out: Path) -> Path:
    """Where the page was written, with all findings that `out` has by now."""
    choirs = load_choirs([bank])
    versions = provenance.versions("numpy", "scipy", "scikit-learn")  # the last one trained the clients
    for experiment in (Table1(), Epsilon()):
        with progress(experiment.title) as report:
            findings = experiment.run(choirs, progress=report)
        write(replace(findings, source={**findings.source, "versions": versions}), out)
    return publish(out)[0]


def _shard(bank: ScoreBank) -> int:
    return round(sum(json.loads(bank.metadata["shard_sizes"])) / bank.clients)


def _table(rows: list[Row]) -> Table:
    made = table("Method", "epsilon", "macro-F1 %", "accuracy %", "channel\nuses")  # fits 80 columns
    for index, row in enumerate(rows):
        estimate = row.estimate
        made.add_row(
            row.method,
            f"{row.epsilon:g}",
            percent(estimate.macro_f1, estimate.macro_f1_std),
            percent(estimate.accuracy),
            f"{estimate.channel_uses:.0f}",
            end_section=index + 1 < len(rows) and rows[index + 1].epsilon != row.epsilon,
        )
    return made
