"""Rows on the disk: appended, read, replaced, and never believed where they are not whole."""

import errno
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.experiments.sweep.rows import JsonLines, Row, Rows, open_rows

COLUMNS: dict[str, type] = {"key": str, "bank": str, "epsilon": float, "lost": int, "threshold": float, "f1": float}
FORMATS = ["jsonl", "parquet"]
Open = Callable[[], Rows]


@pytest.fixture(params=FORMATS)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """A function that opens the rows of a folder, in each format."""
    if request.param == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")
    return lambda: open_rows(tmp_path, request.param, COLUMNS)


def row(key: object, **values: Any) -> Row:
    usual = {"bank": "bänk\n", "epsilon": "inf", "lost": 3, "threshold": None, "f1": 0.1 + 0.2}
    return {"key": str(key), **usual, **values}


def text(*rows: Row) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in rows).encode()


def test_what_is_appended_is_read_again_in_its_order(opened: Open) -> None:
    rows = opened()
    assert rows.read() == ({}, True)
    batches = [[row(5, epsilon=1.0), row(3, f1=1e-300)], [row(4, threshold=0.5)], []]
    for batch in batches:
        rows.append(batch)
    rows.close()
    found, _ = opened().read()
    expected = [each for batch in batches for each in batch]
    assert list(found.values()) == expected
    assert list(found) == ["5", "3", "4"]
    assert [list(each) for each in found.values()] == [list(COLUMNS)] * 3


def test_replaced_rows_are_all_there_is(opened: Open) -> None:
    rows = opened()
    rows.append([row(1), row(2)])
    rows.close()
    found, _ = rows.read()
    rows.replace(found[key] for key in ("2", "1"))
    rows.append([row(3)])
    rows.close()
    assert list(opened().read()[0]) == ["2", "1", "3"]
    opened().replace([])
    assert opened().read() == ({}, True)


def test_a_key_counts_once(opened: Open) -> None:
    rows = opened()
    rows.append([row(1), row(2)])
    rows.close()
    rows.append([row(2), row(3)])
    rows.close()
    found, tidy = opened().read()
    assert (list(found), tidy) == (["1", "2", "3"], False)
    rows.replace(found.values())
    assert opened().read() == (found, True)


def test_another_format_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    for one, other in (FORMATS, FORMATS[::-1]):
        folder = tmp_path / one
        rows = open_rows(folder, one, COLUMNS)
        folder.mkdir()
        rows.append([row(1)])
        rows.close()
        with pytest.raises(ValueError, match=rf"has its rows in rows\.{one}; go on with the format {one}"):
            open_rows(folder, other, COLUMNS)


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown format 'jsonlines'; did you mean 'jsonl'"):
        open_rows(tmp_path, "jsonlines", COLUMNS)


def test_parquet_without_pyarrow_is_refused_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airchoir.experiments.sweep.rows.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"run: pip install 'airchoir\[parquet\]', or use jsonl"):
        open_rows(tmp_path, "parquet", COLUMNS)


# --- JSON lines


def test_a_line_is_one_json_object_without_infinity(tmp_path: Path) -> None:
    rows = open_rows(tmp_path, "jsonl", COLUMNS)
    rows.append([row(1, f1=math.inf), row(2, f1=math.nan)])
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["f1"] for line in lines] == ["inf", "nan"]


def test_the_last_line_cut_at_any_byte_is_no_row(tmp_path: Path) -> None:
    whole, path = text(row(1), row(2)), tmp_path / "rows.jsonl"
    first = len(text(row(1)))
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        found, tidy = open_rows(tmp_path, "jsonl", COLUMNS).read()
        assert list(found) == ["1"] * (end >= first) + ["2"] * (end == len(whole))
        assert tidy == (end in (0, first, len(whole)))


