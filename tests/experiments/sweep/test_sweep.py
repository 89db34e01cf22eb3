"""A sweep: the numbers of `evaluate`, however often and wherever it is stopped, and nothing computed twice."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import airchoir as ac
from airchoir import ScoreBank, provenance
from airchoir.experiments.sweep import COLUMNS, Swept, sweep
from airchoir.experiments.sweep.condition import NUMBERS, Condition
from airchoir.experiments.sweep.grid import GridError, read_grid

Synthetic = Callable[..., ScoreBank]
Row = dict[str, Any]

GRID = """
[grid]
rule = ["vote", "belief"]
access = ["over-the-air", "orthogonal"]
epsilon = ["inf", 1.0]
snr_db = [0, 10, inf]
participation = [0.5, 1.0]
tolerance = 0.05
"""


@pytest.fixture(autouse=True)
def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the same commit, whatever happens to the checkout meanwhile; one process, so that it can be watched."""
    monkeypatch.setattr(provenance, "commit", lambda: "0123456789ab")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Condition]:
    """Every condition that is evaluated in this process from now on."""
    seen: list[Condition] = []
    estimate = Condition.estimate

    def count(condition: Condition, bank: ScoreBank) -> ac.Estimate:
        seen.append(condition)
        return estimate(condition, bank)

    monkeypatch.setattr(Condition, "estimate", count)
    return seen


@pytest.fixture
def run(tmp_path: Path, synthetic: Synthetic) -> Callable[..., Swept]:
    """A function that sweeps a grid's text over banks, by default one, into a folder, by default `out`."""

    def execute(text: str = GRID, banks: Sequence[ScoreBank] = (), out: str = "out", **options: Any) -> Swept:
        path = tmp_path / "grid.toml"
        path.write_text(text)
        known = []
        for index, bank in enumerate(banks or [synthetic()]):
            known.append((tmp_path / f"bank-{index}.safetensors", bank))
            bank.save(known[-1][0])
        return sweep(read_grid(path), known, tmp_path / out, **options)

    return execute


def rows(path: Path) -> list[Row]:
    return [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]


def number(value: Any) -> Any:
    return math.inf if value == "inf" else value


# --- what rows say


def test_every_row_has_the_numbers_of_evaluate(run: Any, synthetic: Synthetic, tmp_path: Path) -> None:
    banks = [synthetic(seed=0), synthetic(seed=1, clients=7)]
    swept = run(banks=banks)
    found = rows(swept.path)
    assert (swept.new, swept.kept, len(found)) == (96, 0, 96)
    assert len({json.dumps(row) for row in found}) == 96
    for row in found:
        bank = ScoreBank.load(row["bank"])
        scheme = ac.Scheme(
            rule={"vote": ac.MajorityVote(), "belief": ac.BeliefSum()}[row["rule"]],
            access={"over-the-air": ac.OverTheAir(), "orthogonal": ac.Orthogonal()}[row["access"]],
            channel=ac.Awgn(number(row["snr_db"])),
            privacy=ac.Privacy(number(row["epsilon"])),
            participation=row["participation"],
        )
        expected = ac.evaluate(scheme, bank, tolerance=row["tolerance"], seed=row["seed"])
        assert {name: row[name] for name in NUMBERS} == {name: getattr(expected, name) for name in NUMBERS}
        assert (row["task"], row["clients"], row["classes"]) == ("synthetic", bank.clients, 3)
        assert row["bank_seed"] == bank.metadata["seed"]
        assert row["commit"] == "0123456789ab"
        assert f"airchoir {ac.__version__}" in row["versions"]
        assert list(row) == list(COLUMNS)


def test_rows_are_in_the_order_of_the_plan(run: Any, synthetic: Synthetic) -> None:
    found = rows(run("snr_db = [3, 1, 2]\nrule = ['belief', 'vote']", [synthetic(seed=1), synthetic(seed=0)]).path)
    order = [(row["bank_seed"], row["rule"], row["snr_db"]) for row in found]
    assert order == [(b, r, s) for b in ("1", "0") for r in ("belief", "vote") for s in (3.0, 1.0, 2.0)]


