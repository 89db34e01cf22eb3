"""Who holds what: the validation set and one shard per client."""

from dataclasses import dataclass

import numpy as np

from airchoir._types import Indices


@dataclass(frozen=True, eq=False)
class Split:
    """Indices into the training set: every example is in the validation set or in exactly one shard."""

    validation: Indices
    shards: list[Indices]


def split(examples: int, clients: int, *, seed: int) -> Split:
    """Shuffled once; the last 10 % validate, the rest is cut into equal shards [METHOD, Setting].

    >>> [len(shard) for shard in split(100, 4, seed=0).shards]
    [23, 23, 22, 22]
    """
    training = examples - examples // 10
    if not 1 <= clients <= training:
        raise ValueError(
            f"clients must be from 1 to {training}, the examples left for training, got {clients}; no shard may be empty"
        )
    order = np.random.default_rng(seed).permutation(examples)
    return Split(validation=order[training:], shards=np.array_split(order[:training], clients))
