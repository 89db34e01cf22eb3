"""Score banks that look like trained ones: clients share the hard queries and err on their own as well."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airchoir import ScoreBank

SEED = 20


@dataclass(frozen=True)
class Difficulty:
    """How the logits of a query arise; all in units of a logit."""

    skill: float
    """What the truth gains where a query is easy."""
    ease: tuple[float, float]
    """The Beta law of how easy a query is, for all clients alike."""
    shared: float
    """Noise that all clients see: wrong answers they agree on."""
    own: float
    """Noise of a client of average skill."""


DIFFICULTY = {
    10: Difficulty(skill=8.0, ease=(2.0, 1.0), shared=1.2, own=1.2),
    100: Difficulty(skill=10.0, ease=(1.0, 1.0), shared=1.5, own=1.5),
}
"""20 clients: 10 classes 0.77 to 0.87 alone and 0.92 together; 100 classes 0.39 to 0.52 alone and 0.60 together."""


def synthesise(
    *, queries: int = 10_000, classes: int = 10, clients: int = 20, seed: int = SEED, dtype: str = "float32"
) -> ScoreBank:
    """A bank of softmax scores; the same for the same arguments."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, queries, classes, clients]))
    law = DIFFICULTY[classes]
    labels = rng.integers(0, classes, queries)
    common = law.shared * rng.standard_normal((queries, classes), dtype=np.float32)
    common[np.arange(queries), labels] += law.skill * rng.beta(*law.ease, queries)
    scores = np.empty((clients, queries, classes), dtype=dtype)
    for client, own in enumerate(law.own * rng.uniform(0.8, 1.4, clients)):
        noise = rng.standard_normal(common.shape, dtype=np.float32)
        scores[client] = _softmax(common + np.float32(own) * noise)
    return ScoreBank(scores, labels, metadata={"task": "synthetic", "seed": str(seed)})


def _softmax(logits: NDArray[Any]) -> NDArray[Any]:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)
