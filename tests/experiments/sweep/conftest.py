"""Small banks for sweeps."""

from collections.abc import Callable

import numpy as np
import pytest

from airchoir import ScoreBank


@pytest.fixture(scope="session")
def synthetic() -> Callable[..., ScoreBank]:
    """A function that makes a bank of three classes from `seed`, `clients`, `queries`, and with or without `validation`."""

    def make(*, seed: int = 0, clients: int = 5, queries: int = 40, validation: bool = True) -> ScoreBank:
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 3, queries)
        scores = rng.dirichlet([1.0, 1.0, 1.0], (clients, queries)).astype(np.float32)
        val = {"val_scores": scores[:, :9], "val_labels": labels[:9]} if validation else {}
        return ScoreBank(scores, labels, **val, metadata={"task": "synthetic", "seed": str(seed)})

    return make