def test_simulation_is_swept_like_evaluation(run: Any, synthetic: Synthetic) -> None:
    (row,) = rows(run("method = 'simulate'\nrepeats = 5\nseed = 2").path)
    expected = ac.simulate(ac.Scheme(), synthetic(), repeats=5, seed=2)
    assert (row["macro_f1"], row["macro_f1_std"], row["draws"]) == (expected.macro_f1, expected.macro_f1_std, 5)
    assert (row["repeats"], row["tolerance"]) == (5, None)


def test_a_bank_without_a_task_is_called_after_its_folder(run: Any, synthetic: Synthetic, tmp_path: Path) -> None:
    bank = synthetic()
    anonymous = ScoreBank(bank.test_scores, bank.test_labels)
    (row,) = rows(run("snr_db = 3", [anonymous]).path)
    assert (row["task"], row["bank_seed"]) == (tmp_path.name, "")


# --- stopped and resumed


def test_a_second_run_computes_nothing(run: Any, counted: list[Condition]) -> None:
    first = run()
    before = first.path.read_bytes()
    assert len(counted) == 48
    again = run()
    assert (again.new, again.kept) == (0, 48)
    assert len(counted) == 48
    assert again.path.read_bytes() == before


def test_a_file_cut_anywhere_in_its_last_row_is_completed(
    run: Any, counted: list[Condition], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading is tried at every byte (test_rows): here at every fifth, and near both ends."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of files later it matters
    text = "snr_db = [0, 1, 2]"
    path = run(text).path
    whole = path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    ends = range(start, len(whole) + 1)
    for end in {*ends[::5], *ends[:3], *ends[-3:]}:
        path.write_bytes(whole[:end])
        counted.clear()
        swept = run(text)
        assert path.read_bytes() == whole
        assert [condition.snr_db for condition in counted] == [2.0] * (end < len(whole))
        assert (swept.new, swept.kept) == ((1, 2) if end < len(whole) else (0, 3))


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_is_left_of_the_rows_is_kept_and_the_rest_computed(
    run: Any, counted: list[Condition], data: st.DataObject
) -> None:
    path = run().path
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    left = data.draw(st.lists(st.sampled_from(range(len(lines))), max_size=60))
    torn = data.draw(st.sampled_from([b"", b"\x00" * 80 + b"\n", lines[0][:99], lines[1][:-2] + b"\n", b"{}\n\n[1]\n"]))
    place = data.draw(st.integers(0, len(left)))
    kept = [lines[index] for index in left]
    path.write_bytes(b"".join([*kept[:place], torn + b"\n" * (place < len(left)), *kept[place:]]))
    counted.clear()
    swept = run()
    assert path.read_bytes() == whole
    assert len(counted) == swept.new == len(lines) - len(set(left))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_an_interrupted_sweep_keeps_what_it_has(
    run: Any, counted: list[Condition], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    whole = run(out="whole", form=form).path
    counted.clear()
    monkeypatch.setattr("airchoir.experiments.sweep.work.SLICE_SECONDS", 0.0)  # one condition at a time
    for stop in (5, 11, 30):

        def interrupt(done: int, total: int, stop: int = stop) -> None:
            assert total == 48
            if done >= stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(progress=interrupt, form=form)
        assert len(counted) == stop
    swept = run(form=form)
    assert (swept.new, swept.kept, len(counted)) == (18, 30, 48)
    assert content(swept.path) == content(whole)


def content(path: Path) -> Any:
    if path.is_file():
        return path.read_bytes()
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()


KILLED = """
import sys, time
from pathlib import Path
from airchoir import ScoreBank, provenance
from airchoir.experiments.sweep import sweep
from airchoir.experiments.sweep.condition import Condition
from airchoir.experiments.sweep.grid import read_grid

provenance.commit = lambda: "0123456789ab"
estimate = Condition.estimate

def slow(condition, bank):
    time.sleep(0.05)
    return estimate(condition, bank)

Condition.estimate = slow
bank = Path(sys.argv[2])
sweep(read_grid(Path(sys.argv[1])), [(bank, ScoreBank.load(bank))], Path(sys.argv[3]))
"""


def test_a_killed_process_loses_at_most_what_it_was_at(run: Any, counted: list[Condition], tmp_path: Path) -> None:
    whole = run(out="whole").path.read_bytes()
    path = tmp_path / "out" / "rows.jsonl"
    arguments = [str(tmp_path / name) for name in ("grid.toml", "bank-0.safetensors", "out")]
    found = 0
    for _ in range(2):
        victim = subprocess.Popen(
            [sys.executable, "-c", KILLED, *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)},
        )
        deadline = time.monotonic() + 60.0
        while not (path.exists() and path.read_bytes().count(b"\n") > found):
            assert victim.poll() is None, "it ended before it was killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        found = path.read_bytes().count(b"\n")
        assert found < 48
    counted.clear()
    swept = run()
    assert (swept.kept, len(counted)) == (found, 48 - found)
    assert path.read_bytes() == whole


def test_two_sweeps_do_not_write_to_one_folder(run: Any, counted: list[Condition]) -> None:
    def intrude(done: int, total: int) -> None:
        with pytest.raises(ValueError, match=r"another sweep is writing to .*; wait for it, or give another --out"):
            run()

    run(progress=intrude)
    assert len(counted) == 48


# --- another grid, another bank, another engine


def test_a_changed_grid_keeps_the_rows_that_still_apply(run: Any, counted: list[Condition], tmp_path: Path) -> None:
    run("snr_db = [0, 1, 2]")
    counted.clear()
    swept = run("snr_db = [3, 2, 0]\ndelta = 1e-6")
    assert (swept.new, swept.kept, swept.aside) == (1, 2, 1)
    assert [condition.snr_db for condition in counted] == [3.0]
    assert [row["snr_db"] for row in rows(swept.path)] == [3.0, 2.0, 0.0]
    assert [row["snr_db"] for row in rows(tmp_path / "out" / "earlier" / "rows.jsonl")] == [1.0]


def test_rows_set_aside_come_back_when_a_grid_asks_for_them(run: Any, counted: list[Condition], tmp_path: Path) -> None:
    whole = run("snr_db = [0, 1, 2, 3]").path.read_bytes()
    assert run("snr_db = [5]").aside == 4
    assert run("snr_db = [1, 5]").aside == 3
    counted.clear()
    swept = run("snr_db = [0, 1, 2, 3]")
    assert (swept.new, swept.kept, swept.aside, counted) == (0, 4, 1, [])
    assert swept.path.read_bytes() == whole
    assert [row["snr_db"] for row in rows(tmp_path / "out" / "earlier" / "rows.jsonl")] == [5.0]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("place", [".", "earlier"])
def test_rows_with_other_columns_are_not_thrown_away(run: Any, tmp_path: Path, form: str, place: str) -> None:
    file = tmp_path / "out" / place / f"rows.{form}"
    if form == "jsonl":
        file.parent.mkdir(parents=True)
        file.write_text('{"key": "1", "mine": 5}\n')
    else:
        parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
        import pyarrow

        file.mkdir(parents=True)
        file /= "part-000001.parquet"
        parquet.write_table(pyarrow.table({"key": ["1"], "mine": [5]}), file)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=r"holds rows with other columns, .*; give another --out"):
        run("snr_db = 0", form=form)
    assert file.read_bytes() == before


