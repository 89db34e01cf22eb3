"""Prepared data: a decoded data set as one `.npz`, for machines without a network or without `datasets`.

It holds `train_inputs`, `train_labels`, `test_inputs`, `test_labels` and `classes`. Images are uint8 (examples, height,
width, 3). Texts are their UTF-8 bytes, one after the other, beside `train_ends` and `test_ends`: where each one ends.
"""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airchoir.files import write_atomically
from airchoir.tasks import Data, Inputs

SUFFIX = ".npz"
_SPLITS = ("train", "test")


def write_prepared(data: Data, path: Path) -> None:
    """Write `data` to `path`, which should be called after its task: `cifar10.npz`."""
    if path.suffix != SUFFIX:
        raise ValueError(f"{path} must end in {SUFFIX}, as prepared data do")
    arrays: dict[str, NDArray[Any]] = {"classes": np.array(data.classes)}
    for split in _SPLITS:
        inputs: Inputs = getattr(data, f"{split}_inputs")
        arrays[f"{split}_labels"] = getattr(data, f"{split}_labels")
        if inputs.dtype == object:
            encoded = [text.encode() for text in inputs]
            arrays[f"{split}_ends"] = np.cumsum([len(text) for text in encoded], dtype=np.int64)
            inputs = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        arrays[f"{split}_inputs"] = inputs

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:  # an open file: savez would add its own suffix to a name
            np.savez_compressed(file, allow_pickle=False, **arrays)

    write_atomically(path, write)


def read_prepared(path: Path) -> Data:
    """The data set in a prepared file, checked."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no whole {SUFFIX} file ({error}); make it again") from None
    try:
        return Data(
            train_inputs=_inputs(arrays, "train"),
            train_labels=arrays["train_labels"].astype(np.int64),
            test_inputs=_inputs(arrays, "test"),
            test_labels=arrays["test_labels"].astype(np.int64),
            classes=int(arrays["classes"]),
        )
    except KeyError as error:
        raise ValueError(
            f"{path} is no prepared data set: it lacks {error.args[0].split()[0]}; make it again"
        ) from None


def _inputs(arrays: dict[str, NDArray[Any]], split: str) -> Inputs:
    inputs = arrays[f"{split}_inputs"]
    if f"{split}_ends" not in arrays:
        return inputs
    ends = arrays[f"{split}_ends"]
    flat = inputs.tobytes()
    starts = np.concatenate([[0], ends[:-1]])
    texts = np.empty(len(ends), dtype=object)
    texts[:] = [flat[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return texts
