"""Small score banks that look like real ones: clients err together on hard queries, and each in its own way."""

import sys
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from airchoir import ScoreBank


def synthesise(
    *, clients: int = 5, queries: int = 60, classes: int = 4, seed: int = 0, skill: float = 2.0, dtype: str = "float32"
) -> ScoreBank:
    rng = np.random.default_rng(seed)

    def split(size: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, classes, size)
        logits = rng.normal(0.0, 1.0, (size, classes)) + rng.normal(0.0, 1.5, (clients, size, classes))
        logits[:, np.arange(size), labels] += skill
        scores = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return (scores / scores.sum(axis=-1, keepdims=True)).astype(dtype), labels.astype(np.int64)

    scores, labels = split(queries)
    val_scores, val_labels = split(queries)
    return ScoreBank(scores, labels, val_scores, val_labels, {"task": "synthetic", "seed": str(seed)})


@pytest.fixture
def make_bank() -> Callable[..., ScoreBank]:
    """A function that makes a bank of `clients`, `queries`, `classes`, `seed`, `skill`, `dtype`."""
    return synthesise


@cache
def trained(seed: int) -> ScoreBank:
    from airchoir.tasks.digits import Digits
    from airchoir.training import train

    return train(Digits(), seed=seed)


@pytest.fixture(scope="session")
def digits_bank() -> Callable[[int], ScoreBank]:
    """A function that trains 20 clients on the digits with a seed, once per session."""
    return trained


@pytest.fixture
def without_sklearn(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if scikit-learn were not installed."""
    for name in ["sklearn", *(name for name in sys.modules if name.startswith("sklearn."))]:
        monkeypatch.setitem(sys.modules, name, None)
