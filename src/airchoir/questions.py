"""When two rows are the same question, the noise that belongs to each, and the count of those that were answered.

What a question is: the row's own bytes. For arrays of numbers they are the numbers' bytes, to the last bit, with dtype and
shape; for sparse rows the sorted columns and values that are not zero. Text is its UTF-8. Cells of object arrays, and
columns of frames that hold no plain numbers, count with their type: numbers, text, bytes, None, lists, tuples, dicts and
arrays as they are, anything else by its pickle. A frame's columns count with their names and dtypes. So rows that any model
could tell apart are different questions; the same number as float32 and as float64 makes two.
"""

import pickle
import secrets
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from scipy import sparse

from airchoir.privacy.ledger import BudgetExceeded, Mechanism

_PLAIN = "biufcmM"
"""Kinds of dtypes whose values are their bytes."""
_PICKLE_PROTOCOL = 5


@dataclass(frozen=True)
class Secret:
    """What keys the noise. Whoever knows it can take the noise away: it belongs to the clients, never to the server."""

    key: bytes

    @classmethod
    def draw(cls, random_state: int | np.random.RandomState | None) -> "Secret":
        """From the operating system for None; from an integer or a numpy RandomState, both for experiments alone."""
        if random_state is None:
            return cls(secrets.token_bytes(32))
        if isinstance(random_state, np.random.RandomState):
            return cls(random_state.bytes(32))
        if not isinstance(random_state, int | np.integer) or isinstance(random_state, bool):
            raise ValueError(f"random_state must be None, an integer or a numpy RandomState, got {random_state!r}")
        return cls(blake2b(str(int(random_state)).encode(), digest_size=32, person=b"airchoir-seed").digest())

    def rng(self, purpose: str) -> np.random.Generator:
        """The generator for what is drawn once, such as shards; it says nothing of the noise."""
        return generator(blake2b(purpose.encode(), key=self.key, digest_size=32, person=b"airchoir-once").digest())

    def questions(self, X: Any) -> list[bytes]:
        """One keyed digest per row, [Aumasson 2013, BLAKE2, 2.9]: equal for equal rows, and a fresh 256 bits for any other."""
        header, rows = row_bytes(X)
        start = blake2b(key=self.key, digest_size=32, person=b"airchoir-noise")
        start.update(len(header).to_bytes(8, "little") + header)
        return [_absorbed(start, row) for row in rows]


def generator(digest: bytes) -> np.random.Generator:
    """The generator that a digest keys, all its bits used."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest, "big"), pool_size=8)))


def _absorbed(start: Any, row: Any) -> bytes:
    absorbed = start.copy()
    absorbed.update(row)
    return cast(bytes, absorbed.digest())


def container(X: Any) -> Any:
    """X as rows can be taken from it: frames and series as they are, sparse matrices in one canonical form, else an array.

    Whole numbers in lists become float64, exactly, as they would beside others.
    """
    if is_frame(X) or is_series(X):
        return X
    if sparse.issparse(X):
        rows = X.tocsr(copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return rows
    rows = np.asarray(X)
    if not hasattr(X, "dtype") and rows.dtype.kind in "biu" and np.abs(rows).max(initial=0) <= 2**53:
        return rows.astype(np.float64)  # a list's type depends on what else is in the batch
    return rows


def is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars frame."""
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_column"))


def is_series(X: Any) -> bool:
    """Whether X is a pandas or polars series."""
    return hasattr(X, "to_numpy") and hasattr(X, "name") and not hasattr(X, "columns")


def row_bytes(X: Any) -> tuple[bytes, Iterator[Any]]:
    """What all rows of a `container` have in common, and the bytes of each: together they tell any two rows apart."""
    if is_frame(X):
        names = list(X.columns)
        columns = [X.iloc[:, j] if hasattr(X, "iloc") else X.get_column(name) for j, name in enumerate(names)]
        return _columns(names, columns)
    if is_series(X):
        return _columns([""], [X])
    if sparse.issparse(X):
        return _cell(["csr", X.dtype.str, X.shape[1]]), _sparse_rows(X)
    if X.ndim == 0:
        raise ValueError(f"X must hold one row per sample, got a single {X.dtype}; give a list or an array")
    if _is_plain(X.dtype):
        rows = np.ascontiguousarray(X).reshape(len(X), -1).view(np.uint8) if X.size else np.zeros((len(X), 0), np.uint8)
        return _cell(["array", X.dtype.str, *X.shape[1:]]), iter(rows)
    return _cell(["cells", *X.shape[1:]]), map(_cell, X.tolist())