@settings(deadline=None)
@given(st.binary(max_size=40), st.integers(0, 3))
def test_whatever_else_lies_between_the_rows_is_no_row(
    tmp_path_factory: pytest.TempPathFactory, rubbish: bytes, place: int
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    lines = text(row(1), row(2), row(3)).splitlines(keepends=True)
    lines.insert(place, rubbish + b"\n")
    (folder / "rows.jsonl").write_bytes(b"".join(lines))
    found, tidy = open_rows(folder, "jsonl", COLUMNS).read()
    assert (list(found), tidy) == (["1", "2", "3"], False)


@pytest.mark.parametrize(
    "line",
    [
        {},
        [],
        5,
        None,
        "key",
        {"key": "9"},
        {**row(9), "more": 1},
        {**row(9), "key": 9},
        {name: value for name, value in row(9).items() if name != "f1"},
    ],
)
def test_json_that_is_no_row_of_ours_is_none(tmp_path: Path, line: Any) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(line) + "\n")
    assert open_rows(tmp_path, "jsonl", COLUMNS).read() == ({}, False)


def test_a_full_disk_leaves_whole_lines_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = open_rows(tmp_path, "jsonl", COLUMNS)
    rows.append([row(1)])
    write = os.write

    def half(descriptor: int, content: bytes) -> int:
        if len(content) < 90:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, content[: len(content) // 2])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(OSError, match="No space left") as caught:
            rows.append([row(2), row(3)])
    assert caught.value.filename == str(tmp_path / "rows.jsonl")
    assert rows.read() == ({"1": row(1)}, True)
    rows.append([row(2)])
    assert list(rows.read()[0]) == ["1", "2"]


def test_lines_are_on_the_disk_when_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        sync(descriptor)
        synced.append((tmp_path / "rows.jsonl").read_bytes())

    rows = JsonLines(tmp_path, COLUMNS)
    monkeypatch.setattr(os, "fsync", watched)
    rows.append([row(1)])
    rows.append([row(2)])
    assert synced == [text(row(1)), text(row(1), row(2))]


# --- Parquet


@pytest.fixture
def arrow() -> Any:
    return pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")


def test_readers_take_the_folder_for_one_table_with_numbers(tmp_path: Path, arrow: Any) -> None:
    rows = open_rows(tmp_path, "parquet", COLUMNS)
    rows.append([row(1, threshold=None)])
    rows.close()
    rows.append([row(2, threshold=0.5, epsilon=2.0)])
    rows.close()
    assert rows.pieces() == 2
    table = arrow.read_table(tmp_path / "rows.parquet").to_pydict()
    assert table["epsilon"] == [math.inf, 2.0]
    assert table["threshold"] == [None, 0.5]
    assert table["lost"] == [3, 3]
    rows.replace(rows.read()[0].values())
    assert rows.pieces() == 1
    assert arrow.read_table(tmp_path / "rows.parquet").to_pydict() == table


def test_a_part_cut_at_any_byte_is_no_part(tmp_path: Path, arrow: Any) -> None:
    rows = open_rows(tmp_path, "parquet", COLUMNS)
    rows.append([row(1)])
    rows.close()
    rows.append([row(2)])
    rows.close()
    last = max((tmp_path / "rows.parquet").iterdir())
    whole = last.read_bytes()
    for end in range(0, len(whole), 97):
        last.write_bytes(whole[:end])
        reopened = open_rows(tmp_path, "parquet", COLUMNS)
        assert reopened.read() == ({"1": row(1)}, False)
    reopened.append([row(3)])
    reopened.close()
    assert list(reopened.read()[0]) == ["1", "3"]
    reopened.replace(reopened.read()[0].values())
    assert reopened.read() == ({"1": row(1), "3": row(3)}, True)
    assert reopened.pieces() == 1


def test_a_table_of_somebody_elses_is_no_part(tmp_path: Path, arrow: Any) -> None:
    import pyarrow

    (tmp_path / "rows.parquet").mkdir()
    arrow.write_table(pyarrow.table({"key": ["1"]}), tmp_path / "rows.parquet" / "part-000001.parquet")
    assert open_rows(tmp_path, "parquet", COLUMNS).read() == ({}, False)


def test_rows_wait_for_each_other_but_not_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrow: Any) -> None:
    now = 0.0
    monkeypatch.setattr("airchoir.experiments.sweep.rows.time", SimpleNamespace(monotonic=lambda: now))
    rows = open_rows(tmp_path, "parquet", COLUMNS)
    for index in range(30):
        now += 0.5
        rows.append([row(index)])
    assert 1 <= rows.pieces() <= 8
    assert len(open_rows(tmp_path, "parquet", COLUMNS).read()[0]) >= 25
    rows.close()
    assert len(rows.read()[0]) == 30
