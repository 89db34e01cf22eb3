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
    rival: float
    """What the class most like the truth gains at most."""
    shared: float
    """Noise that all clients see: wrong answers they agree on."""
    own: float
    """Noise of a client of average skill."""


DIFFICULTY = {
    2: Difficulty(skill=5.0, ease=(1.5, 0.5), rival=1.0, shared=1.6, own=0.7),
    10: Difficulty(skill=10.0, ease=(1.5, 0.6), rival=4.0, shared=1.3, own=1.6),
    100: Difficulty(skill=14.0, ease=(0.8, 1.0), rival=0.0, shared=1.2, own=2.6),
}
"""Set by our banks of IMDB, CIFAR-10 and CIFAR-100: alone 0.86 to 0.88, 0.82 to 0.84 and 0.40 to 0.45, together 0.88, 0.90 and
0.65; on CIFAR-10 3,076 distinct ballots (here 3,093)."""


def synthesise(
    *,
    queries: int = 10_000,
    classes: int = 10,
    clients: int = 20,
    seed: int = SEED,
    dtype: str = "float32",
    validation: int = 0,
) -> ScoreBank:
    """A bank of softmax scores, with as many `validation` queries; the same for the same arguments."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, queries, classes, clients]))
    skills = None
    splits = []
    for size in (queries, validation):
        if size > 0:
            scores, labels, skills = _split(size, classes, clients, rng, dtype, skills)
            splits += [scores, labels]
    return ScoreBank(*splits, metadata={"task": "synthetic", "seed": str(seed)})


def _split(
    queries: int, classes: int, clients: int, rng: np.random.Generator, dtype: str, skills: NDArray[Any] | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Scores, labels, and how noisy each client is: drawn with the first split and kept for the next."""
    law = DIFFICULTY[classes]
    labels = rng.integers(0, classes, queries)
    common = law.shared * rng.standard_normal((queries, classes), dtype=np.float32)
    common[np.arange(queries), labels] += law.skill * rng.beta(*law.ease, queries)
    common[np.arange(queries), labels ^ 1] += law.rival * rng.random(queries)
    if skills is None:
        skills = law.own * rng.uniform(0.95, 1.05, clients)
    scores = np.empty((clients, queries, classes), dtype=dtype)
    for client, own in enumerate(skills):
        noise = rng.standard_normal(common.shape, dtype=np.float32)
        scores[client] = _softmax(common + np.float32(own) * noise)
    return scores, labels, skills


def _softmax(logits: NDArray[Any]) -> NDArray[Any]:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)
