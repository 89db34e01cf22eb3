"""ScoreBank: what every client said about a test set, with the labels; one safetensors file on disk [DESIGN, Interface]."""

import json
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from airchoir._types import Labels, Probabilities, Scores
from airchoir.files import FORMAT, OPTIONAL, REQUIRED, read_tensors, write_tensors
from airchoir.frameworks import Progress, class_labels, class_positions, count_rows, probabilities

T = TypeVar("T")

_ROW_TOLERANCE = {np.dtype("float16"): 1e-3, np.dtype("float32"): 1e-5}
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class ScoreBank:
    """Class probabilities of every client for every query of a test set, its labels, and the same for validation.

    Loading memory-maps the file: a bank larger than memory is read block by block. Every constructor checks names, types,
    shapes, ranges and row sums, and names the first bad place.
    """

    test_scores: Scores
    test_labels: Labels
    val_scores: Scores | None = None
    val_labels: Labels | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Provenance, as strings: task, seed, model, recipe, shard sizes, versions; nested values as JSON."""
    _remembered: dict[Hashable, Any] = field(default_factory=dict, repr=False, init=False)

    def __post_init__(self) -> None:
        strings = all(isinstance(item, str) for pair in self.metadata.items() for item in pair)
        if not strings:
            raise ValueError(f"metadata must map strings to strings, got {dict(self.metadata)!r}; write values as JSON")
        _check_split("test", self.test_scores, self.test_labels)
        if (self.val_scores is None) != (self.val_labels is None):
            raise ValueError("val_scores and val_labels belong together; give both or neither")
        if self.val_scores is not None and self.val_labels is not None:
            _check_split("val", self.val_scores, self.val_labels)
            if self.val_scores.shape[::2] != self.test_scores.shape[::2]:
                raise ValueError(
                    f"val_scores have (clients, classes) = {self.val_scores.shape[::2]}, test_scores "
                    f"{self.test_scores.shape[::2]}; both come from the same clients"
                )

    @property
    def clients(self) -> int:
        return self.test_scores.shape[0]

    @property
    def queries(self) -> int:
        return self.test_scores.shape[1]

    @property
    def classes(self) -> int:
        return self.test_scores.shape[2]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "ScoreBank":
        """The bank in a file, memory-mapped and checked."""
        path = Path(path)
        tensors, metadata = read_tensors(path)
        try:
            return cls(metadata=metadata, **tensors)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def from_models(
        cls,
        models: Sequence[Any],
        X: Any,
        y: Any,
        *,
        validation: tuple[Any, Any] | None = None,
        classes: Sequence[Any] | None = None,
        logits: bool | None = None,
        batch_size: int = 1024,
        dtype: str = "float32",
        metadata: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> "ScoreBank":
        """The bank of what `models` say about the samples X with labels y, and about `validation` = (X, y) where given.

        A model is a torch module, a path to an ONNX file, anything with `predict_proba`, or a function from a batch to
        rows of numbers; all are asked in batches of `batch_size`. `classes` are the labels of the columns, in order: by
        default those of y and of the models that know theirs (`classes_`), sorted, or 0, 1, ... where none does.
        `logits` says what torch modules, ONNX files and functions return; None tells it from each model's own rows.

        >>> def model(X):
        ...     return np.column_stack([X, 1.0 - X])
        >>> ScoreBank.from_models([model, model], np.array([0.25, 0.75]), [1, 0]).test_scores[0]
        array([[0.25, 0.75],
               [0.75, 0.25]], dtype=float32)
        """
        models = list(models)
        tensors: dict[str, NDArray[Any]] = {}
        splits = {"test": (X, y), **({} if validation is None else {"val": validation})}
        labels = class_labels(models, [truth for _, truth in splits.values()], classes)
        for split, (samples, truth) in splits.items():
            if not models or count_rows(samples) == 0:
                raise ValueError(
                    f"there are {len(models)} models and {count_rows(samples)} {split} samples; give some of both"
                )
            tensors[f"{split}_labels"] = _positions(truth, labels, split)
        for split, (samples, _) in splits.items():
            rows = probabilities(
                models, samples, classes=labels, logits=logits, batch_size=batch_size, progress=progress
            )
            tensors[f"{split}_scores"] = _stack(rows, dtype)
        named = {} if labels is None else {"classes": json.dumps(labels.tolist())}
        return cls(metadata={**named, **(metadata or {})}, **tensors)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bank; the final name appears only when every byte is on the disk."""
        write_tensors(Path(path), self.tensors(), {**self.metadata, "format": FORMAT})

    def tensors(self) -> dict[str, NDArray[Any]]:
        """What the file holds, by name."""
        tensors = {name: getattr(self, name) for name in sorted(REQUIRED | OPTIONAL)}
        return {name: value for name, value in tensors.items() if value is not None}

    def subset(self, clients: Sequence[int]) -> "ScoreBank":
        """The bank of some of the clients, in the order given: views of the scores where they are evenly spaced, else copies.

        The metadata name them under `subset` and what they were taken from under `subset_of` (its checksum, where it has
        one); all else in the metadata is about the bank they were taken from.
        """
        rows = _rows(clients, self.clients)
        words = {name: value for name, value in self.metadata.items() if name != "checksum"}
        first = json.loads(words["subset"]) if "subset" in words else range(self.clients)  # a subset of a subset
        words["subset"] = json.dumps([first[client] for client in clients])
        if "checksum" in self.metadata:
            words["subset_of"] = self.metadata["checksum"]
        val_scores = None if self.val_scores is None else self.val_scores[rows]
        return ScoreBank(self.test_scores[rows], self.test_labels, val_scores, self.val_labels, words)

    def blocks(self, queries: int | None = None) -> Iterator[slice]:
        """Slices of `queries` queries that cover the test set; by default what keeps a block's symbols in the cache."""
        size = queries or max(1, _BLOCK_BYTES // (8 * self.clients * self.classes))
        for start in range(0, self.queries, size):
            yield slice(start, min(start + size, self.queries))

    def remember(self, key: Hashable, compute: Callable[[], T]) -> T:
        """What `compute` returns, computed once per bank and key: a bank never changes."""
        if key not in self._remembered:
            self._remembered[key] = compute()
        return cast(T, self._remembered[key])


def _rows(clients: Sequence[int], known: int) -> slice | NDArray[np.intp]:
    """What takes these clients out of an array, without a copy where a slice can say it."""
    for client in clients:
        if not (isinstance(client, int | np.integer) and 0 <= client < known):
            raise ValueError(f"clients must be whole numbers in 0..{known - 1}, got {client!r}; number them from 0")
    if not 0 < len(set(clients)) == len(clients):
        raise ValueError(f"clients must be one or more and different, got {list(clients)}; a client has one voice")
    step = clients[1] - clients[0] if len(clients) > 1 else 1
    if list(clients) == list(range(clients[0], clients[-1] + 1, step)):
        return slice(clients[0], clients[-1] + 1, step)
    return np.asarray(clients, dtype=np.intp)


def convert(scores: NDArray[Any], dtype: str, *, logits: bool) -> Scores:
    """Scores (clients, queries, classes) in a bank's type; logits go through a softmax in float64.

    Probabilities that sum to 1 up to the rounding of their own type are divided by their sum, so that a finer type does not
    refuse them. All others keep what is wrong with them, and the bank's own check names the place.
    """
    if scores.ndim != 3 or scores.dtype.kind not in "fiu" or scores.shape[2] == 0:
        raise ValueError(
            f"scores must be real numbers of shape (clients, queries, classes), got {scores.dtype} {scores.shape}"
        )
    tolerance = _ROW_TOLERANCE.get(scores.dtype.newbyteorder("="), _ROW_TOLERANCE[np.dtype("float32")])
    converted = np.empty(scores.shape, dtype=dtype)
    for client, rows in enumerate(scores):
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is infinite, and refused
            converted[client] = _softmax(rows, client) if logits else _without_rounding(rows, tolerance)
    return converted


def _stack(rows: Iterator[Probabilities], dtype: str) -> Scores:
    """The rows of model after model as scores in a bank's type."""
    converted: list[Scores] = []
    for index, scores in enumerate(rows):
        if converted and scores.shape != converted[0].shape[1:]:
            raise ValueError(
                f"model {index} returns {scores.shape[1]} columns and model 0 {converted[0].shape[2]}; all must know the "
                f"same classes"
            )
        converted.append(convert(scores[None], dtype, logits=False))
    return np.concatenate(converted)


def _positions(truth: Any, classes: NDArray[Any] | None, split: str) -> Labels:
    """Labels as column numbers."""
    labels = np.asarray(truth)
    if classes is not None:
        labels = class_positions(labels, classes, f"{split}_labels")
    return labels.astype(np.int64)


def _without_rounding(rows: NDArray[Any], tolerance: float) -> NDArray[np.float64]:
    exact = rows.astype(np.float64)
    sums = exact.sum(axis=-1, keepdims=True)
    return np.divide(exact, sums, out=exact, where=np.abs(sums - 1.0) <= tolerance)


def _softmax(rows: NDArray[Any], client: int) -> NDArray[np.float64]:
    shifted = rows.astype(np.float64)
    if shifted.min(initial=1.0) >= 0.0 and np.all(np.abs(shifted.sum(axis=-1) - 1.0) <= 1e-3):
        raise ValueError(f"the logits of client {client} are probabilities already; leave --logits out")
    bad = np.flatnonzero(~np.isfinite(shifted).all(axis=-1))
    if len(bad):
        raise ValueError(f"logits of client {client}, query {bad[0]} are not finite; mend the model's output")
    shifted -= shifted.max(axis=-1, keepdims=True)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=-1, keepdims=True)
    return shifted


