"""`airchoir report`: everything found below a folder, on one page."""

from pathlib import Path
from typing import Annotated

import typer

from airchoir.cli.output import console
from airchoir.report.page import check_installed, gather, write_page

EXAMPLES = "Example: airchoir report airchoir-demo"


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder of what `experiment` wrote.", show_default=False)
    ],
) -> None:
    """Gather the findings of all experiments below DIR into one page, DIR/report.html, that needs no network."""
    check_installed()
    page, experiments = publish(folder)
    console().print(f"{experiments} experiment{'s' if experiments != 1 else ''} on one page: {page}", soft_wrap=True)


def publish(folder: Path) -> tuple[Path, int]:
    """The page of all findings below `folder`, written, and how many they are; one line for each file that is damaged."""
    gathered = gather(folder)
    if not gathered.found and not gathered.complaints:
        raise ValueError(
            f"{folder} has no findings below it; airchoir experiment table1 BANK... --out {folder} makes some"
        )
    if not gathered.found:
        raise ValueError(f"{folder} has no whole findings below it: {'; '.join(gathered.complaints)}")
    for complaint in gathered.complaints:
        typer.echo(f"airchoir: {complaint}", err=True)
    return write_page(gathered.found, folder), len(gathered.found)
