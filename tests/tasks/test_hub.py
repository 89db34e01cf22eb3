"""Data in the hub's layout: one code reads a clone of the repository, however its files lie, and the hub itself."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest

datasets = pytest.importorskip("datasets", reason="reading the hub's layout needs airchoir[train]; run make test-all")
pyarrow = pytest.importorskip("pyarrow", reason="needs airchoir[train]; run make test-all")
image = pytest.importorskip("PIL.Image", reason="needs airchoir[train]; run make test-all")

import pyarrow.parquet as parquet

from airchoir.tasks import Data, Task
from airchoir.tasks.cifar10 import Cifar10
from airchoir.tasks.cifar100 import Cifar100
from airchoir.tasks.fashion_mnist import FashionMnist
from airchoir.tasks.imdb import Imdb

LABELS = {"train": np.array([3, 1, 0, 9, 9]), "test": np.array([2, 2])}


def pixels(split: str, *, grey: bool) -> np.ndarray:
    shape = (len(LABELS[split]), 6, 6) if grey else (len(LABELS[split]), 6, 6, 3)
    return np.random.default_rng(len(split)).integers(0, 256, shape, dtype=np.uint8)


def encoded(arrays: np.ndarray) -> "pyarrow.Array":
    rows = []
    for array in arrays:
        buffer = io.BytesIO()
        image.fromarray(array).save(buffer, "PNG")
        rows.append({"bytes": buffer.getvalue(), "path": None})
    return pyarrow.array(rows, pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())]))


def clone(folder: Path, columns: dict[str, dict[str, object]], *, shards: int = 1) -> None:
    """Parquet files per split, as a cloned dataset repository has them."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, values in columns.items():
        table = pyarrow.table(values)
        rows = -(-table.num_rows // shards)
        for i in range(shards):
            name = f"{split}-{i:05d}-of-{shards:05d}.parquet"
            parquet.write_table(table.slice(i * rows, rows), folder / name)


def clone_of_images(folder: Path, inputs: str, labels: str, *, grey: bool = False, shards: int = 1) -> None:
    columns = {
        split: {inputs: encoded(pixels(split, grey=grey)), labels: LABELS[split].tolist()}
        for split in ("train", "test")
    }
    clone(folder, columns, shards=shards)


def check(data: Data, *, grey: bool) -> None:
    for split in ("train", "test"):
        wanted = pixels(split, grey=grey)
        inputs, labels = getattr(data, f"{split}_inputs"), getattr(data, f"{split}_labels")
        assert inputs.dtype == np.uint8
        np.testing.assert_array_equal(inputs, np.repeat(wanted[..., None], 3, axis=-1) if grey else wanted)
        assert labels.dtype == np.int64
        np.testing.assert_array_equal(labels, LABELS[split])


@pytest.mark.parametrize(
    ("task", "inputs", "labels", "grey"),
    [
        (Cifar10(), "img", "label", False),
        (Cifar100(), "img", "fine_label", False),
        (FashionMnist(), "image", "label", True),
    ],
    ids=lambda value: getattr(value, "name", None),
)
@pytest.mark.parametrize("below", [".", "plain_text"])
def test_a_clone_is_read_from_its_own_folder_and_from_the_one_above(
    task: Task, inputs: str, labels: str, grey: bool, below: str, tmp_path: Path
) -> None:
    clone_of_images(tmp_path / task.name / below, inputs, labels, grey=grey, shards=2)
    one, other = task.load(tmp_path), task.load(tmp_path / task.name)
    check(one, grey=grey)
    assert one.fingerprint == other.fingerprint
    assert one.classes == task.classes


def test_reviews_are_strings(tmp_path: Path) -> None:
    reviews = {"train": ["schön", "", "bad"], "test": ["dull", "great"]}
    clone(tmp_path / "imdb", {split: {"text": texts, "label": [0] * len(texts)} for split, texts in reviews.items()})
    data = Imdb().load(tmp_path)
    assert data.train_inputs.dtype == object
    assert data.train_inputs.tolist() == reviews["train"]
    assert data.test_inputs.tolist() == reviews["test"]


def test_a_clone_of_another_data_set_is_refused_by_its_columns(tmp_path: Path) -> None:
    clone_of_images(tmp_path, "image", "label")
    with pytest.raises(
        ValueError, match=r"has columns image, label but lacks img; is it a copy of uoft-cs/cifar10\?\Z"
    ):
        Cifar10().load(tmp_path)


def test_labels_beyond_the_classes_are_refused(tmp_path: Path) -> None:
    clone(tmp_path, {split: {"text": ["a", "b"], "label": [0, 2]} for split in ("train", "test")})
    with pytest.raises(ValueError, match=r"\Aimdb from .*: training label 2 of example 1 is outside 0\.\.1"):
        Imdb().load(tmp_path)


def test_a_broken_clone_is_refused_in_one_line(tmp_path: Path) -> None:
    clone_of_images(tmp_path / "cifar10", "img", "label")
    (tmp_path / "cifar10" / "test-00000-of-00001.parquet").write_bytes(b"PAR1 half of it")
    with pytest.raises(
        ValueError, match=r"\Acannot load cifar10: tried the [a-z]+ split of [^\n]*; clone [^\n]*again\Z"
    ):
        Cifar10().load(tmp_path)


def test_without_the_hub_one_line_says_what_was_tried_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(place: str, **_: object) -> None:
        assert place == "uoft-cs/cifar10"
        raise ConnectionError("no route to host\nand a long trace")

    monkeypatch.setattr(datasets, "load_dataset", unreachable)
    wanted = (
        r"\Acannot load cifar10: tried the train split of uoft-cs/cifar10 on the Hugging Face hub "
        r"\(ConnectionError: no route to host\); go online, or give --data DIR with a clone of [^\n]*cifar10\.npz\Z"
    )
    with pytest.raises(ValueError, match=wanted):
        Cifar10().load()


def test_without_the_package_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=r"\A[^\n]*pip install 'airchoir\[train\]'[^\n]*cifar10\.npz\Z"):
        Cifar10().load()