def _check_split(split: str, scores: NDArray[Any], labels: NDArray[Any]) -> None:
    for name, array in ((f"{split}_scores", scores), (f"{split}_labels", labels)):
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{name} must be a numpy array, got {type(array).__name__}; use numpy.asarray")
    if scores.ndim != 3 or scores.dtype not in _ROW_TOLERANCE:
        raise ValueError(
            f"{split}_scores must be float16 or float32 (clients, queries, classes), got {scores.dtype} {scores.shape}; "
            f"use .astype(float32) or .reshape"
        )
    clients, queries, classes = scores.shape
    if clients < 1 or queries < 1:
        raise ValueError(f"{split}_scores have {clients} clients and {queries} queries; a bank needs one of each")
    if classes < 2:
        raise ValueError(f"{split}_scores have {classes} class(es); deciding needs at least 2")
    if labels.shape != (queries,):
        raise ValueError(
            f"{split}_labels must have shape ({queries},), one for each query, got {labels.shape}; scores are (clients, "
            f"queries, classes), and one-hot labels need argmax"
        )
    if labels.dtype != np.int64:
        raise ValueError(f"{split}_labels must be int64, got {labels.dtype}; use .astype(int64)")
    bad = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(bad):
        raise ValueError(
            f"{split}_labels of query {bad[0]} is {labels[bad[0]]}; labels lie in 0..{classes - 1} for {classes} classes: "
            "number them from 0"
        )
    _check_rows(split, scores)