def _is_plain(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in _PLAIN and dtype.itemsize <= 8 + 8 * (dtype.kind == "c")


def _sparse_rows(X: Any) -> Iterator[bytes]:
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[start:stop].astype(np.int64).tobytes() + X.data[start:stop].tobytes()


def _columns(names: list[Any], columns: list[Any]) -> tuple[bytes, Iterator[bytes]]:
    """Column by column: numbers of a fixed width side by side, everything else as cells of their own length."""
    parts: list[Callable[[int], bytes]] = []
    for column in columns:
        if _is_plain_column(column):
            parts.extend(_octets(values).__getitem__ for values in _plain_parts(column))
        else:
            parts.append([_framed(_cell(value)) for value in column.to_list()].__getitem__)
    samples = len(columns[0]) if columns else 0
    header = _cell(["frame", *names, *(_describe(column.dtype) for column in columns)])
    return header, (b"".join(part(row) for part in parts) for row in range(samples))


def _is_plain_column(column: Any) -> bool:
    """Whether a column's dtype, in whatever batch, is one of plain numbers."""
    if hasattr(column, "iloc"):
        return _is_plain(column.dtype)
    return bool((column.dtype.is_integer() or column.dtype.is_float()) and _is_plain(column[:0].to_numpy().dtype))


def _plain_parts(column: Any) -> list[Any]:
    """A column's numbers; for polars, where any may be missing, also which are."""
    if hasattr(column, "iloc"):
        return [column.to_numpy()]
    return [column.is_null().to_numpy(), column.fill_null(0).to_numpy()]


def _octets(values: Any) -> Any:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)


def _describe(dtype: Any) -> list[Any]:
    """A column's dtype with its categories: models may look at their codes."""
    categories: Any = getattr(dtype, "categories", None)
    return [str(dtype), list(categories) if hasattr(categories, "__len__") else None]


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(8, "little") + content


def _cell(value: Any) -> bytes:
    """Bytes that no other value has; equal values of the same type have the same."""
    kind = type(value)
    if kind in _SIMPLE:
        return _SIMPLE[kind](value)
    if kind is list or kind is tuple:
        return (b"l" if kind is list else b"t") + b"".join(_framed(_cell(item)) for item in value)
    if kind is dict:
        return b"d" + b"".join(_framed(_cell(item)) for pair in value.items() for item in pair)
    if isinstance(value, np.ndarray | np.generic) and _is_plain(value.dtype):
        return b"a" + _framed(_cell([value.dtype.str, list(np.shape(value))])) + value.tobytes()
    try:
        return b"p" + pickle.dumps(value, protocol=_PICKLE_PROTOCOL)
    except Exception:
        raise TypeError(
            f"a cell holds a {type(value).__name__}, which has no bytes to key its noise with; give numbers or text"
        ) from None


_SIMPLE: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: b"n",
    bool: lambda value: b"b%d" % value,
    int: lambda value: b"i%d" % value,
    float: lambda value: b"f" + struct.pack("<d", value),
    str: lambda value: b"s" + value.encode("utf-8", "surrogatepass"),
    np.str_: lambda value: b"s" + value.encode("utf-8", "surrogatepass"),
    bytes: lambda value: b"y" + value,
}
"""How to write down cells of these very types."""


@dataclass(frozen=True)
class PrivacySpent:
    """What was answered so far and what it cost every client together, at `delta`."""

    queries: int
    """Distinct rows."""
    epsilon: float
    delta: float
    read_without_noise: bool
    """Whether somebody looked at the noiseless sum of a choir with a promise: no server may."""


class AnswerLedger:
    """Counts the distinct questions answered and refuses those beyond `max_queries`, all of a call or none.

    The one mutable object of a fitted choir, safe to share between threads. It holds one-way digests of digests: nobody can
    make the noise from it. Its pickle is a ledger of its own, which counts on from there.
    """

    def __init__(self, mechanism: Mechanism, *, delta: float, max_queries: int | None = None) -> None:
        if max_queries is not None and not (isinstance(max_queries, int | np.integer) and max_queries >= 0):
            raise ValueError(f"max_queries must be None or a whole number >= 0, got {max_queries!r}")
        self.mechanism = mechanism
        self.delta = delta
        self.max_queries = max_queries
        self._answered: set[bytes] = set()
        self._read_without_noise = False
        self._lock = threading.Lock()

    @property
    def queries(self) -> int:
        """How many distinct questions were answered."""
        return len(self._answered)

    def charge(self, questions: list[bytes]) -> None:
        """Enter questions before they are transmitted, at no cost if asked before; BudgetExceeded where they do not fit."""
        marks = {blake2b(question, digest_size=16, person=b"airchoir-asked").digest() for question in questions}
        with self._lock:
            fresh = marks - self._answered
            if self.max_queries is not None and self.queries + len(fresh) > self.max_queries:
                raise BudgetExceeded(
                    f"{len(fresh)} more distinct rows would exceed max_queries={self.max_queries}, {self.queries} are "
                    f"answered; ask only rows that were answered before, or raise it and fit again"
                )
            self._answered |= fresh

    def mark_read_without_noise(self) -> bool:
        """Write down that the noiseless sum was read; whether this was the first time."""
        with self._lock:
            first, self._read_without_noise = not self._read_without_noise, True
        return first

    def spent(self) -> PrivacySpent:
        """The composed cost of all questions so far, by the mechanism's accountant, rounded up."""
        with self._lock:
            queries, read = len(self._answered), self._read_without_noise
        epsilon = self.mechanism.epsilon(self.delta, queries=queries) if queries else 0.0
        return PrivacySpent(queries, epsilon, self.delta, read)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {
                **{name: value for name, value in vars(self).items() if name != "_lock"},
                "_answered": set(self._answered),
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())
