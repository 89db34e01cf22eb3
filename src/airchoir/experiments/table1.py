"""Table 1 of the paper: five methods, without privacy and at epsilon = 1, everyone taking part."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir.bank import ScoreBank
from airchoir.channels.awgn import Awgn
from airchoir.exact import evaluate
from airchoir.experiments import Experiment, Progress, bootstrap, silent
from airchoir.experiments.choirs import Choir, check_any, measure, source
from airchoir.experiments.methods import APART, BELIEF, BEST, EPSILONS, METHODS, SNR_DB, VOTE, methods_of
from airchoir.experiments.table1_tables import Key, Result, difference_table, main_table, paper_table
from airchoir.experiments.table1_words import notes, summary
from airchoir.experiments.wording import rounded_up, share
from airchoir.metrics import Estimate, pool
from airchoir.privacy import Privacy
from airchoir.report.findings import Findings
from airchoir.scheme import Scheme

REFERENCE = VOTE
"""What the others are compared with."""


@dataclass(frozen=True, eq=False)
class Row:
    """One method under one promise, over all banks."""

    method: str
    scheme: Scheme
    estimate: Estimate

    @property
    def epsilon(self) -> float:
        return self.scheme.privacy.epsilon


def table1(
    banks: Sequence[ScoreBank], *, delta: float = 1e-6, progress: Callable[[int, int], None] | None = None
) -> list[Row]:
    """The ten rows, exactly."""
    report = progress or (lambda done, total: None)
    rows = []
    for (method, _), scheme in schemes(delta).items():
        rows.append(Row(method, scheme, pool([evaluate(scheme, bank) for bank in banks])))
        report(len(rows), len(EPSILONS) * len(METHODS))
    return rows


def schemes(delta: float, *, accountant: str = "paper", methods: Iterable[str] = METHODS) -> dict[Key, Scheme]:
    """The rows' schemes by method and epsilon, in the paper's order."""
    return {
        (method, epsilon): Scheme(*METHODS[method], Awgn(SNR_DB), Privacy(epsilon, delta, accountant=accountant))
        for epsilon in EPSILONS
        for method in methods
    }


def insights(rows: Sequence[Row], bank: ScoreBank) -> list[str]:
    """What a reader should take away, computed from the rows of a bank."""
    at = {(row.method, row.epsilon): row.estimate for row in rows}
    vote, belief, apart, best = (
        [at[method, epsilon] for epsilon in EPSILONS] for method in (VOTE, BELIEF, APART, BEST)
    )
    alone = np.mean(np.argmax(bank.test_scores, axis=-1) == bank.test_labels, axis=1)
    clients, sigma = bank.clients, vote[1].sigma
    stronger, weaker = ("Votes", "beliefs") if vote[1].macro_f1 > belief[1].macro_f1 else ("Beliefs", "votes")
    return [
        f"Together they know more: alone the {clients} clients are right {share(alone.min())} to "
        f"{share(alone.max())} of the time (mean {share(alone.mean())}), their vote {share(vote[0].accuracy)}.",
        f"The air adds for free: the choir takes {vote[0].channel_uses:.0f} channel uses a query where separate answers take "
        f"{apart[0].channel_uses:.0f}, for a macro-F1 of {share(vote[0].macro_f1)} against "
        f"{share(apart[0].macro_f1)}.",
        f"Privacy is shared as well: at epsilon = 1 the choir keeps a macro-F1 of {share(vote[1].macro_f1)}, separate "
        f"answers {share(apart[1].macro_f1)}, the best client {share(best[1].macro_f1)}.",
        f"The reason: the sum needs noise of {sigma:.2f}, so each client adds only {sigma / math.sqrt(clients):.2f}; a client "
        f"that is heard alone must add all {sigma:.2f} to an answer of size 1.",
        f"{stronger} stand noise better than {weaker} here: {share(vote[1].macro_f1)} against "
        f"{share(belief[1].macro_f1)} at epsilon = 1 (vote against belief).",
        _cost(next(row.scheme for row in rows if row.epsilon == 1.0 and row.method == VOTE), bank),
    ]


def _cost(scheme: Scheme, bank: ScoreBank) -> str:
    """What all answers about the test set cost together: at p = 1 they compose by mu = sqrt(2 T) / sigma."""
    delta = scheme.privacy.delta
    total = scheme.mechanism(bank).epsilon(delta, queries=bank.queries)
    return (
        f"Answers add up: epsilon = {scheme.privacy.epsilon:g} is the price of one query. All {bank.queries:,} answers "
        f"together cost each client epsilon = {rounded_up(total, 1)} at delta = {delta:g}."
    )


@dataclass(frozen=True)
class Table1(Experiment):
    """Five methods, without privacy and at epsilon = 1, everyone taking part: the paper's table 1."""

    name: ClassVar[str] = "table1"
    title: ClassVar[str] = "Table 1: five methods, with and without privacy"

    delta: float = 1e-6
    accountant: str = "paper"
    resamples: int = bootstrap.RESAMPLES
    """Of the test set, for the intervals of differences."""

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        results = list(self._results(choirs, progress))
        beside = paper_table(results)
        return Findings(
            name=self.name,
            title=self.title,
            summary=tuple(summary(results, EPSILONS)),
            tables=(main_table(results), difference_table(results), *([beside] if beside else [])),
            rows=tuple(row for result in results for row in result.rows()),
            notes=tuple(notes(results, EPSILONS)),
            source=source(),
        )

    def _results(self, choirs: Sequence[Choir], progress: Progress) -> Iterator[Result]:
        steps = len(EPSILONS) * len(METHODS) + 1  # the bootstrap is the last
        for index, choir in enumerate(choirs):
            grid = schemes(self.delta, accountant=self.accountant, methods=methods_of(choir))
            measured = {}
            for done, (key, scheme) in enumerate(grid.items(), start=1):
                measured[key] = measure(scheme, choir)
                progress(index * steps + done, len(choirs) * steps)
            resampled = bootstrap.resample(choir, list(grid.values()), resamples=self.resamples)
            places = {key: place for place, key in enumerate(grid)}
            differences = {}
            for key in grid:
                base = (REFERENCE, key[1])
                if key != base:
                    value = measured[key].pooled.macro_f1 - measured[base].pooled.macro_f1
                    differences[key] = resampled.difference(places[key], places[base], value)
            yield Result(choir, measured, differences, REFERENCE)
            progress((index + 1) * steps, len(choirs) * steps)
