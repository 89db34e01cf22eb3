"""`airchoir experiment`: sentences, a table and files from banks; one clear line for everything that is wrong."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from airchoir.cli.experiment import drawn
from airchoir.experiments import Experiment
from airchoir.experiments.methods import METHODS
from airchoir.registry import plugins
from airchoir.report.findings import Cell, Findings, Table

BankFile = Callable[..., Path]


def findings_of(path: Path) -> Findings:
    return Findings.of_record(json.loads(path.read_text(encoding="utf-8")), path)


def test_table_1_is_printed_and_written(run: Any, bank_file: BankFile, folder: Path) -> None:
    path = bank_file()
    ran = run("experiment", "table1", path, "--out", "found")
    assert (ran.status, ran.err) == (0, "")
    findings = findings_of(folder / "found" / "table1.json")
    for sentence in (*findings.summary, *findings.notes, findings.title, *findings.tables[0].notes):
        assert sentence in ran.out
    for row in findings.tables[0].rows:
        assert any(all(cell.text in line for cell in row) for line in ran.out.splitlines())
    for method in METHODS:
        assert ran.out.count(f" {method} ") >= 2
    for kind in ("md", "csv", "tex", "json"):
        assert f"table1.{kind}" in ran.out
        assert (folder / "found" / f"table1.{kind}").stat().st_size > 0


def test_by_default_everything_goes_to_one_folder(run: Any, bank_file: BankFile, folder: Path) -> None:
    ran = run("experiment", "snr", bank_file())
    assert ran.status == 0
    assert (folder / "airchoir-results" / "snr.json").is_file()
    assert {path.name for path in folder.iterdir()} == {"bank.safetensors", "airchoir-results"}
    assert "airchoir report airchoir-results" in ran.out


def test_banks_are_grouped_by_task(run: Any, bank_file: BankFile, folder: Path) -> None:
    paths = [bank_file(f"{seed}.safetensors", seed=seed) for seed in range(2)]
    assert run("experiment", "snr", *paths, "--out", "found").status == 0
    rows = findings_of(folder / "found" / "snr.json").rows
    assert all(row["seeds"] == ["0", "1"] for row in rows)


def test_noise_needs_no_bank_and_its_long_table_is_named_and_not_printed(run: Any, folder: Path) -> None:
    ran = run("experiment", "noise", "--out", "found")
    assert (ran.status, ran.err) == (0, "")
    assert (folder / "found" / "noise_sigma.png").is_file()
    rows = len(findings_of(folder / "found" / "noise.json").tables[0].rows)
    assert f"{rows} rows in noise.md" in ran.out
    assert "0.65" not in ran.out


def test_an_unknown_name_is_answered_with_the_nearest(refused: Any, bank_file: BankFile) -> None:
    complaint = refused("experiment", "tabel1", bank_file())
    assert complaint.startswith("unknown experiment 'tabel1'; did you mean 'table1'? Known: ")
    assert all(name in complaint for name in plugins(Experiment))


@pytest.mark.parametrize("name", ["table1", "snr", "participation", "figure2"])
def test_what_needs_a_bank_says_so(refused: Any, name: str) -> None:
    assert refused("experiment", name).startswith(f"{name} needs at least one score bank, got none; ")


def test_a_bad_bank_is_one_line(refused: Any, bank_file: BankFile, folder: Path) -> None:
    assert "nowhere.safetensors does not exist" in refused("experiment", "snr", "nowhere.safetensors")
    (folder / "text.safetensors").write_text("no bank")
    assert "text.safetensors is not a whole safetensors file" in refused("experiment", "snr", "text.safetensors")
    alike = refused("experiment", "snr", bank_file(), bank_file("b.safetensors", clients=3))
    assert re.search(r"b\.safetensors has clients 3, but .*bank\.safetensors 5", alike)


def test_a_file_is_no_folder(refused: Any, bank_file: BankFile, folder: Path) -> None:
    (folder / "file").write_text("")
    assert refused("experiment", "snr", bank_file(), "--out", "file") == "file is a file; --out wants a folder"


def test_help_shows_how(run: Any) -> None:
    ran = run("experiment", "--help")
    assert ran.status == 0
    text = " ".join(ran.out.split())
    assert "airchoir experiment table1 results/banks" in text
    assert "[default: airchoir-results]" in text


TABLE = Table(
    "t",
    "caption",
    ("Method", "CIFAR-10", "Channel uses"),
    (
        (Cell("Orthogonal Belief Summation"), Cell("90.32 ± 0.06", bold=True), Cell("200")),
        (Cell("Majority Voting with OAC"), Cell("90.19 ± 0.05"), Cell("10 / 20")),
    ),
)


@pytest.mark.parametrize("width", [40, 200])
def test_a_narrow_terminal_breaks_words_apart_but_no_number(width: int) -> None:
    printer = Console(width=width, force_terminal=False)
    with printer.capture() as capture:
        printer.print(drawn(TABLE))
    printed = capture.get()
    assert "90.32 ± 0.06" in printed
    assert "90.19 ± 0.05" in printed
    for word in ("Orthogonal", "Summation", "Majority", "Channel", "uses"):
        assert word in printed
    assert ("Orthogonal Belief Summation" in printed) == (width == 200)
    assert max(map(len, printed.splitlines())) <= width
