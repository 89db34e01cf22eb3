"""Prepared data: what is written is read, and a file that is none is refused in one line."""

from pathlib import Path

import numpy as np
import pytest

from airchoir.registry import plugins
from airchoir.tasks import Data, Task
from airchoir.tasks.cifar10 import Cifar10
from airchoir.tasks.imdb import Imdb
from airchoir.tasks.prepared import read_prepared, write_prepared


def images(seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (7, 5, 5, 3), dtype=np.uint8)
    return Data(pixels[:4], np.array([0, 9, 3, 3]), pixels[4:], np.array([1, 2, 0]), classes=10)


def texts(*train: str) -> Data:
    inputs = np.array([*train, "last"], dtype=object)[:-1]
    return Data(inputs, np.arange(len(train)) % 2, np.array(["", "x"], dtype=object), np.array([0, 1]), classes=2)


@pytest.mark.parametrize("data", [images(), texts("good", "", "schön \N{SNOWMAN}", "two\nlines")])
def test_what_is_written_is_read(data: Data, tmp_path: Path) -> None:
    path = tmp_path / "cifar10.npz"
    write_prepared(data, path)
    again = read_prepared(path)
    assert again.classes == data.classes
    assert again.fingerprint == data.fingerprint
    for name in ("train_inputs", "train_labels", "test_inputs", "test_labels"):
        mine, theirs = getattr(again, name), getattr(data, name)
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


def test_a_task_reads_its_prepared_file_by_name_or_from_its_folder(tmp_path: Path) -> None:
    write_prepared(images(), tmp_path / "cifar10.npz")
    write_prepared(texts("a", "b"), tmp_path / "imdb.npz")
    for place in (tmp_path, tmp_path / "cifar10.npz"):
        assert Cifar10().load(place).fingerprint == images().fingerprint
    assert Imdb().load(tmp_path).fingerprint == texts("a", "b").fingerprint


def test_the_fingerprint_tells_examples_labels_and_their_order_apart() -> None:
    data = images()
    others = [
        images(1),
        Data(data.train_inputs[::-1], data.train_labels, data.test_inputs, data.test_labels, 10),
        Data(data.train_inputs, data.train_labels[::-1], data.test_inputs, data.test_labels, 10),
        texts("ab", "c"),
        texts("a", "bc"),
    ]
    assert len({each.fingerprint for each in [data, *others]}) == 6
    assert images().fingerprint == data.fingerprint


@pytest.mark.parametrize("content", [b"", b"PK no zip"])
def test_a_broken_file_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cifar10.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"\A[^\n]*cifar10\.npz is no whole \.npz file [^\n]*make it again\Z"):
        Cifar10().load(tmp_path)


def test_half_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cifar10.npz"
    write_prepared(images(), path)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(ValueError, match=r"\A[^\n]*is no whole \.npz file [^\n]*\Z"):
        read_prepared(path)


def test_a_file_of_something_else_is_refused_by_what_it_lacks(tmp_path: Path) -> None:
    np.savez(tmp_path / "cifar10.npz", scores=np.zeros(3))
    with pytest.raises(ValueError, match=r"is no prepared data set: it lacks train_inputs; make it again"):
        Cifar10().load(tmp_path)


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (np.array([0, 1, 10, 3]), r"training label 10 of example 2 is outside 0\.\.9"),
        (np.array([0, -1, 1, 3]), r"training label -1 of example 1 is outside 0\.\.9"),
        (np.array([0, 1]), r"the training split has 4 examples and 2 labels"),
    ],
)
def test_labels_that_do_not_belong_are_refused(labels: np.ndarray, complaint: str) -> None:
    data = images()
    with pytest.raises(ValueError, match=complaint):
        Data(data.train_inputs, labels, data.test_inputs, data.test_labels, classes=10)


def test_prepared_data_are_called_npz(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must end in \.npz"):
        write_prepared(images(), tmp_path / "cifar10.safetensors")


def test_the_papers_four_tasks_and_the_digits_are_there() -> None:
    tasks = plugins(Task)
    assert {"cifar10", "cifar100", "digits", "fashion_mnist", "imdb"} <= set(tasks)
    assert {name: task.classes for name, task in tasks.items() if name in ("cifar10", "cifar100", "imdb")} == {
        "cifar10": 10,
        "cifar100": 100,
        "imdb": 2,
    }


def test_where_there_is_nothing_one_line_says_what_was_tried_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "cifar10").mkdir()
    wanted = rf"\A{tmp_path} holds no cifar10: tried [^\n]*cifar10[^\n]*uoft-cs/cifar10[^\n]*clone it there[^\n]*hub\Z"
    with pytest.raises(ValueError, match=wanted):
        Cifar10().load(tmp_path)


def test_the_digits_come_from_nowhere_else(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\Athe digits ship with scikit-learn and cannot come from [^\n]*\Z"):
        plugins(Task)["digits"]().load(tmp_path)
