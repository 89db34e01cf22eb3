"""`airchoir report`: one page from what lies below a folder; what is damaged is named, what is foreign ignored."""

import sys
from pathlib import Path
from typing import Any

import pytest

from airchoir.report.findings import Cell, Curve, Figure, Findings, Panel, Table
from airchoir.report.writing import record


@pytest.fixture
def results(folder: Path) -> Path:
    """A folder with the findings of one experiment."""
    table = Table("table1", "Ten rows.", ("Method", "macro-F1 %"), ((Cell("Best Client Model"), Cell("83.14 ± 0.10")),))
    figure = Figure("figure2", "Curves.", (Panel("", "x", "y", (Curve("votes", (1.0, 2.0), (3.0, 4.0)),)),))
    findings = Findings("table1", "Table 1", ("Votes win.",), (table,), (figure,))
    (folder / "results" / "deeper").mkdir(parents=True)
    (folder / "results" / "deeper" / "table1.json").write_text(record(findings))
    return folder / "results"


def test_the_page_is_written_and_its_place_printed(run: Any, results: Path) -> None:
    ran = run("report", "results")
    assert (ran.status, ran.out, ran.err) == (0, "1 experiment on one page: results/report.html\n", "")
    page = (results / "report.html").read_text()
    for words in ("Votes win.", "Best Client Model", "83.14 ± 0.10", "Curves.", "<svg"):
        assert words in page


def test_a_second_page_is_the_same_to_the_byte(run: Any, results: Path) -> None:
    assert run("report", "results").status == 0
    before = (results / "report.html").read_bytes()
    assert run("report", "results").status == 0
    assert (results / "report.html").read_bytes() == before


def test_a_damaged_file_gets_one_line_and_the_page_is_still_made(run: Any, results: Path) -> None:
    whole = (results / "deeper" / "table1.json").read_text()
    (results / "cut.json").write_text(whole[:300])
    (results / "foreign.json").write_text('{"mine": 1}')
    ran = run("report", "results")
    assert (ran.status, ran.out) == (0, "1 experiment on one page: results/report.html\n")
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("airchoir: results/cut.json is damaged")
    assert ran.err.endswith("; make it again\n")


def test_a_folder_without_findings_is_refused_with_what_makes_some(refused: Any, folder: Path) -> None:
    (folder / "empty").mkdir()
    (folder / "empty" / "foreign.json").write_text("[]")
    assert "airchoir experiment table1 BANK... --out empty makes some" in refused("report", "empty")


def test_a_folder_with_damaged_findings_alone_is_refused_with_their_names(refused: Any, results: Path) -> None:
    path = results / "deeper" / "table1.json"
    path.write_text(path.read_text()[:300])
    assert "results/deeper/table1.json is damaged" in refused("report", "results")


@pytest.mark.parametrize("name", ["missing", "file"])
def test_what_is_no_folder_is_refused(name: str, refused: Any, folder: Path) -> None:
    (folder / "file").write_text("mine")
    assert f"{name} is no folder" in refused("report", name)


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
@pytest.mark.usefixtures("results")
def test_a_missing_package_is_one_line_that_says_what_to_install(
    package: str, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    complaint = refused("report", "results")
    assert package in complaint
    assert complaint.endswith("pip install 'airchoir[demo]'")
