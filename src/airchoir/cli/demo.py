"""`airchoir demo`: the whole comparison on handwritten digits."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from airchoir import provenance
from airchoir.bank import ScoreBank, write_atomically
from airchoir.cli.output import console, percent, progress, table
from airchoir.experiments.table1 import Row, insights, table1
from airchoir.provenance import plain
from airchoir.tasks.digits import Digits
from airchoir.training import train

EXAMPLES = "Example: airchoir demo --out my-first-choir"


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the bank and the table go.")] = Path("airchoir-demo"),
) -> None:
    """Train 20 clients on handwritten digits they do not share, and compare five ways to ask them all at once."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; --out wants a folder")
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
    written = out / "table1.json"
    write_atomically(written, lambda temporary: temporary.write_text(json.dumps(_record(rows), indent=1)))
    printer.print(f"\nThe answers of all clients: {path}\nThe table as data:          {written}", soft_wrap=True)
    printer.print(f"Next: airchoir evaluate {path} --epsilon 1 --participation 0.5", soft_wrap=True)


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


def _record(rows: list[Row]) -> object:
    numbers = [{"method": row.method, "epsilon": row.epsilon, **vars(row.estimate)} for row in rows]
    versions = provenance.versions("numpy", "scipy", "scikit-learn")
    return plain(
        {"rows": numbers, "versions": versions, "commit": provenance.commit(), "machine": provenance.machine()}
    )
