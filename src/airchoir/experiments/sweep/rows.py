"""Rows on the disk, appended as they finish: JSON lines or Parquet. What is not whole is not believed.

Both hold one row per key. A process that is killed leaves whole rows and at most one half line or no half file, which reading
ignores and `replace` removes.
"""

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from airchoir.files import write_atomically
from airchoir.provenance import plain
from airchoir.registry import suggestion

_PATIENCE_SECONDS = 2.0
"""How long rows may wait to share a Parquet file, which is too much for a few."""

_ENCODER = json.JSONEncoder(allow_nan=False)

Row = dict[str, Any]
"""In JSON's own types; infinity is the string "inf"."""


class Rows(ABC):
    """The rows below a folder."""

    name: ClassVar[str]
    file: ClassVar[str]

    def __init__(self, folder: Path, columns: Mapping[str, type]) -> None:
        self.path, self._columns = folder / self.file, columns

    @abstractmethod
    def read(self) -> tuple[dict[str, Row], bool]:
        """Every whole row by its key, and whether that is all there is, each once."""

    @abstractmethod
    def replace(self, rows: Iterable[Row]) -> None:
        """Have exactly these rows, in this order, and never less than before on the way."""

    @abstractmethod
    def append(self, rows: list[Row]) -> None:
        """Add rows; at once, or soon, they outlive this process."""

    @abstractmethod
    def close(self) -> None:
        """All rows outlive this process."""

    @abstractmethod
    def pieces(self) -> int:
        """In how many files they are."""

    @abstractmethod
    def has_others(self) -> bool:
        """Whether there is anything whole with other columns: another version's rows, or somebody else's."""

    def known(self) -> tuple[dict[str, Row], bool]:
        """What `read` finds; a ValueError rather than a loss where there are others too, which `replace` would remove."""
        found, tidy = self.read()
        if not tidy and self.has_others():
            raise ValueError(
                f"{self.path} holds rows with other columns, of another version or another program; give another --out"
            )
        return found, tidy

    def _is_whole(self, row: object) -> bool:
        return isinstance(row, dict) and list(row) == list(self._columns) and isinstance(row["key"], str)


class JsonLines(Rows):
    """One JSON object per line."""

    name = "jsonl"
    file = "rows.jsonl"

    def __init__(self, folder: Path, columns: Mapping[str, type]) -> None:
        super().__init__(folder, columns)
        self._descriptor: int | None = None

    def read(self) -> tuple[dict[str, Row], bool]:
        found: dict[str, Row] = {}
        lines = self._lines()
        for line in lines[:-1]:
            row = _parsed(line)
            if self._is_whole(row):
                found.setdefault(row["key"], row)
        return found, len(found) == len(lines) - 1 and not lines[-1]

    def has_others(self) -> bool:
        parsed = map(_parsed, self._lines()[:-1])
        return any(isinstance(row, dict) and row and not self._is_whole(row) for row in parsed)

    def _lines(self) -> list[bytes]:
        """What follows the last line's end is empty, or the half of one."""
        return self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]

    def replace(self, rows: Iterable[Row]) -> None:
        def write(temporary: Path) -> None:
            with open(temporary, "wb") as file:
                file.writelines(_line(row) for row in rows)

        self.close()
        write_atomically(self.path, write)

    def append(self, rows: list[Row]) -> None:
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        text = b"".join(map(_line, rows))
        size = os.fstat(self._descriptor).st_size
        try:
            written = 0
            while written < len(text):
                written += os.write(self._descriptor, text[written:])
            os.fsync(self._descriptor)
        except OSError as error:
            os.ftruncate(self._descriptor, size)
            error.filename = error.filename or str(self.path)
            raise

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def pieces(self) -> int:
        return int(self.path.exists())


def _line(row: Row) -> bytes:
    try:
        text = _ENCODER.encode(row)
    except ValueError:  # infinity somewhere, or NaN
        text = _ENCODER.encode(plain(row))
    return text.encode() + b"\n"


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


class Parquet(Rows):
    """A folder of Parquet files, which readers take for one table; each appears whole or not at all."""

    name = "parquet"
    file = "rows.parquet"

    def __init__(self, folder: Path, columns: Mapping[str, type]) -> None:
        super().__init__(folder, columns)
        if find_spec("pyarrow") is None:
            raise ValueError(
                "Parquet needs pyarrow, which is not installed; run: pip install 'airchoir[parquet]', or use jsonl"
            )
        self._waiting: list[Row] = []
        self._written = time.monotonic()
        self._next = 1 + max((int(part.stem.partition("-")[2]) for part in self._parts()), default=0)

    def read(self) -> tuple[dict[str, Row], bool]:
        found: dict[str, Row] = {}
        parts = self._parts()
        tidy = len(parts) <= 1
        for part in parts:
            rows = self._rows(part)
            tidy &= rows is not None
            for row in rows or []:
                tidy &= row["key"] not in found
                found.setdefault(row["key"], row)
        return found, tidy

    def has_others(self) -> bool:
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
        for part in self._parts():
            try:
                names = parquet.ParquetFile(part).schema_arrow.names
            except (pyarrow.ArrowException, OSError):
                continue
            if names != list(self._columns):
                return True
        return False

    def replace(self, rows: Iterable[Row]) -> None:
        self._waiting, old = [], self._parts()
        self._write(list(rows))
        for part in old:
            part.unlink()

    def append(self, rows: list[Row]) -> None:
        self._waiting += rows
        if time.monotonic() - self._written > _PATIENCE_SECONDS:
            self.close()

    def close(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._write(waiting)

    def pieces(self) -> int:
        return len(self._parts())

    def _parts(self) -> list[Path]:
        return sorted(self.path.glob("part-*.parquet"))

    def _rows(self, part: Path) -> list[Row] | None:
        """None where the file is damaged or none of ours."""
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
        try:
            rows = parquet.ParquetFile(part).read().to_pylist()
        except (pyarrow.ArrowException, OSError):
            return None
        return [plain(row) for row in rows] if all(map(self._is_whole, rows)) else None

    def _write(self, rows: list[Row]) -> None:
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
        types = {str: pyarrow.string(), float: pyarrow.float64(), int: pyarrow.int64()}
        table = pyarrow.table(
            {
                name: pyarrow.array([_typed(row[name], kind) for row in rows], types[kind])
                for name, kind in self._columns.items()
            }
        )
        part = self.path / f"part-{self._next:06d}.parquet"
        write_atomically(part, lambda temporary: parquet.write_table(table, temporary))
        self._next += 1
        self._written = time.monotonic()


def _typed(value: Any, kind: type) -> Any:
    """JSON's "inf" is a number here."""
    return value if value is None or isinstance(value, kind) else kind(value)


_FORMATS: dict[str, type[Rows]] = {JsonLines.name: JsonLines, Parquet.name: Parquet}


def open_rows(folder: Path, form: str, columns: Mapping[str, type]) -> Rows:
    """The rows below a folder, in the format `form`; a ValueError where they are in another one already."""
    if form not in _FORMATS:
        raise ValueError(f"unknown format {form!r}; {suggestion(form, list(_FORMATS))}")
    for name, other in _FORMATS.items():
        if name != form and (folder / other.file).exists():
            raise ValueError(
                f"{folder} has its rows in {other.file}; go on with the format {name}, or give another --out"
            )
    return _FORMATS[form](folder, columns)
