"""`airchoir sweep`: one line at the end, one line for every mistake, and a run that goes on where it was stopped."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airchoir.experiments.sweep.grid import read_grid

BankFile = Callable[..., Path]

EXAMPLE = Path(__file__).parents[2] / "examples" / "grid.toml"


@pytest.fixture
def grid(folder: Path) -> Callable[[str], Path]:
    """A function that writes a grid file."""

    def write(text: str) -> Path:
        path = folder / "grid.toml"
        path.write_text(text)
        return path

    return write


def test_the_last_line_says_how_many_rows_where_and_how_to_look_at_them(
    run: Any, grid: Any, bank_file: BankFile
) -> None:
    command = ["sweep", grid("snr_db = [0, 10]"), bank_file("a"), bank_file("b", seed=1), "--out", "rows"]
    ran = run(*command)
    look = "to look at them: pandas.read_json('rows/rows.jsonl', lines=True)\n"
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == f"4 rows in rows/rows.jsonl (4 new, 0 kept); {look}"
    assert run(*command).out == f"4 rows in rows/rows.jsonl (0 new, 4 kept); {look}"
    grid("snr_db = [10, 20]\nlost = [0, 99]\nskip_impossible = true")
    aside = "4 impossible ones skipped, 2 of other grids set aside in rows/earlier"
    assert run(*command).out == f"4 rows in rows/rows.jsonl (2 new, 2 kept, {aside}); {look}"


def test_rows_are_what_evaluate_prints(run: Any, read_json: Any, grid: Any, bank_file: BankFile) -> None:
    bank = bank_file()
    run("sweep", grid("rule = 'belief'\nparticipation = 0.5\nepsilon = 2\ntolerance = 0.02\nseed = 7"), bank)
    (row,) = map(json.loads, Path("sweep/rows.jsonl").read_text().splitlines())
    options = "--rule belief --participation 0.5 --epsilon 2 --tolerance 0.02 --seed 7"
    printed = read_json("evaluate", bank, *options.split())
    assert printed["draws"] > 0
    assert {name: row[name] for name in row.keys() & printed.keys() - {"versions", "commit"}}.items() <= printed.items()
    assert {"macro_f1", "macro_f1_std", "macro_f1_se", "accuracy", "sigma", "channel_uses"} <= row.keys()


def test_every_mistake_has_a_line_of_its_own(run: Any, grid: Any, bank_file: BankFile, folder: Path) -> None:
    path, bank = grid("rule = 'votes'\n\nsnr = 3\nepsilon = [1, -1]"), bank_file()
    ran = run("sweep", path, bank)
    assert (ran.status, ran.out) == (2, "")
    lines = ran.err.splitlines()
    assert [re.fullmatch(rf"airchoir: {path}, line (\d+): .+; .+", line)[1] for line in lines] == ["1", "3", "4"]  # type: ignore[index]
    assert not (folder / "sweep").exists()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("none.toml bank.safetensors", "none.toml does not exist; "),
        ("grid.toml none.safetensors", "none.safetensors does not exist"),
        ("grid.toml bank.safetensors --on moon", "unknown place 'moon'"),
        ("grid.toml bank.safetensors --format csv", "unknown format 'csv'"),
        ("grid.toml bank.safetensors bank.safetensors", "holds the same bank as bank.safetensors; give it once"),
        ("grid.toml bank.safetensors --out grid.toml", "grid.toml is a file; --out wants a folder"),
        ("grid.toml", "BANK"),
    ],
)
def test_what_is_wrong_with_the_command_is_refused(
    refused: Any, grid: Any, bank_file: BankFile, words: str, complaint: str
) -> None:
    grid("snr_db = 0")
    bank_file()
    assert complaint in refused("sweep", *words.split())


def test_a_folder_that_nobody_may_write_to_is_said_with_the_remedy(
    run: Any, grid: Any, bank_file: BankFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device", "sweep/rows.jsonl")

    monkeypatch.setattr("airchoir.experiments.sweep.rows.JsonLines.append", full)
    ran = run("sweep", grid("snr_db = 0"), bank_file())
    assert ran.status == 2
    assert "sweep/rows.jsonl: No space left on device; finished rows are kept: mend that and run the same" in ran.err
    assert ran.err.count("\n") == 1


def test_an_interrupted_sweep_says_how_to_go_on(
    run: Any, grid: Any, bank_file: BankFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airchoir.experiments.sweep.condition.Condition.estimate", interrupt)
    ran = run("sweep", grid("snr_db = 0"), bank_file())
    assert ran.status == 130
    assert "the same command goes on from there" in ran.err


def test_parquet_is_a_folder_of_numbers(run: Any, grid: Any, bank_file: BankFile) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    ran = run("sweep", grid("snr_db = [0, 10]"), bank_file(), "--format", "parquet")
    assert "pandas.read_parquet('sweep/rows.parquet')" in ran.out
    assert parquet.read_table("sweep/rows.parquet").column("epsilon").to_pylist() == [float("inf")] * 2


def test_the_example_grid_runs(run: Any, bank_file: BankFile, folder: Path) -> None:
    shutil.copy(EXAMPLE, folder / "grid.toml")
    assert len(read_grid(folder / "grid.toml").blocks) == 3
    ran = run("sweep", "grid.toml", bank_file())
    assert (ran.status, ran.err) == (0, "")
    assert "impossible ones skipped" in ran.out


def test_help_shows_a_grid_and_where_to_find_its_keys(run: Any) -> None:
    out = " ".join(run("sweep", "--help").out.split())
    for words in ("[grid]", 'rule = ["vote", "belief"]', "[[grid]]", "skip_impossible", "airchoir evaluate"):
        assert words in out
