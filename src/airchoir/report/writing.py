"""Findings -> files: the record as JSON, tables as Markdown, CSV and LaTeX, figures as PDF, SVG, PNG and PGF."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airchoir.files import write_atomically
from airchoir.report import figures, tables
from airchoir.report.findings import Findings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Written:
    """What was written, and what was left out and why."""

    files: tuple[Path, ...]
    remarks: tuple[str, ...]
    """One line each."""


def write(findings: Findings, folder: Path) -> Written:
    """Every file of the findings, in `folder`; the same findings give the same bytes."""
    _check_names(findings)
    remarks: list[str] = []
    files = []
    for name, content in _contents(findings, remarks):
        files.append(folder / name)
        write_atomically(folder / name, lambda temporary, content=content: temporary.write_bytes(content))  # type: ignore[misc]
    return Written(tuple(files), tuple(remarks))


def record(findings: Findings) -> str:
    """The findings as JSON text, from which everything can be drawn again."""
    return json.dumps(findings.record(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _contents(findings: Findings, remarks: list[str]) -> Iterator[tuple[str, bytes]]:
    """Names and contents, what cost most first: where a figure cannot be drawn, the numbers are safe already."""
    yield f"{findings.name}.json", record(findings).encode()
    for table in findings.tables:
        yield f"{table.name}.md", tables.markdown(table).encode()
        yield f"{table.name}.csv", tables.comma_separated(table).encode()
        yield f"{table.name}.tex", tables.latex(table).encode()
    for figure in findings.figures:
        for kind in ("pdf", "svg", "png"):
            yield f"{figure.name}.{kind}", figures.render(figure, kind)
    for figure in findings.figures:
        try:
            yield f"{figure.name}.pgf", figures.render(figure, "pgf")
        except figures.NoTex as error:
            remarks.append(f"PGF left out: {error}")
            return


def _check_names(findings: Findings) -> None:
    names = [findings.name, *(table.name for table in findings.tables), *(figure.name for figure in findings.figures)]
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} names files and must be letters, digits, '.', '_' and '-'; give another name")
