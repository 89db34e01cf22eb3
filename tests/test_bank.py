"""Score banks: what is written is read back, mapped and not copied; whatever is no bank is refused in one line."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import save_file

from airchoir import ScoreBank
from airchoir.bank import convert
from airchoir.files import read_arrays, write_atomically

MakeBank = Callable[..., ScoreBank]
NAMES = ("test_scores", "test_labels", "val_scores", "val_labels")
FORMAT = {"format": "1"}


def even(clients: int = 2, queries: int = 3, classes: int = 4, dtype: str = "float32") -> np.ndarray:
    return np.full((clients, queries, classes), 1.0 / max(classes, 1), dtype=dtype)


LABELS = np.array([0, 1, 2])
TENSORS = {"test_scores": even(), "test_labels": LABELS}


def changed(client: int, query: int, row: list[float], dtype: str = "float32") -> np.ndarray:
    scores = even(dtype=dtype)
    scores[client, query] = row
    return scores


def write(path: Path, tensors: Mapping[str, np.ndarray], metadata: dict[str, str] | None = FORMAT) -> Path:
    save_file(dict(tensors), path, metadata=metadata)
    return path


def refusal(attempt: Callable[[], object]) -> str:
    """The message of a ValueError that is one line and offers a remedy after a semicolon or a comma."""
    with pytest.raises(ValueError, match=r"\A[^\n]+[;:,] [^\n]+\Z") as caught:
        attempt()
    assert type(caught.value) is ValueError
    return str(caught.value)


# --- round trips


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("validation", [True, False])
def test_a_saved_bank_loads_bit_for_bit(tmp_path: Path, make_bank: MakeBank, dtype: str, validation: bool) -> None:
    made = make_bank(clients=3, queries=7, classes=5, dtype=dtype)
    val = (made.val_scores, made.val_labels) if validation else (None, None)
    nested = {"task": "digits", "seed": "3", "shards": json.dumps([5, 6, 7]), "note": "two\nlines, ü"}
    bank = ScoreBank(made.test_scores, made.test_labels, *val, nested)
    bank.save(tmp_path / "bank.safetensors")
    loaded = ScoreBank.load(tmp_path / "bank.safetensors")
    for name in NAMES:
        before, after = getattr(bank, name), getattr(loaded, name)
        assert (before is None) == (after is None)
        if before is not None:
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)
    assert loaded.metadata == {**nested, "format": "1"}
    assert (loaded.clients, loaded.queries, loaded.classes) == (3, 7, 5)


def test_a_loaded_bank_saves_again_over_its_own_file(tmp_path: Path, make_bank: MakeBank) -> None:
    path = tmp_path / "bank.safetensors"
    made = make_bank()
    made.save(path)
    mapped = ScoreBank.load(path)
    mapped.save(path)  # reads what it replaces
    for bank in (mapped, ScoreBank.load(path)):
        assert bank.metadata == {**made.metadata, "format": "1"}
        for name in NAMES:
            np.testing.assert_array_equal(getattr(bank, name), getattr(made, name))


def test_arrays_that_are_not_contiguous_are_saved_as_they_read(tmp_path: Path, make_bank: MakeBank) -> None:
    made = make_bank(clients=4, queries=6, classes=3)
    bank = ScoreBank(made.test_scores[::-2, ::2], made.test_labels[::2])
    bank.save(tmp_path / "bank.safetensors")
    np.testing.assert_array_equal(ScoreBank.load(tmp_path / "bank.safetensors").test_scores, bank.test_scores)


def test_metadata_cannot_forge_another_format(tmp_path: Path) -> None:
    ScoreBank(even(), LABELS, metadata={"format": "99"}).save(tmp_path / "bank.safetensors")
    assert ScoreBank.load(tmp_path / "bank.safetensors").metadata["format"] == "1"


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_file_written_with_safetensors_alone_loads(tmp_path: Path, dtype: str) -> None:
    tensors = {**TENSORS, "test_scores": changed(1, 2, [0.5, 0.25, 0.125, 0.125], dtype)}
    bank = ScoreBank.load(write(tmp_path / "own.safetensors", tensors))
    np.testing.assert_array_equal(bank.test_scores, tensors["test_scores"])
    np.testing.assert_array_equal(bank.test_labels, LABELS)
    assert bank.val_scores is None


def test_a_header_of_any_length_loads_whatever_the_alignment(tmp_path: Path) -> None:
    entry = {
        "test_labels": {"dtype": "I64", "shape": [3], "data_offsets": [0, 24]},
        "test_scores": {"dtype": "F16", "shape": [1, 3, 3], "data_offsets": [24, 42]},
    }
    scores = np.array([[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]], dtype="float16")
    for padding in range(8):
        header = json.dumps({"__metadata__": FORMAT, **entry}).encode() + b" " * padding
        path = tmp_path / f"{padding}.safetensors"
        path.write_bytes(struct.pack("<Q", len(header)) + header + LABELS.tobytes() + scores.tobytes())
        bank = ScoreBank.load(path)
        np.testing.assert_array_equal(bank.test_scores, scores)
        np.testing.assert_array_equal(bank.test_labels, LABELS)


def test_one_client_two_classes_one_query_is_a_bank() -> None:
    bank = ScoreBank(np.array([[[0.0, 1.0]]], dtype="float32"), np.array([0]))
    assert (bank.clients, bank.queries, bank.classes) == (1, 1, 2)


# --- memory map


def bases(array: np.ndarray) -> list[object]:
    chain: list[object] = [array]
    while getattr(chain[-1], "base", None) is not None:
        chain.append(chain[-1].base)  # type: ignore[attr-defined]
    return chain


def test_loaded_arrays_are_read_only_views_of_one_memory_map(tmp_path: Path, make_bank: MakeBank) -> None:
    path = tmp_path / "bank.safetensors"
    make_bank().save(path)
    loaded = ScoreBank.load(path)
    for name in NAMES:
        array = getattr(loaded, name)
        assert any(isinstance(base, np.memmap) for base in bases(array)), name
        assert not array.flags.owndata
        assert not array.flags.writeable


def test_loaded_scores_are_the_bytes_on_disk_and_no_copy(tmp_path: Path) -> None:
    path = write(tmp_path / "bank.safetensors", TENSORS)
    bank = ScoreBank.load(path)
    one_hot = np.array([0.0, 0.0, 1.0, 0.0], dtype="<f4").tobytes()
    place = path.read_bytes().index(even().tobytes())
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(one_hot)
    np.testing.assert_array_equal(bank.test_scores[0, 0], [0.0, 0.0, 1.0, 0.0])


def test_blocks_cover_every_query_once_in_order(make_bank: MakeBank) -> None:
    bank = make_bank(queries=11)
    for size in (None, 1, 3, 11, 50):
        blocks = list(bank.blocks(size))
        assert [q for block in blocks for q in range(block.start, block.stop)] == list(range(11))
        assert max(block.stop - block.start for block in blocks) <= (size or 11)


def test_what_a_bank_remembers_is_computed_once_per_key() -> None:
    bank, calls = ScoreBank(even(), LABELS), []
    for key in ("a", "a", "b"):
        assert bank.remember(key, lambda key=key: calls.append(key) or key.upper()) == key.upper()
    assert calls == ["a", "b"]


# --- subsets


@given(st.permutations(range(5)), st.integers(1, 5), st.booleans())
def test_a_subset_is_the_chosen_clients_in_the_chosen_order(order: list[int], size: int, validation: bool) -> None:
    rng = np.random.default_rng(0)
    scores, val_scores = rng.dirichlet(np.ones(3), (2, 5, 4)).astype(np.float32)
    val = (val_scores, np.zeros(4, dtype=np.int64)) if validation else (None, None)
    bank = ScoreBank(scores, np.array([0, 1, 2, 0]), *val, {"task": "t"})
    chosen = order[:size]
    part = bank.subset(chosen)
    np.testing.assert_array_equal(part.test_scores, scores[chosen])
    assert part.test_labels is bank.test_labels
    if validation:
        np.testing.assert_array_equal(part.val_scores, val_scores[chosen])
        assert part.val_labels is bank.val_labels
    else:
        assert part.val_scores is None
    assert part.metadata == {"task": "t", "subset": json.dumps(chosen)}


@pytest.mark.parametrize(
    ("clients", "shared"),
    [
        ([0, 1, 2], True),
        ([3], True),
        ([1, 3, 5], True),
        (range(6), True),
        ((np.int64(2), np.int64(3)), True),
        ([2, 0], False),
        ([0, 1, 3], False),
        ([5, 4, 3], False),
        ([1, 3, 4, 6], False),
    ],
)
def test_evenly_spaced_clients_are_views_of_the_file(
    tmp_path: Path, make_bank: MakeBank, clients: list[int], shared: bool
) -> None:
    make_bank(clients=7).save(tmp_path / "bank.safetensors")
    bank = ScoreBank.load(tmp_path / "bank.safetensors")
    part = bank.subset(clients)
    for name in ("test_scores", "val_scores"):
        whole, some = getattr(bank, name), getattr(part, name)
        np.testing.assert_array_equal(some, whole[list(clients)])
        assert np.shares_memory(some, whole) == shared


def test_a_subset_says_what_it_was_taken_from_and_claims_no_checksum(tmp_path: Path, make_bank: MakeBank) -> None:
    made = make_bank(clients=6)
    bank = ScoreBank(made.test_scores, made.test_labels, metadata={"checksum": "abc", "seed": "1"})
    part = bank.subset([4, 2, 1])
    assert part.metadata == {"seed": "1", "subset": "[4, 2, 1]", "subset_of": "abc"}
    smaller = part.subset([2, 0])  # of the first bank, its clients 1 and 4
    assert smaller.metadata == {"seed": "1", "subset": "[1, 4]", "subset_of": "abc"}
    np.testing.assert_array_equal(smaller.test_scores, made.test_scores[[1, 4]])
    smaller.save(tmp_path / "part.safetensors")
    assert ScoreBank.load(tmp_path / "part.safetensors").metadata == {**smaller.metadata, "format": "1"}


def test_a_subset_remembers_nothing_of_the_whole() -> None:
    bank = ScoreBank(even(clients=3), LABELS)
    bank.remember("key", lambda: "whole")
    assert bank.subset([0, 1]).remember("key", lambda: "part") == "part"


@pytest.mark.parametrize("clients", [[], [0, 0], [2], [-1], [0.0], [True, 5], ["0"]])
def test_a_subset_of_clients_that_are_not_there_is_refused(clients: list[Any]) -> None:
    refusal(lambda: ScoreBank(even(), LABELS).subset(clients))


# --- atomic writes

HALF = """
import os, signal, sys
from pathlib import Path
from airchoir.files import write_atomically

