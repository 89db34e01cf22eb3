"""simulate(): independent repeats of every query, with standard errors. One aggregate draw has the law of many.

The bound is the random numbers, about one float32 normal per query and class. Every stream is keyed by (repeat, block of
queries), so the numbers depend neither on the memory limit nor on how many threads share the work.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airchoir._types import Float, Labels, Present, Sums, Symbols
from airchoir.bank import ScoreBank
from airchoir.exact import Progress, with_costs
from airchoir.link import Link
from airchoir.metrics import Estimate, count, per_class_f1
from airchoir.scheme import Scheme

_STREAM_QUERIES = 4096
"""Queries that share one random stream; part of what a seed means, so never a setting."""


def simulate(
    scheme: Scheme,
    bank: ScoreBank,
    *,
    repeats: int = 200,
    seed: int = 0,
    workers: int = 1,
    memory_mb: float = 256.0,
    progress: Progress | None = None,
) -> Estimate:
    """Mean metrics over independent repeats, their standard deviation over repeats and their standard errors.

    `workers` threads share the repeats; together they stay within about `memory_mb`. Neither changes a digit.
    """
    check_repeats(repeats)
    if not (isinstance(workers, int | np.integer) and workers >= 1):
        raise ValueError(f"workers must be a whole number >= 1, got {workers!r}; it is the number of threads")
    if not memory_mb > 0.0:
        raise ValueError(f"memory_mb must be > 0, got {memory_mb!r}; 256 is the default")
    link = scheme.link(bank)
    report = progress or (lambda done, total: None)
    hits, decided = np.zeros((repeats, bank.classes)), np.zeros((repeats, bank.classes))
    with ThreadPoolExecutor(workers) as pool:
        for index, block in enumerate(bank.blocks(_STREAM_QUERIES)):
            prepared = _Block(scheme, link, bank, block, _rows(link, memory_mb / workers)).prepare()

            def run(repeat: int, prepared: _Block = prepared, index: int = index) -> tuple[Float, Float]:
                return prepared.run(_stream(seed, repeat, index))

            for repeat, (block_hits, block_decided) in enumerate(pool.map(run, range(repeats))):
                hits[repeat] += block_hits
                decided[repeat] += block_decided
            report(block.stop, bank.queries)
    support = np.bincount(bank.test_labels, minlength=bank.classes).astype(np.float64)
    return with_costs(_estimate(hits, decided, support), scheme, link)


def check_repeats(repeats: int) -> None:
    """A ValueError unless there are at least two repeats."""
    if not (isinstance(repeats, int | np.integer) and repeats >= 2):
        raise ValueError(f"repeats must be a whole number >= 2, got {repeats!r}; a standard error needs two runs")


def _stream(seed: int, repeat: int, block: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(repeat, block))))


def _rows(link: Link, memory_mb: float) -> int:
    """How many queries a thread may hold at once: symbols, their scores and a few rows of sums, in float64."""
    fitting = memory_mb * 1e6 / (8 * link.classes * (2 * len(link.roster) + 4))
    return max(1, int(min(fitting, _STREAM_QUERIES)))


@dataclass(frozen=True, eq=False)
class _Block:
    """A block of queries that share a random stream, worked through `rows` queries at a time.

    What repeats have in common is computed once where it fits: the sums if everyone takes part, else the symbols.
    """

    scheme: Scheme
    link: Link
    bank: ScoreBank
    block: slice
    rows: int

    def run(self, rng: np.random.Generator) -> tuple[Float, Float]:
        """T_c and D_c of one repeat of the block."""
        queries = self.block.stop - self.block.start
        present = self.link.participation.draw(queries, rng)
        decisions = [self._decide(part, present[:, part], rng) for part in self._parts(queries)]
        hits, decided, _ = count(self.labels, np.concatenate(decisions), self.link.classes)
        return hits, decided

    @cached_property
    def labels(self) -> Labels:
        return np.asarray(self.bank.test_labels[self.block])

    @cached_property
    def full_sums(self) -> Sums:
        """The sums of a scheme in which everyone takes part."""
        queries = self.block.stop - self.block.start
        everyone = np.ones((len(self.link.roster), queries), dtype=bool)
        return np.concatenate([self._sums(part, everyone[:, part]) for part in self._parts(queries)])

    @cached_property
    def symbols(self) -> Symbols:
        """The symbols of a block that fits into memory whole."""
        return self._encode(slice(0, self.block.stop - self.block.start))

    def prepare(self) -> "_Block":
        """The block with what its repeats share in place, so that threads only read it."""
        if self.link.participation.certain:
            _ = self.full_sums
        elif self._fits():
            _ = self.symbols
        return self

    def _fits(self) -> bool:
        return self.rows >= self.block.stop - self.block.start

    def _parts(self, queries: int) -> Iterator[slice]:
        for start in range(0, queries, self.rows):
            yield slice(start, min(start + self.rows, queries))

    def _decide(self, part: slice, present: Present, rng: np.random.Generator) -> Labels:
        sums = self.full_sums[part] if self.link.participation.certain else self._sums(part, present)
        noise = rng.standard_normal(sums.shape, dtype=np.float32)
        noise_std = np.sqrt(self.scheme.access.noise_variance(present, self.link))
        return self.scheme.rule.decide(sums + noise_std[:, None] * noise)

    def _sums(self, part: slice, present: Present) -> Sums:
        """The noiseless sums, rounded as the server does (see `Access.collect`)."""
        symbols = self.symbols[:, part] if self._fits() else self._encode(part)
        return np.round(self.scheme.access.sums(symbols, present), 12)

    def _encode(self, part: slice) -> Symbols:
        queries = slice(self.block.start + part.start, self.block.start + part.stop)
        return self.scheme.rule.encode(self.bank.test_scores[self.link.roster, queries])


def _estimate(hits: Float, decided: Float, support: Float) -> Estimate:
    repeats = len(hits)
    f1 = np.stack([per_class_f1(h, d, support) for h, d in zip(hits, decided, strict=True)])
    macro, accuracy = f1.mean(axis=1), hits.sum(axis=1) / support.sum()
    return Estimate(
        macro_f1=float(macro.mean()),
        macro_f1_std=float(macro.std(ddof=1)),
        macro_f1_se=float(macro.std(ddof=1) / np.sqrt(repeats)),
        accuracy=float(accuracy.mean()),
        accuracy_std=float(accuracy.std(ddof=1)),
        accuracy_se=float(accuracy.std(ddof=1) / np.sqrt(repeats)),
        per_class_f1=f1.mean(axis=0),
        per_class_f1_std=f1.std(axis=0, ddof=1),
        hits=hits.mean(axis=0),
        decided=decided.mean(axis=0),
        draws=repeats,
    )
