"""Who holds what: the validation set and one shard per client."""

import math
from dataclasses import dataclass

import numpy as np

from airchoir._types import Indices, Labels


@dataclass(frozen=True, eq=False)
class Split:
    """Indices into the training set: every example is in the validation set or in exactly one shard."""

    validation: Indices
    shards: list[Indices]


def split(examples: int, clients: int, *, seed: int, labels: Labels | None = None, skew: float | None = None) -> Split:
    """Shuffled once; the last 10 % validate, the rest is cut into equal shards [METHOD, Setting].

    With `skew` each class is shared out in proportions drawn from Dirichlet(skew, ..., skew) [Yurochkin 2019, Sec. 4]: the
    smaller it is, the fewer clients hold most of a class. `labels` are then those of the examples. The validation set is the
    same as without.

    >>> [len(shard) for shard in split(100, 4, seed=0).shards]
    [23, 23, 22, 22]
    """
    training = examples - examples // 10
    if not 1 <= clients <= training:
        raise ValueError(
            f"clients must be from 1 to {training}, the examples left for training, got {clients}; no shard may be empty"
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(examples)
    if skew is None:
        return Split(validation=order[training:], shards=np.array_split(order[:training], clients))
    check_skew(skew)
    if labels is None or len(labels) != examples:
        given = "none" if labels is None else f"{len(labels)}"
        raise ValueError(f"skewed shards need the labels of all {examples} examples, got {given}; give labels=")
    shards = _skewed(order[:training], labels, clients, skew=skew, rng=rng)
    return Split(validation=order[training:], shards=shards)


def stratified(labels: Labels, parts: int, *, rng: np.random.Generator) -> list[Indices]:
    """Disjoint parts of all examples, dealt out like cards class by class: sizes differ by at most one, in every class too.

    >>> [shard.tolist() for shard in stratified(np.array([0, 1, 0, 1]), 2, rng=np.random.default_rng(0))]
    [[1, 2], [0, 3]]
    """
    if not 1 <= parts <= len(labels):
        raise ValueError(f"n_clients must be from 1 to n_samples={len(labels)}, got {parts}; no shard may be empty")
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    return [np.sort(order[part::parts]) for part in range(parts)]


def check_skew(skew: float) -> None:
    """Refuse what is no parameter of a Dirichlet law."""
    if not 0.0 < skew < math.inf:
        raise ValueError(
            f"skew must be positive and finite, got {skew:g}; 0.3 is strong, 10 is mild, leave it out for none"
        )


def _skewed(order: Indices, labels: Labels, clients: int, *, skew: float, rng: np.random.Generator) -> list[Indices]:
    held: list[list[Indices]] = [[] for _ in range(clients)]
    for label in np.unique(labels[order]):
        members = order[labels[order] == label]
        cuts = np.round(np.cumsum(_proportions(clients, skew, rng))[:-1] * len(members)).astype(np.int64)
        for client, part in enumerate(np.split(members, cuts)):
            held[client].append(part)
    return _without_empty([np.concatenate(parts) for parts in held])


def _proportions(clients: int, skew: float, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.dirichlet(np.full(clients, skew))
    if np.isfinite(drawn).all() and abs(drawn.sum() - 1.0) < 1e-6:
        return drawn
    if skew > 1.0:  # too large to draw with: the law's limit, equal parts
        return np.full(clients, 1.0 / clients)
    return np.eye(clients)[rng.integers(clients)]  # too small: one client takes all


def _without_empty(shards: list[Indices]) -> list[Indices]:
    """Every empty shard gets one example of the one that is then the largest."""
    shards = list(shards)
    for client in range(len(shards)):
        if len(shards[client]) == 0:
            largest = max(range(len(shards)), key=lambda other: len(shards[other]))
            shards[client], shards[largest] = shards[largest][-1:], shards[largest][:-1]
    return shards