def write(temporary):
    with open(temporary, "wb") as file:
        file.write(b"half")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

write_atomically(Path(sys.argv[1]), write)
"""


@pytest.mark.parametrize("old", [None, b"old content"])
def test_a_writer_killed_midway_leaves_the_final_name_as_it_was(tmp_path: Path, old: bytes | None) -> None:
    path = tmp_path / "bank.safetensors"
    if old is not None:
        path.write_bytes(old)
    killed = subprocess.run([sys.executable, "-c", HALF, str(path)], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (path.read_bytes() if path.exists() else None) == old
    assert not [other for other in tmp_path.iterdir() if other.suffix == ".safetensors" and other != path]


@pytest.mark.parametrize("old", [None, b"old content"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_writer_that_raises_leaves_no_litter(tmp_path: Path, old: bytes | None, error: type[BaseException]) -> None:
    path = tmp_path / "bank.safetensors"
    if old is not None:
        path.write_bytes(old)

    def fail(temporary: Path) -> None:
        temporary.write_bytes(b"half")
        raise error("disk full")

    with pytest.raises(error, match="disk full"):
        write_atomically(path, fail)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == ({} if old is None else {path.name: old})


def test_the_final_name_appears_only_after_every_byte_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "bank.safetensors"

    def whole(temporary: Path) -> None:
        assert temporary.parent == path.parent, "a rename is atomic within one folder only"
        temporary.write_bytes(b"whole")
        assert not path.exists()

    write_atomically(path, whole)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == b"whole"


def test_a_saved_bank_has_the_permissions_that_the_umask_grants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        ScoreBank(even(), LABELS).save(tmp_path / "bank.safetensors")
    finally:
        os.umask(before)
    assert (tmp_path / "bank.safetensors").stat().st_mode & 0o777 == 0o640


def test_saving_onto_a_folder_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    message = refusal(lambda: ScoreBank(even(), LABELS).save(tmp_path))
    assert str(tmp_path) in message
    assert "folder" in message
    assert not list(tmp_path.iterdir())


# --- bad arrays


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ([0.5, np.nan, 0.5, 0.0], "NaN in class 1"),
        ([1.5, 0.0, 0.0, -0.5], r"negative in class 3 \(-0.5\)"),
        ([0.0, 0.0, -np.inf, 0.0], "negative in class 2"),
        ([0.5, 0.5, 0.5, 0.0], "sum to 1.5"),
        ([0.0, 0.0, 0.0, 0.0], "sum to 0"),
        ([np.inf, 0.0, 0.0, 0.0], "sum to inf"),
        ([np.inf, -np.inf, 0.0, 0.0], "negative in class 1"),
        ([np.nan, -1.0, 0.0, 0.0], "NaN in class 0"),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("split", ["test", "val"])
def test_a_bad_row_is_named_by_split_client_and_query(row: list[float], what: str, dtype: str, split: str) -> None:
    good, bad = even(dtype=dtype), changed(1, 2, row, dtype)
    scores = (bad, good) if split == "test" else (good, bad)
    message = refusal(lambda: ScoreBank(scores[0], LABELS, scores[1], LABELS))
    assert re.match(rf"{split}_scores of client 1, query 2 .*{what}", message), message


def test_the_first_of_several_bad_rows_is_named() -> None:
    scores = even(3, 3)
    scores[1, 2] = scores[2, 0] = 0.0
    assert "client 1, query 2" in refusal(lambda: ScoreBank(scores, LABELS))


def test_a_bad_row_beyond_the_first_block_is_named_by_its_own_index() -> None:
    classes = 1000
    scores = even(2, 1200, classes)  # a block of the check holds 524 such rows
    scores[1, 1100] *= 2.0
    assert "client 1, query 1100" in refusal(lambda: ScoreBank(scores, np.zeros(1200, dtype=np.int64)))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 1e-3), ("float32", 1e-5)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_rows_may_miss_one_by_the_rounding_of_their_type_and_no_more(dtype: str, tolerance: float, sign: int) -> None:
    ulp = float(np.finfo(dtype).eps) / 2  # spacing just below 1/2
    steps = int(tolerance / ulp)
    inside, outside = (0.25 + sign * count * ulp / 2 for count in (steps * 2 // 2, steps * 2 + 4))
    assert abs(3 * 0.25 + inside - 1.0) < tolerance < abs(3 * 0.25 + outside - 1.0)
    ScoreBank(changed(0, 0, [0.25, 0.25, 0.25, inside], dtype), LABELS)
    assert "client 0, query 0" in refusal(lambda: ScoreBank(changed(0, 0, [0.25, 0.25, 0.25, outside], dtype), LABELS))


@pytest.mark.parametrize(
    ("scores", "what"),
    [
        (even()[0], r"\(3, 4\)"),
        (even()[None], r"\(1, 2, 3, 4\)"),
        (even(dtype="float64"), "float64"),
        (even().astype(">f4"), ">f4"),
        (np.ones((2, 3, 4), dtype=np.int64), "int64"),
        (even().tolist(), "list"),
        (even(clients=0), "0 clients"),
        (even(queries=0), "0 queries"),
        (even(classes=1), "1 class"),
        (even(classes=0), "0 class"),
    ],
)
def test_scores_of_wrong_rank_type_or_size_are_refused(scores: Any, what: str) -> None:
    labels = np.zeros(np.shape(scores)[1] if np.ndim(scores) == 3 else 3, dtype=np.int64)
    message = refusal(lambda: ScoreBank(scores, labels))
    assert message.startswith("test_scores ")
    assert re.search(what, message), message


@pytest.mark.parametrize(
    ("labels", "what"),
    [
        (np.array([0, 4, 1]), "query 1 is 4"),
        (np.array([0, 1, -1]), "query 2 is -1"),
        (np.array([0, 1, 2], dtype=np.int32), "int32"),
        (np.array([0, 1, 2], dtype=np.uint64), "uint64"),
        (np.array([0.0, 1.0, 2.0]), "float64"),
        (np.array([False, True, True]), "bool"),
        (np.array([0, 1]), r"\(2,\)"),
        (np.array([[0, 1, 2]]), r"\(1, 3\)"),
        (np.array([[0], [1], [2]]), r"\(3, 1\)"),
        ([0, 1, 2], "list"),
    ],
)
@pytest.mark.parametrize("split", ["test", "val"])
def test_labels_of_wrong_range_type_or_shape_are_refused(labels: Any, what: str, split: str) -> None:
    pair = (labels, LABELS) if split == "test" else (LABELS, labels)
    message = refusal(lambda: ScoreBank(even(), pair[0], even(), pair[1]))
    assert message.startswith(f"{split}_labels ")
    assert re.search(what, message), message


@pytest.mark.parametrize(
    ("val", "what"),
    [
        ((even(), None), "belong together"),
        ((None, LABELS), "belong together"),
        ((even(clients=3), LABELS), r"\(3, 4\)"),
        ((even(classes=5), LABELS), r"\(2, 5\)"),
    ],
)
def test_validation_scores_must_fit_the_test_scores(val: tuple[Any, Any], what: str) -> None:
    assert re.search(what, refusal(lambda: ScoreBank(even(), LABELS, *val)))


def test_validation_may_have_another_number_of_queries_and_another_type() -> None:
    assert ScoreBank(even(), LABELS, even(queries=2, dtype="float16"), LABELS[:2]).queries == 3


@pytest.mark.parametrize("metadata", [{"seed": 1}, {1: "seed"}, {"sizes": [1, 2]}])
def test_metadata_that_are_not_strings_are_refused(metadata: dict[Any, Any]) -> None:
    message = refusal(lambda: ScoreBank(even(), LABELS, metadata=metadata))
    assert "metadata" in message
    assert "JSON" in message


# --- bad files


@pytest.mark.parametrize(
    ("tensors", "what"),
    [
        ({"test_scores": even()}, "lacks test_labels"),
        ({"test_labels": LABELS}, "lacks test_scores"),
        ({}, "lacks test_labels, test_scores"),
        ({**TENSORS, "weights": LABELS}, "unknown weights"),
        ({**TENSORS, "val_scores": even()}, "belong together"),
        ({**TENSORS, "val_labels": LABELS}, "belong together"),
        ({**TENSORS, "val_scores": even(classes=5), "val_labels": LABELS}, r"\(2, 5\)"),
        ({**TENSORS, "test_scores": even(dtype="float64")}, "type F64"),
        ({**TENSORS, "test_scores": np.ones((2, 3, 4), dtype=np.int64)}, "int64"),
        ({**TENSORS, "test_labels": LABELS.astype(np.int32)}, "type I32"),
        ({**TENSORS, "test_labels": LABELS.astype(np.float32)}, "float32"),
        ({**TENSORS, "test_labels": LABELS.astype(np.uint64)}, "type U64"),
        ({**TENSORS, "test_labels": LABELS + 2}, "query 2 is 4"),
        ({**TENSORS, "test_scores": changed(1, 2, [np.nan] * 4)}, "client 1, query 2 hold NaN"),
        ({**TENSORS, "test_scores": even()[0]}, r"\(3, 4\)"),
        ({"test_scores": even(queries=0), "test_labels": LABELS[:0]}, "0 queries"),
        ({"test_scores": even(clients=0), "test_labels": LABELS}, "0 clients"),
        ({"test_scores": even(classes=1), "test_labels": LABELS * 0}, "1 class"),
    ],
)
def test_a_file_with_wrong_tensors_is_refused_by_name(tmp_path: Path, tensors: dict[str, Any], what: str) -> None:
    path = write(tmp_path / "bad.safetensors", tensors)
    message = refusal(lambda: ScoreBank.load(path))
    assert message.startswith(str(path))
    assert re.search(what, message), message


@pytest.mark.parametrize("metadata", [None, {}, {"task": "digits"}])
def test_another_safetensors_file_is_no_bank(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    path = write(tmp_path / "model.safetensors", TENSORS, metadata)
    message = refusal(lambda: ScoreBank.load(path))
    assert "no score bank" in message
    assert "format" in message


@pytest.mark.parametrize("version", ["2", "10", "1.1", "pt"])
def test_an_unknown_format_is_refused_with_the_advice_to_upgrade(tmp_path: Path, version: str) -> None:
    path = write(tmp_path / "new.safetensors", {**TENSORS, "future": LABELS}, {"format": version})
    message = refusal(lambda: ScoreBank.load(path))
    assert repr(version) in message
    assert "upgrade airchoir" in message


def test_every_truncation_of_a_bank_is_refused(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.safetensors", TENSORS).read_bytes()
    path = tmp_path / "cut.safetensors"
    for length in [*range(17), *range(17, len(whole), 13), len(whole) - 1]:
        path.write_bytes(whole[:length])
        message = refusal(lambda: ScoreBank.load(path))
        assert str(path) in message
        assert "not a whole safetensors file" in message


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"client,query,score\n0,0,0.5\n" * 20, id="text"),
        pytest.param(np.random.default_rng(0).bytes(4096), id="random"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\0" * 64, id="zeros"),
        pytest.param(b"PK\x03\x04" + b"\0" * 60, id="zip"),
        pytest.param(struct.pack("<Q", 5) + b"[1,2]", id="json list"),
        pytest.param(struct.pack("<Q", 9) + b'{"a":\n\n 1', id="broken json"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.safetensors"
    path.write_bytes(content)
    assert str(path) in refusal(lambda: ScoreBank.load(path))


@settings(deadline=None, derandomize=True, max_examples=150)
@given(data=st.data())
def test_a_corrupted_header_never_raises_anything_but_a_one_line_value_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "corrupt.safetensors"
    content = bytearray(write(path, TENSORS).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - len(even().tobytes()) - 25))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    caught: ValueError | None = None
    try:
        ScoreBank.load(path)
    except ValueError as error:
        caught = error
    if caught is not None:
        assert type(caught) is ValueError
        assert "\n" not in str(caught)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    assert "is a folder" in refusal(lambda: ScoreBank.load(tmp_path))
    assert "does not exist" in refusal(lambda: ScoreBank.load(tmp_path / "nothing.safetensors"))


# --- import: .npy and .npz


def save_npy(folder: Path, scores: Any, labels: Any) -> tuple[Path, Path]:
    np.save(folder / "scores.npy", scores)
    np.save(folder / "labels.npy", labels)
    return folder / "scores.npy", folder / "labels.npy"


def test_two_npy_files_read_under_a_banks_names(tmp_path: Path) -> None:
    arrays = read_arrays(*save_npy(tmp_path, even(dtype="float64"), LABELS))
    assert list(arrays) == ["test_scores", "test_labels"]
    np.testing.assert_array_equal(arrays["test_scores"], even(dtype="float64"))
    np.testing.assert_array_equal(arrays["test_labels"], LABELS)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("names", [NAMES, NAMES[:2]])
def test_an_npz_reads_with_a_banks_four_or_two_names(tmp_path: Path, save: Any, names: tuple[str, ...]) -> None:
    content = {name: LABELS if "labels" in name else even() for name in names}
    save(tmp_path / "bank.npz", **content)
    arrays = read_arrays(tmp_path / "bank.npz", None)
    assert set(arrays) == set(names)
    for name in names:
        np.testing.assert_array_equal(arrays[name], content[name])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"test_scores": even()}, "lacks test_labels"),
        ({"scores": even(), "labels": LABELS}, "lacks test_labels, test_scores"),
        ({**TENSORS, "extra": LABELS}, "unknown extra"),
        ({}, "lacks"),
    ],
)
def test_an_npz_with_other_names_is_refused(tmp_path: Path, content: dict[str, Any], what: str) -> None:
    np.savez(tmp_path / "bank.npz", **content)
    assert what in refusal(lambda: read_arrays(tmp_path / "bank.npz", None))


def test_labels_belong_beside_a_npy_and_inside_a_npz(tmp_path: Path) -> None:
    scores, labels = save_npy(tmp_path, even(), LABELS)
    np.savez(tmp_path / "bank.npz", **TENSORS)
    assert "without labels" in refusal(lambda: read_arrays(scores, None))
    assert "leave" in refusal(lambda: read_arrays(tmp_path / "bank.npz", labels))


def test_other_suffixes_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    scores, labels = save_npy(tmp_path, even(), LABELS)
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "folder.npz").mkdir()
    assert "neither .npy nor .npz" in refusal(lambda: read_arrays(tmp_path / "scores.csv", labels))
    assert "neither .npy nor .npz" in refusal(lambda: read_arrays(scores, tmp_path / "labels.csv"))
    assert "is a folder" in refusal(lambda: read_arrays(tmp_path / "folder.npy", labels))
    assert "is a folder" in refusal(lambda: read_arrays(tmp_path / "folder.npz", None))
    assert "does not exist" in refusal(lambda: read_arrays(tmp_path / "none.npy", labels))
    assert "does not exist" in refusal(lambda: read_arrays(scores, tmp_path / "none.npy"))
    assert "does not exist" in refusal(lambda: read_arrays(tmp_path / "none.npz", None))


def foreign_contents(folder: Path) -> dict[str, bytes]:
    np.save(folder / "a.npy", even())
    np.savez(folder / "a.npz", **TENSORS)
    np.save(folder / "o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(folder / "o.npz", allow_pickle=True, test_scores=np.array([None]), test_labels=LABELS)
    with zipfile.ZipFile(folder / "garbage.npz", "w") as archive:
        archive.writestr("test_scores.npy", "garbage")
        archive.writestr("test_labels", "garbage")
    npy, npz = (folder / "a.npy").read_bytes(), (folder / "a.npz").read_bytes()
    flipped = bytearray(npz)
    flipped[npz.index(even().tobytes())] ^= 255
    return {
        "text": b"0.25,0.25,0.25,0.25\n" * 6,
        "empty": b"",
        "random": np.random.default_rng(0).bytes(1000),
        "truncated header": npy[:50],
        "truncated data": npy[:-1],
        "truncated zip": npz[:-30],
        "corrupted zip": bytes(flipped),
        "pickled .npy": (folder / "o.npy").read_bytes(),
        "pickled .npz": (folder / "o.npz").read_bytes(),
        "zip of garbage": (folder / "garbage.npz").read_bytes(),
    }


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_foreign_truncated_and_pickled_arrays_are_refused_in_one_line(tmp_path: Path, suffix: str) -> None:
    _, labels = save_npy(tmp_path, even(), LABELS)
    contents = foreign_contents(tmp_path)
    other = ".npz" if suffix == ".npy" else ".npy"
    contents[f"a whole {other}"] = (tmp_path / f"a{other}").read_bytes()
    path = tmp_path / f"foreign{suffix}"
    for what, content in contents.items():
        path.write_bytes(content)
        message = refusal(lambda: read_arrays(path, labels if suffix == ".npy" else None))
        assert str(path) in message, what
        assert f"not a whole {suffix} file" in message, what
        if suffix == ".npy":
            assert str(path) in refusal(lambda: read_arrays(tmp_path / "scores.npy", path)), what


# --- import: conversion


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("source", ["float16", "float32", "float64", "longdouble", ">f2", ">f4", ">f8"])
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_probabilities_of_any_precision_become_a_bank(dtype: str, source: str, classes: int) -> None:
    exact = np.random.default_rng(0).dirichlet(np.full(classes, 0.3), (2, 200))
    converted = convert(exact.astype(source), dtype, logits=False)
    assert converted.dtype == dtype
    ScoreBank(converted, np.zeros(200, dtype=np.int64))  # checks that every row sums to 1
    coarse = max(np.finfo(dtype).eps, np.finfo(np.dtype(source)).eps)
    np.testing.assert_allclose(converted.astype(float), exact, rtol=float(2 * coarse), atol=1e-7)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(2, 6)),
        elements=st.floats(0.0, 1.0).filter(lambda x: x == 0.0 or x > 1e-3),
    )
)
def test_float16_probabilities_are_never_refused_as_float32_for_rounding_alone(weights: np.ndarray) -> None:
    weights[..., 0] += 0.01
    rounded = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float16)
    ScoreBank(convert(rounded, "float32", logits=False), np.zeros(rounded.shape[1], dtype=np.int64))


def test_a_bank_of_its_own_type_converts_to_rows_that_sum_to_one_and_keep_their_order(make_bank: MakeBank) -> None:
    scores = make_bank(dtype="float16").test_scores
    converted = convert(scores, "float32", logits=False)
    np.testing.assert_allclose(converted.sum(axis=-1, dtype=np.float64), 1.0, rtol=0.0, atol=1e-6)
    np.testing.assert_array_equal(converted.argmax(axis=-1), scores.argmax(axis=-1))


@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("row", "what"),
    [
        ([0.5, 0.5, 0.015625, 0.0], "sum to 1.01562"),
        ([0.5, 0.484375, 0.0, 0.0], "sum to 0.984375"),
        ([1.5, -0.5, 0.0, 0.0], "negative in class 1"),
        ([np.nan, 0.5, 0.5, 0.0], "NaN in class 0"),
        ([2.0, 3.0, 5.0, 0.0], "sum to 10"),
        ([np.inf, -np.inf, 0.0, 1.0], "negative in class 1"),
        ([0.0, 0.0, 0.0, 0.0], "sum to 0"),
    ],
)
def test_rows_that_are_really_wrong_stay_wrong_and_are_named(row: list[float], what: str, source: str) -> None:
    scores = changed(1, 2, row, source)
    for dtype in ("float16", "float32"):
        message = refusal(lambda dtype=dtype: ScoreBank(convert(scores, dtype, logits=False), LABELS))
        assert "client 1, query 2" in message
        assert what in message


def test_values_beyond_a_types_range_are_refused_without_a_warning() -> None:
    for value in (1e6, 1e300):
        scores = changed(0, 1, [value, 0.0, 0.0, 0.0], "float64")
        assert "client 0, query 1" in refusal(lambda s=scores: ScoreBank(convert(s, "float16", logits=False), LABELS))


def test_logits_become_the_softmax() -> None:
    logits = np.random.default_rng(1).normal(0.0, 5.0, (2, 3, 4))
    expected = [[[np.exp(v) / sum(np.exp(row)) for v in row] for row in rows] for rows in logits]
    np.testing.assert_allclose(convert(logits, "float32", logits=True), expected, rtol=2e-7)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    logits=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(2, 5)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    dtype=st.sampled_from(["float16", "float32"]),
)
def test_any_finite_logits_become_a_bank_that_prefers_the_largest(logits: np.ndarray, dtype: str) -> None:
    bank = ScoreBank(convert(logits, dtype, logits=True), np.zeros(logits.shape[1], dtype=np.int64))
    at_top = np.take_along_axis(bank.test_scores, logits.argmax(axis=-1)[..., None], axis=-1)[..., 0]
    np.testing.assert_array_equal(at_top, bank.test_scores.max(axis=-1))


def test_extreme_logits_become_one_hot_without_a_warning() -> None:
    logits = np.array([[[1e308, -1.7e308, 0.0], [-1e308, -1e308, -1.1e308], [-1e4, 0.0, 1e4]]])
    expected = [[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]]
    np.testing.assert_array_equal(convert(logits, "float32", logits=True), expected)


@pytest.mark.parametrize("source", [np.int64, np.int8, np.uint8])
def test_integer_arrays_are_read_as_numbers(source: type) -> None:
    one_hot = np.eye(3, dtype=source)[None]
    np.testing.assert_array_equal(convert(one_hot, "float16", logits=False), one_hot)
    np.testing.assert_allclose(
        convert(one_hot * 2, "float32", logits=True)[0, 0, 0], np.e**2 / (np.e**2 + 2), rtol=1e-7
    )
    assert "probabilities already" in refusal(lambda: convert(one_hot, "float32", logits=True))
    counts = np.full((1, 1, 3), 100, dtype=source)
    assert "sum to 300" in refusal(lambda: ScoreBank(convert(counts, "float32", logits=False), LABELS[:1]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logits_that_are_not_finite_are_named_by_client_and_query(value: float) -> None:
    logits = np.zeros((2, 3, 4))
    logits[1, 2, 0] = value
    assert "client 1, query 2" in refusal(lambda: convert(logits, "float32", logits=True))


@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize(
    "scores",
    [
        even().astype(complex),
        even().astype(object),
        even().astype(str),
        even().astype(bool),
        even().astype("m8[s]"),
        even()[0],
        even()[:, :, :0],
    ],
    ids=["complex", "object", "text", "bool", "timedelta", "rank 2", "no classes"],
)
def test_what_is_not_real_numbers_of_rank_three_is_refused(scores: np.ndarray, logits: bool) -> None:
    message = refusal(lambda: convert(scores, "float32", logits=logits))
    assert str(scores.dtype) in message
    assert str(scores.shape) in message


def test_a_device_is_refused_by_name() -> None:
    assert "/dev/null is no regular file" in refusal(lambda: ScoreBank.load("/dev/null"))
