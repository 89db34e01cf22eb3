"""How fast is the whole of the paper's table 1, four tasks with five banks each, loading and calibration included?

5 methods x epsilon in {infinity, 1}, everyone taking part; CIFAR-10, CIFAR-100, Fashion-MNIST and IMDB by the size of their
test sets. Ours is exact. Rival: the literal path of `scheme`, ONE draw per cell. Wanted: 5 times less CPU time. Beside them,
without a rival: what the intervals of the differences between methods cost on top.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from airchoir import Estimate, Scheme, ScoreBank
from airchoir.experiments import bootstrap
from airchoir.experiments.choirs import Choir
from airchoir.experiments.table1 import schemes, table1
from airchoir.metrics import macro_f1
from airchoir.scheme import answer
from benchmarks.answer import Answer, Sample
from benchmarks.banks import SEED, synthesise
from benchmarks.figure2 import LITERAL_BLOCK_BYTES
from benchmarks.timing import cpu_seconds

TASKS = {"CIFAR-10": (10_000, 10), "CIFAR-100": (10_000, 100), "Fashion-MNIST": (10_000, 10), "IMDB": (25_000, 2)}
"""Queries and classes."""
WANTED_SECONDS = 3.0


def answers(quick: bool) -> Iterator[Answer]:
    times = np.zeros((1 if quick else 5, len(TASKS), 3))
    with tempfile.TemporaryDirectory() as folder:
        for task, (queries, classes) in enumerate(TASKS.values()):
            for seed in range(len(times)):
                path = Path(folder) / "bank.safetensors"
                size = queries // (10 if quick else 1)
                bank = synthesise(queries=size, classes=classes, seed=SEED + 100 * task + seed, validation=size // 2)
                bank.save(path)
                times[seed, task, 0] = cpu_seconds(lambda path=path: exact(path))
                times[seed, task, 1] = cpu_seconds(lambda path=path: literal(path))
                times[seed, task, 2] = cpu_seconds(lambda path=path: intervals(path))
    ours, rival, further = times.sum(axis=0).T  # by task
    each = ", ".join(f"{name} {a:.2g} s, literal {b:.3g} s" for name, a, b in zip(TASKS, ours, rival, strict=True))
    banks = len(times)
    yield Answer(
        f"table 1, {len(TASKS)} tasks of {banks} bank(s), beside the literal path",
        Sample((float(ours.sum()),), "s"),
        Sample((float(rival.sum()),), "s"),
        ratio_wanted=5.0,
        note=each,
    )
    yield Answer(
        f"table 1, {len(TASKS)} tasks of {banks} bank(s)", Sample((float(ours.sum()),), "s"), limit=WANTED_SECONDS
    )
    yield Answer(
        f"its differences, {bootstrap.RESAMPLES} resamples of each test set",
        Sample((float(further.sum()),), "s"),
        note=", ".join(f"{name} {value:.2g} s" for name, value in zip(TASKS, further, strict=True)),
    )


def exact(path: Path) -> list[Estimate]:
    """The ten rows of one bank."""
    return [row.estimate for row in table1([ScoreBank.load(path)])]


def literal(path: Path) -> list[float]:
    """The same, each from one literal draw."""
    bank, rng = ScoreBank.load(path), np.random.default_rng(SEED)
    values = []
    for scheme in grid():
        link = scheme.link(bank)
        blocks = bank.blocks(max(1, LITERAL_BLOCK_BYTES // (8 * bank.clients * bank.classes)))
        labels = [answer(scheme, link, bank.test_scores[link.roster, block], rng) for block in blocks]
        values.append(macro_f1(bank.test_labels, np.concatenate(labels), bank.classes))
    return values


def intervals(path: Path) -> bootstrap.Resamples:
    """The resampled rows of one bank."""
    return bootstrap.resample(Choir("synthetic", (path,), (ScoreBank.load(path),)), grid())


def grid() -> list[Scheme]:
    """The ten rows' schemes."""
    return list(schemes(1e-6).values())