def test_another_bank_is_another_row_and_more_banks_keep_those_there_are(
    run: Any, synthetic: Synthetic, counted: list[Condition]
) -> None:
    grid = "rule = 'belief'\nparticipation = 0.5\ntolerance = 0.05"
    (first,) = rows(run(grid, [synthetic(seed=1)]).path)
    swept = run(grid, [synthetic(seed=0), synthetic(seed=1)])
    assert (swept.new, swept.kept, len(counted)) == (1, 1, 2)
    assert rows(swept.path)[1] == first


def test_a_bank_that_changed_under_its_name_is_evaluated_anew(run: Any, synthetic: Synthetic) -> None:
    run("snr_db = 0", [synthetic(seed=1)])
    swept = run("snr_db = 0", [synthetic(seed=2)])
    assert (swept.new, swept.kept, swept.aside) == (1, 0, 1)
    assert rows(swept.path)[0]["bank_seed"] == "2"


def test_rows_of_another_engine_are_not_believed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run("snr_db = 0")
    monkeypatch.setattr("airchoir.experiments.sweep.condition.engine", lambda: "another")
    swept = run("snr_db = 0")
    assert (swept.new, swept.kept, swept.aside) == (1, 0, 1)


def test_the_same_bank_twice_is_refused(run: Any, synthetic: Synthetic) -> None:
    with pytest.raises(ValueError, match=r"bank-1\.safetensors holds the same bank as .*bank-0.*; give it once"):
        run(banks=[synthetic(), synthetic()])


