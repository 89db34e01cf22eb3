"""Data sets in the Hugging Face hub's layout: from the hub by name, from a clone on the disk, or prepared."""

import io
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airchoir.tasks import Data, Inputs
from airchoir.tasks.prepared import SUFFIX, read_prepared


@dataclass(frozen=True)
class HubData:
    """Where a data set lives on the hub, and what its columns are called."""

    task: str
    repository: str
    inputs: str
    labels: str
    classes: int
    decode: Callable[[Sequence[Any]], Inputs]
    """A column's values -> inputs; `texts` or `images`."""

    def load(self, data: Path | None) -> Data:
        """From `data`: a clone, a folder that holds one called after the task, or prepared data. From the hub without."""
        if data is None:
            return self._read(self.repository)
        prepared = [path for path in (data, data / f"{self.task}{SUFFIX}") if path.suffix == SUFFIX and path.is_file()]
        if prepared:
            return read_prepared(prepared[0])
        clones = [path for path in (data / self.task, data) if path.is_dir() and any(path.rglob("*.parquet"))]
        if clones:
            return self._read(str(clones[0]))
        raise ValueError(
            f"{data} holds no {self.task}: tried {data / self.task} and {data} for parquet files in the layout of the hub's "
            f"{self.repository}, and {data / self.task}{SUFFIX}; clone it there, or leave --data out to use the hub"
        )

    def _read(self, place: str) -> Data:
        columns = {split: self._columns(place, split) for split in ("train", "test")}
        (train_inputs, train_labels), (test_inputs, test_labels) = columns["train"], columns["test"]
        try:
            return Data(train_inputs, train_labels, test_inputs, test_labels, self.classes)
        except ValueError as error:
            raise ValueError(f"{self.task} from {place}: {error}") from None

    def _columns(self, place: str, split: str) -> tuple[Inputs, Any]:
        datasets = _datasets(self.task)
        local = Path(place).is_dir()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
            try:
                if local:  # the hub's copy is worth keeping, a second one of a clone is not
                    datasets.disable_progress_bars()
                    table = datasets.load_dataset(place, split=split, cache_dir=cache)
                else:
                    table = datasets.load_dataset(place, split=split)
            except Exception as error:  # whatever the network, the hub or the reader trips over becomes one line
                raise ValueError(self._unreachable(place, split, error)) from None
            missing = {self.inputs, self.labels} - set(table.column_names)
            if missing:
                raise ValueError(
                    f"{place} has columns {', '.join(table.column_names)} but lacks {', '.join(sorted(missing))}; "
                    f"is it a copy of {self.repository}?"
                )
            table = table.select_columns([self.inputs, self.labels])
            labels = np.asarray(table[self.labels], dtype=np.int64)
            return self.decode(_raw(table, self.inputs)), labels

    def _unreachable(self, place: str, split: str, error: Exception) -> str:
        reason = f"{type(error).__name__}: {error}".split("\n")[0][:200]
        wanted = f"a clone of {self.repository} or a prepared {self.task}{SUFFIX}"
        tried = f"the {split} split of {place}" + ("" if Path(place).is_dir() else " on the Hugging Face hub")
        if Path(place).is_dir():
            return f"cannot load {self.task}: tried {tried} ({reason}); clone {self.repository} there again"
        return f"cannot load {self.task}: tried {tried} ({reason}); go online, or give --data DIR with {wanted}"


def texts(values: Sequence[Any]) -> Inputs:
    """The strings as an object array."""
    made = np.empty(len(values), dtype=object)
    made[:] = list(values)
    return made


def images(values: Sequence[Any]) -> Inputs:
    """Encoded images as uint8 (examples, height, width, 3); grey is copied to three channels."""
    with ThreadPoolExecutor() as pool:
        return np.stack(list(pool.map(_decode, values, chunksize=256)))


def _decode(value: Any) -> Any:
    from PIL import Image

    with Image.open(io.BytesIO(value["bytes"]) if value["bytes"] is not None else value["path"]) as image:
        return np.asarray(image.convert("RGB"))


def _raw(table: Any, column: str) -> Any:
    """The column's values, images still encoded."""
    feature = table.features[column]
    if type(feature).__name__ == "Image":
        table = table.cast_column(column, type(feature)(decode=False))
    return table[column][:]


def _datasets(task: str) -> Any:
    try:
        import datasets
    except ImportError:
        raise ValueError(
            f"the {task} task needs the packages of airchoir[train] to read its data; run: pip install 'airchoir[train]', "
            f"or give --data DIR with a prepared {task}{SUFFIX}"
        ) from None
    return datasets