def _check_rows(split: str, scores: Scores) -> None:
    """Every row is non-negative and sums to 1; the first bad place is named."""
    clients, queries, classes = scores.shape
    tolerance, ones = _ROW_TOLERANCE[scores.dtype], np.ones(classes)
    size = max(1, _BLOCK_BYTES // (8 * classes))
    for client in range(clients):
        for start in range(0, queries, size):
            rows = scores[client, start : start + size].astype(np.float64)
            with np.errstate(invalid="ignore"):  # inf - inf in a row that is refused below
                bad = ~(np.abs(rows @ ones - 1.0) <= tolerance)
            if rows.min() < 0.0:
                bad |= (rows < 0.0).any(axis=1)
            if bad.any():
                query = int(np.argmax(bad))
                where = f"{split}_scores of client {client}, query {start + query}"
                raise ValueError(_row_complaint(where, rows[query], tolerance))


def _row_complaint(where: str, row: NDArray[np.float64], tolerance: float) -> str:
    if np.isnan(row).any():
        return f"{where} hold NaN in class {int(np.argmax(np.isnan(row)))}; mend the model's output"
    if (row < 0.0).any():
        worst = int(np.argmax(row < 0.0))
        return f"{where} are negative in class {worst} ({row[worst]:g}); give probabilities, or import logits with --logits"
    return f"{where} sum to {row.sum():.6g}, not to 1 within {tolerance:g}; give class probabilities"