# --- elsewhere and several at once


def test_processes_make_the_same_rows(
    run: Any, synthetic: Synthetic, counted: list[Condition], monkeypatch: pytest.MonkeyPatch
) -> None:
    banks = [synthetic(seed=0), synthetic(seed=1)]
    alone = run(banks=banks, out="alone").path.read_bytes()
    assert len(counted) == 96
    monkeypatch.setattr("airchoir.experiments.sweep.work.Agenda.processes", lambda self, cores, alone: 2)
    assert run(banks=banks).path.read_bytes() == alone
    assert len(counted) == 96


def test_where_numpy_takes_several_threads_another_process_works(
    run: Any, counted: list[Condition], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = run(out="alone").path.read_bytes()
    counted.clear()
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert run().path.read_bytes() == alone
    assert counted == []


def test_progress_goes_from_what_was_kept_to_all(run: Any) -> None:
    heard: list[tuple[int, int]] = []
    run("snr_db = [0, 1]")
    run("snr_db = [0, 1, 2, 3, 4]", progress=lambda done, total: heard.append((done, total)))
    assert heard[0] == (2, 5)
    assert heard[-1] == (5, 5)
    assert heard == sorted(heard)


# --- what cannot be


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if one condition turned out to be impossible while it is evaluated."""
    estimate = Condition.estimate

    def refuse(condition: Condition, bank: ScoreBank) -> ac.Estimate:
        if condition.snr_db == 1.0:
            raise ValueError("no noise is known for this; ask for less")
        return estimate(condition, bank)

    monkeypatch.setattr(Condition, "estimate", refuse)


def test_what_turns_out_impossible_is_told_after_the_rest_is_done(
    run: Any, stubborn: None, tmp_path: Path, counted: list[Condition]
) -> None:
    with pytest.raises(
        GridError, match=r"snr_db 1\.0 on .*bank-0.safetensors: no noise is known for this; ask for less"
    ):
        run("snr_db = [0, 1, 2]")
    assert [row["snr_db"] for row in rows(tmp_path / "out" / "rows.jsonl")] == [0.0, 2.0]
    counted.clear()
    with pytest.raises(GridError):
        run("snr_db = [0, 1, 2]")
    assert [condition.snr_db for condition in counted] == [1.0]


def test_what_turns_out_impossible_is_skipped_where_that_is_allowed(run: Any, stubborn: None) -> None:
    swept = run("skip_impossible = true\nsnr_db = [0, 1, 2]")
    assert (swept.new, swept.skipped) == (2, 1)


def test_nothing_is_written_where_anything_is_refused(run: Any, synthetic: Synthetic, tmp_path: Path) -> None:
    for text, options in (
        ("lost = 99", {}),
        ("snr_db = 0", {"on": "moon"}),
        ("snr_db = 0", {"form": "xml"}),
        ("snr_db = 0", {"banks": [synthetic(), synthetic()]}),
    ):
        with pytest.raises(ValueError, match=r"[;,] "):
            run(text, **options)
        assert not (tmp_path / "out").exists()
    (tmp_path / "out").write_text("")
    with pytest.raises(ValueError, match="is a file; --out wants a folder"):
        run("snr_db = 0")


def test_rows_have_a_type_for_every_column(run: Any) -> None:
    for row in rows(run().path):
        for name, kind in COLUMNS.items():
            value = number(row[name])
            assert value is None or type(value) is kind, name
