"""From a task to a score bank: shard the data, fit one model per client, and write down what each says."""

import json
from collections.abc import Callable

import numpy as np

from airchoir import provenance
from airchoir.bank import ScoreBank, convert
from airchoir.tasks import Task
from airchoir.training.shards import split

Progress = Callable[[int, int], None]
"""Called with (clients fitted, clients in all)."""


def train(
    task: Task, *, clients: int = 20, seed: int = 0, split_seed: int = 0, progress: Progress | None = None
) -> ScoreBank:
    """The bank of `clients` models, each fitted on its own shard.

    `split_seed` decides who holds what, `seed` everything random in the fits.
    """
    report = progress or (lambda done, total: None)
    data = task.load()
    parts = split(len(data.train_labels), clients, seed=split_seed)
    seeds = np.random.SeedSequence(seed).generate_state(clients)
    test, validation = [], []
    for client, shard in enumerate(parts.shards):
        classify = task.fit(data.train_inputs[shard], data.train_labels[shard], seed=int(seeds[client]))
        test.append(classify(data.test_inputs))
        validation.append(classify(data.train_inputs[parts.validation]))
        report(client + 1, clients)
    return ScoreBank(
        test_scores=convert(np.stack(test), "float16", logits=False),
        test_labels=data.test_labels,
        val_scores=convert(np.stack(validation), "float16", logits=False),
        val_labels=data.train_labels[parts.validation],
        metadata={
            "task": task.name,
            "seed": str(seed),
            "split_seed": str(split_seed),
            "recipe": json.dumps(task.recipe()),
            "shard_sizes": json.dumps([len(shard) for shard in parts.shards]),
            "versions": json.dumps(provenance.versions(*task.packages)),
            "commit": provenance.commit(),
            "machine": provenance.machine(),
        },
    )
