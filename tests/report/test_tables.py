"""Each format is read back by a reader of its own: what a cell says is what was meant, whatever signs are in it."""

import csv
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airchoir.report.findings import Cell, Table
from airchoir.report.tables import comma_separated, latex, markdown, numeric_columns

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=15)
SPECIAL = st.text("\\|*_`$&<>[]~#%{}^ a1", max_size=15)


def one_cell(text: str, *, bold: bool = False) -> Table:
    return Table("t", "caption", ("first", "second"), ((Cell(text, bold=bold), Cell("x")),))


def folded(text: str) -> str:
    return " ".join(text.split())


def markdown_cells(line: str) -> list[str]:
    """The cells of a row: split where a pipe is not escaped, each escape undone."""
    cells: list[str] = []
    current, escaped = "", False
    for sign in line:
        if escaped:
            current, escaped = current + sign, False
        elif sign == "\\":
            escaped = True
        elif sign == "|":
            cells.append(current.strip())
            current = ""
        else:
            current += sign
    return cells[1:]


@given(TEXT | SPECIAL)
def test_markdown_says_what_the_cell_says(text: str) -> None:
    row = markdown(one_cell(text)).splitlines()[4]
    assert markdown_cells(row) == [folded(text), "x"]


@given(SPECIAL)
def test_markdown_has_no_sign_left_that_means_something(text: str) -> None:
    row = markdown(one_cell(text)).splitlines()[4]
    inner = row.removeprefix("| ").removesuffix(" | x |")
    assert not re.search(r"[*_`$&<>\[\]~|]", re.sub(r"\\.", "", inner))


@given(st.text(max_size=20))
def test_csv_says_what_the_cell_says(text: str) -> None:
    written = list(csv.reader(io.StringIO(comma_separated(one_cell(text)), newline="")))
    assert written == [["first", "second"], [folded(text), "x"]]


LATEX = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    "$<$": "<",
    "$>$": ">",
    "$|$": "|",
    **{"\\" + sign: sign for sign in "{}$&#%_"},
}
"""What LaTeX prints for what is written, from its manual."""


@given(SPECIAL)
def test_latex_prints_what_the_cell_says_and_nothing_is_left_that_means_something(text: str) -> None:
    line = latex(one_cell(text)).split("\\midrule\n")[1].split("\n")[0]
    inner = line.removesuffix(r" & x \\").removeprefix("{}")
    tokens = re.findall("|".join(map(re.escape, LATEX)) + "|.", inner)
    assert "".join(LATEX.get(token, token) for token in tokens) == folded(text)
    assert not [token for token in tokens if token in set("\\{}$&#%_^~")]


def test_the_best_is_bold_everywhere() -> None:
    table = one_cell("81.27", bold=True)
    assert "| **81.27** | x |" in markdown(table)
    assert r"\textbf{81.27} & x \\" in latex(table)


def test_a_bold_cell_that_says_nothing_is_nothing() -> None:
    assert "****" not in markdown(one_cell("", bold=True))


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [
        (("81.27 ± 0.10", "0.5"), True),
        (("inf", "1"), True),
        (("+0.18 [+0.02, +0.34]", "\N{MINUS SIGN}7.04 [1, 2]"), True),
        (("10 / 10 / 2", "1e-06"), True),
        (("1,000", "\N{EN DASH}"), True),
        (("< 0.01", "12 %"), True),
        (("Best Client Model", "1"), False),
        (("ε = 1", "ε = ∞"), False),
        (("paper", "tight"), False),
    ],
)
def test_columns_of_numbers_go_to_the_right(cells: tuple[str, ...], numeric: bool) -> None:
    table = Table("t", "", ("head",), tuple((Cell(cell),) for cell in cells))
    assert numeric_columns(table) == [numeric]
    assert ("---:" in markdown(table)) == numeric
    assert (r"\begin{tabular}{r}" in latex(table)) == numeric


def test_latex_draws_a_rule_before_each_section(make_table: Any) -> None:
    table = Table("t", "", ("a",), tuple((Cell(str(index)),) for index in range(4)), sections=(0, 2, 3))
    body = latex(table).split("\\midrule\n", 1)[1].split("\\bottomrule")[0].splitlines()
    assert body == [r"0 \\", r"1 \\", r"\midrule", r"2 \\", r"\midrule", r"3 \\"]


def test_a_narrow_table_fits_one_column_and_a_wide_one_takes_both() -> None:
    narrow, wide = ("a", "b"), tuple(f"a heading of some length {index}" for index in range(4))
    for header, name in ((narrow, "table"), (wide, "table*")):
        written = latex(Table("t", "", header, (tuple(Cell("1") for _ in header),)))
        assert rf"\begin{{{name}}}[t]" in written
        assert rf"\end{{{name}}}" in written


def test_captions_and_notes_are_in_both_texts(make_table: Any) -> None:
    table = Table("t", "The caption.", ("a",), ((Cell("1"),),), notes=("A note.",))
    for text in (markdown(table), latex(table)):
        assert "The caption." in text
        assert "A note." in text
