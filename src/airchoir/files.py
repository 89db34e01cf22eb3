"""Files on disk: written whole or not at all; the arrays of a score bank, read and named [DESIGN, Interface]."""

import json
import os
import uuid
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

FORMAT = "1"
REQUIRED, OPTIONAL = {"test_scores", "test_labels"}, {"val_scores", "val_labels"}
"""The names of a bank's arrays."""
_DTYPES: dict[str, np.dtype[Any]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then rename it: a killed process leaves no half file."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.touch()
        mode = temporary.stat().st_mode  # what the user's umask grants; some writers make the file their own way
        write(temporary)
        temporary.chmod(mode)
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as error:
        if error.errno is not None and error.filename is None:  # a full disk does not say where
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file atomically: the same content gives the same bytes, which safetensors' own writer does not."""
    codes = {dtype: code for code, dtype in _DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    end = 0
    # The widest first: so all are aligned.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    for name, tensor in ordered:
        start, end = end, end + tensor.nbytes
        header[name] = {"dtype": codes[tensor.dtype], "shape": tensor.shape, "data_offsets": (start, end)}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:
            file.write(len(encoded).to_bytes(8, "little") + encoded)
            for _, tensor in ordered:
                file.write(np.ascontiguousarray(tensor, dtype=tensor.dtype.newbyteorder("<")).data)

    write_atomically(path, write)


def read_arrays(scores: Path, labels: Path | None) -> dict[str, NDArray[Any]]:
    """The arrays of a `.npz` with a bank file's names, or of two `.npy` files, named as in a bank file."""
    if scores.suffix == ".npz":
        if labels is not None:
            raise ValueError(f"{scores} is a .npz and brings its own labels; leave {labels} out")
        arrays = _read_npz(scores)
        _check_names(set(arrays), scores)
        return arrays
    if labels is None:
        raise ValueError(f"{scores} comes without labels; give a second .npy with one label per query")
    return {"test_scores": _read_npy(scores), "test_labels": _read_npy(labels)}


def _read_npy(path: Path) -> NDArray[Any]:
    if path.suffix != ".npy":
        raise ValueError(f"{path} is neither .npy nor .npz; save it with numpy.save")
    return _plain(path, lambda: np.lib.format.open_memmap(path, mode="r"))


def _read_npz(path: Path) -> dict[str, NDArray[Any]]:
    def read() -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    arrays[name.removesuffix(".npy")] = np.lib.format.read_array(member, allow_pickle=False)
        return arrays

    return _plain(path, read)


def _plain(path: Path, read: Callable[[], T]) -> T:
    """What `read` makes of an existing file that others wrote; whatever numpy trips over becomes one line."""
    _existing(path)
    try:
        return read()
    except OSError:  # the disk's own trouble is no fault of the content
        raise
    except Exception:
        remedy = f"make it again with numpy.save{'z' if path.suffix == '.npz' else ''}"
        raise ValueError(f"{path} is not a whole {path.suffix} file of plain numbers; {remedy}") from None


def _existing(path: Path) -> Path:
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a file")
    if not path.exists():
        raise ValueError(f"{path} does not exist; check the name")
    if not path.is_file():
        raise ValueError(f"{path} is no regular file; give the name of a file on a disk")
    return path


def read_tensors(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """The tensors of a safetensors file as views of a memory map, and its metadata."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(_existing(path), framework="numpy") as checked:
            metadata = dict(checked.metadata() or {})
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file ({error}); copy or make it again") from None
    if "format" not in metadata:
        raise ValueError(f"{path} is no score bank: its metadata lack `format`; write one with ScoreBank.save")
    if metadata["format"] != FORMAT:
        raise ValueError(
            f"{path} has format {metadata['format']!r}, this airchoir reads {FORMAT!r}; upgrade airchoir if it is a bank"
        )
    with open(path, "rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(header_bytes))
    header.pop("__metadata__", None)
    _check_names(set(header), path)
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + header_bytes).view(np.ndarray)
    return {name: _tensor(data, entry, f"{path}: {name}") for name, entry in header.items()}, metadata


def _tensor(data: NDArray[np.uint8], entry: dict[str, Any], where: str) -> NDArray[Any]:
    if entry["dtype"] not in _DTYPES:
        raise ValueError(f"{where} has type {entry['dtype']}; scores are F16 or F32 and labels I64")
    start, end = entry["data_offsets"]
    return data[start:end].view(_DTYPES[entry["dtype"]]).reshape(entry["shape"])


def _check_names(names: set[str], path: Path) -> None:
    missing, unknown = sorted(REQUIRED - names), sorted(names - REQUIRED - OPTIONAL)
    if missing or unknown:
        complaint = f"lacks {', '.join(missing)}" if missing else f"has unknown {', '.join(unknown)}"
        allowed = ", ".join(sorted(REQUIRED | OPTIONAL))
        raise ValueError(f"{path} {complaint}; a score bank holds {allowed} (val_ is optional)")
