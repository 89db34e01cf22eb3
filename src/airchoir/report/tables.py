"""Tables as Markdown, CSV and LaTeX (booktabs)."""

import csv
import io
import re
from collections.abc import Callable

from airchoir.report.findings import Cell, Table
from airchoir.report.latex import escape

_NUMBER = re.compile(
    r"[-+\u2212<>≤≥≈]?\s*[\d.,]*\d(e[-+]?\d+)?\s*%?([\s±(\[\u2013].*)?|[-+\u2212]?(inf|∞)|[-\u2013—]?", re.IGNORECASE
)
"""A cell that begins with a number, or says that there is none."""
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~$&])")
_COLUMN_CHARACTERS = 60
"""What fits one column of a two-column paper in small print."""


def numeric_columns(table: Table) -> list[bool]:
    """Which columns hold numbers, and so belong to the right."""
    columns = range(len(table.header))
    return [all(_NUMBER.fullmatch(row[column].text.strip()) for row in table.rows) for column in columns]


def markdown(table: Table) -> str:
    """The table for GitHub and its kin."""
    alignment = ["---:" if number else ":---" for number in numeric_columns(table)]
    head = [_line([_plain_markdown(name) for name in table.header]), _line(alignment)]
    body = [_line([_emphasised(cell, _plain_markdown, "**{}**") for cell in row]) for row in table.rows]
    notes = [f"\n{_plain_markdown(note)}" for note in table.notes]
    return "\n".join([f"**{_plain_markdown(table.caption)}**", "", *head, *body, *notes]) + "\n"


def comma_separated(table: Table) -> str:
    """The table as CSV: the header and the cells, nothing else."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for line in (table.header, *([cell.text for cell in row] for row in table.rows)):
        writer.writerow([" ".join(text.split()) for text in line])  # one line each, whoever reads it
    return stream.getvalue()


def latex(table: Table) -> str:
    """The table as a LaTeX float; wide ones go over both columns of a paper."""
    columns = "".join("r" if number else "l" for number in numeric_columns(table))
    rows = [_latex_row([_emphasised(cell, escape, r"\textbf{{{}}}") for cell in row]) for row in table.rows]
    for place in sorted(set(table.sections) - {0}, reverse=True):
        rows.insert(place, r"\midrule")
    float_name = "table*" if _width(table) > _COLUMN_CHARACTERS else "table"
    notes = [rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {escape(note)}}}" for note in table.notes]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{{float_name}}}[t]",
            r"\centering",
            r"\footnotesize",
            rf"\caption{{{escape(table.caption)}}}",
            rf"\label{{tab:{table.name}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_row([escape(name) for name in table.header]),
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            rf"\end{{{float_name}}}",
            "",
        ]
    )


def _width(table: Table) -> int:
    lines = [table.header, *([cell.text for cell in row] for row in table.rows)]
    return sum(max(len(line[column]) + 2 for line in lines) for column in range(len(table.header)))


def _latex_row(cells: list[str]) -> str:
    # A cell that begins with a bracket would be taken for the option of the line break before it.
    guarded = ["{}" + cell if cell.startswith(("[", "*")) else cell for cell in cells]
    return " & ".join(guarded) + r" \\"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _emphasised(cell: Cell, plain: Callable[[str], str], bold: str) -> str:
    text = plain(cell.text)
    return bold.format(text) if cell.bold and text else text
