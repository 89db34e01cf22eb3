"""`airchoir demo`: ten rows and what they teach, a bank and a table to keep, the same numbers every time."""

import contextlib
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from airchoir import ScoreBank, provenance
from airchoir.cli import demo as demo_module
from airchoir.cli import main
from airchoir.experiments.table1 import insights, table1
from airchoir.report.findings import Findings

ROWS = [
    "Best Client Model",
    "Orthogonal Majority Voting",
    "Orthogonal Belief Summation",
    "Majority Voting with OAC",
    "Belief Summation with OAC",
]
"""As the paper's table 1 calls them, in its order."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """The folder of one demo, and what it printed on both streams."""
    out, err = io.StringIO(), io.StringIO()
    folder = tmp_path_factory.mktemp("demo")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main(["demo", "--out", str(folder / "choir")]) == 0
    return folder / "choir", out.getvalue(), err.getvalue()


def cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def contents(path: Path) -> list[bytes]:
    bank = ScoreBank.load(path)
    return [array.tobytes() for array in (bank.test_scores, bank.test_labels, bank.val_scores, bank.val_labels)]


def test_the_table_has_the_papers_ten_rows_unbroken_and_in_order(shown: tuple[Path, str, str]) -> None:
    _, out, _ = shown
    assert [(row[0], row[1]) for row in cells(out)] == [(name, epsilon) for epsilon in ("inf", "1") for name in ROWS]


def test_nothing_but_results_is_printed(shown: tuple[Path, str, str]) -> None:
    assert shown[2] == ""


def test_the_table_says_what_the_bank_gives(shown: tuple[Path, str, str]) -> None:
    folder, out, _ = shown
    bank = ScoreBank.load(folder / "banks" / "digits" / "seed-0.safetensors")
    rows = table1([bank])
    for cell, row in zip(cells(out), rows, strict=True):
        f1, spread = (100 * value for value in (row.estimate.macro_f1, row.estimate.macro_f1_std))
        assert cell[2:] == [
            f"{f1:.2f} ± {spread:.2f}",
            f"{100 * row.estimate.accuracy:.2f}",
            {"Orthogonal": "200"}.get(row.method.split()[0], "10"),
        ]
    lines = [line.removeprefix("* ") for line in out.splitlines() if line.startswith("* ")]
    assert lines == insights(rows, bank)
    assert f"{bank.clients} clients" in out
    assert f"{bank.queries} test queries" in out


def test_the_written_table_carries_the_printed_numbers_and_where_they_come_from(shown: tuple[Path, str, str]) -> None:
    folder, out, _ = shown
    written = json.loads((folder / "table1.json").read_text(), parse_constant=pytest.fail)
    findings = Findings.of_record(written, folder / "table1.json")
    assert [(row["method"], row["epsilon"]) for row in findings.rows] == [
        (name, epsilon) for epsilon in ("inf", 1.0) for name in ROWS
    ]
    for cell, row in zip(cells(out), findings.rows, strict=True):
        assert cell[2] == f"{100 * row['macro_f1']:.2f} ± {100 * row['macro_f1_std']:.2f}"
        assert cell[4] == f"{row['channel_uses']:.0f}"
    assert findings.source["versions"] == provenance.versions("numpy", "scipy", "scikit-learn")
    assert findings.source["machine"] == provenance.machine()
    assert findings.source["commit"].split("-")[0] == provenance.commit().split("-")[0]


def test_the_page_shows_the_printed_rows_and_where_they_come_from(shown: tuple[Path, str, str]) -> None:
    folder, out, _ = shown
    page = (folder / "report.html").read_text()
    for row in cells(out):
        assert row[0] in page
        assert row[2] in page
    assert "Macro-F1 (%) against Epsilon per query" in page
    for version in provenance.versions("numpy", "scipy", "scikit-learn").values():
        assert version in page


def test_the_demo_leaves_a_bank_a_table_and_a_page_and_names_them(shown: tuple[Path, str, str]) -> None:
    folder, out, _ = shown
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    named = ["banks/digits/seed-0.safetensors", "report.html", "table1.json"]
    assert {*named, "table1.md", "table1.csv", "table1.tex", "epsilon.json", "epsilon.svg"} <= set(files)
    for name in named:
        assert any(line.endswith(str(folder / name)) for line in out.splitlines())


def test_the_command_that_the_demo_suggests_next_runs(shown: tuple[Path, str, str], run: Any) -> None:
    (line,) = (line for line in shown[1].splitlines() if line.startswith("Next: airchoir "))
    assert run(*line.removeprefix("Next: airchoir ").split()).status == 0


def test_a_second_run_in_the_same_folder_gives_the_same_numbers(
    shown: tuple[Path, str, str],
    run: Any,
    digits_bank: Callable[[int], ScoreBank],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo_module, "train", lambda *_, **__: digits_bank(0))  # trained anew, but not by the demo
    folder, out, _ = shown
    path = folder / "banks" / "digits" / "seed-0.safetensors"
    before, page = contents(path), (folder / "report.html").read_text()
    again = run("demo", "--out", folder)
    assert (again.status, again.err) == (0, "")
    assert cells(again.out) == cells(out)
    assert contents(path) == before
    assert (folder / "report.html").read_text() == page


def test_an_out_that_is_a_file_is_refused_before_any_work(
    refused: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_module, "train", lambda *_, **__: pytest.fail("it trained first"))
    (folder / "taken").write_text("mine")
    complaint = refused("demo", "--out", "taken")
    assert "taken is a file" in complaint
    assert "folder" in complaint


@pytest.mark.usefixtures("without_sklearn")
def test_without_scikit_learn_one_line_says_what_to_install(refused: Any) -> None:
    complaint = refused("demo", "--out", "choir")
    assert "scikit-learn" in complaint
    assert "pip install 'airchoir[demo]'" in complaint


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_without_what_the_page_needs_one_line_says_what_to_install_before_any_work(
    package: str, refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_module, "train", lambda *_, **__: pytest.fail("it trained first"))
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    complaint = refused("demo", "--out", "choir")
    assert package in complaint
    assert "pip install 'airchoir[demo]'" in complaint


def test_an_interrupted_training_leaves_nothing_behind(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(task: Any, *, progress: Callable[[int, int], None]) -> ScoreBank:
        progress(1, 20)
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "train", interrupt)
    ran = run("demo", "--out", "choir")
    assert (ran.status, ran.out, ran.err.strip()) == (130, "", "airchoir: interrupted")
    assert list(folder.iterdir()) == []


def test_on_a_terminal_of_80_columns_no_name_and_no_number_is_cut(
    run: Any, digits_bank: Callable[[int], ScoreBank], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_module, "train", lambda *_, **__: digits_bank(0))
    monkeypatch.setattr(demo_module, "console", lambda: Console(width=80, highlight=False))
    ran = run("demo")
    assert ran.status == 0
    rows = cells(ran.out)
    assert [row[0] for row in rows] == ROWS * 2
    assert all(re.fullmatch(r"\d+\.\d\d ± \d+\.\d\d", row[2]) for row in rows)
    assert "…" not in ran.out
