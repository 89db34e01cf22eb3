"""Votes are small integers: solve every distinct pattern of counts once, exactly, with every client present or thinned.

A query's decision probabilities depend on its counts only through their multiset (the pattern), and within a pattern a class
depends only on its own count. A `cell` is such a (pattern, count) pair: some hundreds for 20 clients, whatever the number of
classes and queries.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from airchoir._types import Float, Indices, Labels, PerClass, Probabilities, Sums
from airchoir.participation import Participation
from airchoir.quadrature import grid, hazard, log_cdf, step

_REACH = 6.5
"""Standard deviations covered on either side of the counts, with 0.8 times the step in `quadrature`: error 9e-9."""
_BLOCK_BYTES = 1 << 20
_RARE = 2e-7
"""Below this expected number of participants one is as good as the law: a second one changes it by less than 1e-7."""
_LEAST_STD = 1.0 / 64.0
"""Counts are integers: noise this small never overturns one vote (probability 1e-446), so less noise changes nothing."""


@dataclass(frozen=True, eq=False)
class Ballots:
    """The vote counts of a set of queries, sorted into distinct patterns, cells and ballots (a truth with its counts)."""

    clients: int
    support: PerClass
    multiplicity: Float
    """(patterns, clients + 1): how many classes of the pattern have c votes."""
    cell_pattern: Indices
    cell_count: Indices
    weight: Float
    """(ballots): how many queries have this truth and these counts."""
    truth: Labels
    """(ballots)"""
    truth_cell: Indices
    """(ballots): the cell of the true class."""
    zero_cell: Indices
    """(ballots): the cell of the classes that got no vote (any cell where there is none)."""
    cell_zero: Indices
    """(cells): the same for the cell's pattern."""
    entry_ballot: Indices
    """(entries): the ballot; an entry is a class with votes."""
    entry_pair: Indices
    """(entries): a class with its cell, among the distinct pairs."""
    pairs: "Pairs"
    """A class with votes and its cell."""
    truths: "Pairs"
    """The true class and its cell."""
    query_pattern: Indices
    """(queries)"""

    @classmethod
    def of(cls, counts: NDArray[np.intp], labels: Labels, clients: int) -> "Ballots":
        """The ballots of `counts` (queries, classes), each row summing to `clients`."""
        queries, classes = counts.shape
        flat = np.arange(queries)[:, None] * (clients + 1) + counts
        histogram = np.bincount(flat.ravel(), minlength=queries * (clients + 1)).reshape(queries, clients + 1)
        patterns, query_pattern = _distinct_rows(histogram)
        cell_pattern, cell_count = np.nonzero(patterns)
        cell_at = np.zeros(patterns.shape, dtype=np.intp)
        cell_at[cell_pattern, cell_count] = np.arange(len(cell_pattern))

        keyed = np.column_stack([labels, counts])
        _, ballot_of = _distinct_rows(keyed)
        first = np.zeros(ballot_of.max() + 1, dtype=np.intp)
        first[ballot_of[::-1]] = np.arange(queries)[::-1]
        kept, truth, pattern = counts[first], labels[first], query_pattern[first]
        ballot, entry_class = np.nonzero(kept)
        entry_cell = cell_at[pattern[ballot], kept[ballot, entry_class]]
        weight = np.bincount(ballot_of).astype(np.float64)
        truth_cell = cell_at[pattern, kept[np.arange(len(kept)), truth]]
        pairs, entry_pair = Pairs.of(entry_class, entry_cell, weight[ballot])
        truths, _ = Pairs.of(truth, truth_cell, weight)
        return cls(
            clients=clients,
            support=np.bincount(labels, minlength=classes).astype(np.float64),
            multiplicity=patterns.astype(np.float64),
            cell_pattern=cell_pattern,
            cell_count=cell_count,
            weight=weight,
            truth=truth,
            truth_cell=truth_cell,
            zero_cell=cell_at[pattern, 0],
            entry_ballot=ballot,
            cell_zero=cell_at[cell_pattern, 0],
            entry_pair=entry_pair,
            pairs=pairs,
            truths=truths,
            query_pattern=query_pattern,
        )

    @cached_property
    def top(self) -> Indices:
        """(patterns): the highest count."""
        return self.clients - np.argmax(self.multiplicity[:, ::-1] > 0, axis=1)

    @cached_property
    def shortfall(self) -> Float:
        """(patterns, clients + 1): how many classes lie o votes below the top."""
        at = self.top[:, None] - np.arange(self.clients + 1)
        return np.where(at >= 0, np.take_along_axis(self.multiplicity, np.maximum(at, 0), axis=1), 0.0)

    def spread(self, cells: Float, counts: NDArray[np.intp]) -> Probabilities:
        """The full probability rows of the queries these ballots were made of."""
        table = np.zeros(self.multiplicity.shape)
        table[self.cell_pattern, self.cell_count] = cells
        return table[self.query_pattern[:, None], counts]


def vote_counts(sums: Sums, clients: int) -> NDArray[np.intp]:
    """The votes behind sums of one-hot symbols, whatever constant was added to all classes: votes sum to `clients`.

    >>> vote_counts(np.array([[0.5, -0.5]]), 3)
    array([[2, 1]])
    """
    missing = (clients - sums @ np.ones(sums.shape[1])) / sums.shape[1]
    return np.rint(sums + missing[:, None]).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct (class, cell) pairs in the order of classes, and how many queries hold each."""

    label: Indices
    cell: Indices
    weight: Float
    start: Indices
    """Where each class that occurs begins."""
    occurring: Indices

    @classmethod
    def of(cls, label: Indices, cell: Indices, weight: Float) -> tuple["Pairs", Indices]:
        """The pairs, and for every element which pair it is."""
        stride = int(cell.max()) + 1
        keys, pair = np.unique(label * stride + cell, return_inverse=True)
        occurring, start = np.unique(keys // stride, return_index=True)
        return cls(
            keys // stride,
            keys % stride,
            np.bincount(pair, weights=weight).astype(np.float64, copy=False),
            start,
            occurring,
        ), pair

    def add_to(self, total: Float, values: Float) -> None:
        """Add to each class of `total` (powers, classes) the weighted sum of its cells' `values` (powers, cells)."""
        total[:, self.occurring] += np.add.reduceat(values.take(self.cell, axis=1) * self.weight, self.start, axis=1)


def _distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """The distinct rows and, for each row, which one it is."""
    packed = np.ascontiguousarray(rows, dtype=np.min_scalar_type(int(rows.max())))
    keys = packed.view(np.dtype((np.void, packed.dtype.itemsize * packed.shape[1])))[:, 0]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], inverse


def solve(ballots: Ballots, noise_std: float, participation: Participation) -> Float:
    """The decision probability of a class in each cell, for noise_std > 0, over noise and participation."""
    noise_std = max(noise_std, _LEAST_STD)
    if participation.certain:
        return _solve_all_present(ballots, noise_std)
    return _solve_thinned(ballots, noise_std, participation)


def _solve_all_present(ballots: Ballots, noise_std: float) -> Float:
    """The quadrature of `quadrature`, on counts: one table row per shortfall below the top."""
    x = _nodes(ballots, 0.0)
    z = x + np.arange(ballots.clients + 1)[:, None] / noise_std
    log_phi = log_cdf(z)
    won = np.exp(ballots.shortfall @ log_phi) @ hazard(z, log_phi).T
    won /= np.einsum("uo,uo->u", won, ballots.shortfall)[:, None]
    probabilities: Float = won[ballots.cell_pattern, ballots.top[ballots.cell_pattern] - ballots.cell_count]
    return probabilities


def _solve_thinned(ballots: Ballots, noise_std: float, participation: Participation) -> Float:
    """Each class keeps a Binomial(c, p) share of its votes, independently: Phi and phi become binomial mixtures.

    The grid covers all counts. Where nobody takes part the noise decides evenly; if such rounds are drawn again, that term
    is taken out.
    """
    probability = participation.probability
    if participation.at_least == 1:
        probability = max(probability, _RARE / participation.clients)
    law = Participation(participation.clients, probability, participation.at_least)
    thinned = binomial(ballots.clients, probability)
    nodes = _covering_nodes(ballots, noise_std)
    won = np.zeros(ballots.multiplicity.shape)
    size = max(1, _BLOCK_BYTES // (8 * max(won.shape)))
    for x in (nodes[start : start + size] for start in range(0, len(nodes), size)):
        z = x - np.arange(ballots.clients + 1)[:, None] / noise_std
        cdf = np.maximum(thinned @ special.ndtr(z), 1e-300)
        density = thinned @ (np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))
        won += np.exp(ballots.multiplicity @ np.log(cdf)) @ (density / cdf).T
    won /= np.einsum("uc,uc->u", won, ballots.multiplicity)[:, None]
    if law.at_least == 1:
        classes = len(ballots.support)
        won = np.maximum(won - law.empty_probability / classes, 0.0) / (1.0 - law.empty_probability)
    probabilities: Float = won[ballots.cell_pattern, ballots.cell_count]
    return probabilities


def binomial(trials: int, probability: float) -> Float:
    """P(Binomial(c, p) = b) at [c, b], for c and b up to `trials`.

    >>> binomial(2, 0.5)
    array([[1.  , 0.  , 0.  ],
           [0.5 , 0.5 , 0.  ],
           [0.25, 0.5 , 0.25]])
    """
    table = np.zeros((trials + 1, trials + 1))
    table[0, 0] = 1.0
    for count in range(1, trials + 1):
        table[count] = (1.0 - probability) * table[count - 1]
        table[count, 1:] += probability * table[count - 1, :-1]
    return table


def _nodes(ballots: Ballots, span: float) -> Float:
    """Evenly spaced nodes from -reach to span + reach; their distance cancels, as probabilities sum to 1."""
    width = 0.8 * step(len(ballots.support))
    x = grid(_REACH, width)
    beyond = np.arange(1, math.ceil(span / width) + 1) * width
    return np.concatenate([x, x[-1] + beyond])


def _covering_nodes(ballots: Ballots, noise_std: float) -> Float:
    """Nodes that cover every count, in standard deviations; where the counts lie far apart, a window around each."""
    counts = np.arange(int(ballots.top.max()) + 1)
    if 1.0 / noise_std > 2.0 * _REACH:
        return (counts[:, None] / noise_std + _nodes(ballots, 0.0)).ravel()
    return _nodes(ballots, counts[-1] / noise_std)


@dataclass(frozen=True, eq=False)
class BallotTally:
    """The tally of one or more sets of ballots with their solved cells, without ever forming the probability rows."""

    parts: list[tuple[Ballots, Float]]

    @cached_property
    def support(self) -> PerClass:
        return np.sum([ballots.support for ballots, _ in self.parts], axis=0)

    @property
    def hits(self) -> PerClass:
        return self._hits[0]

    @property
    def hits_squared(self) -> PerClass:
        return self._hits[1]

    @property
    def decided(self) -> PerClass:
        return self._decided[0]

    @property
    def decided_squared(self) -> PerClass:
        return self._decided[1]

    @cached_property
    def _hits(self) -> Float:
        """(powers, classes): of the true classes' cells, and of their squares."""
        total = np.zeros((2, len(self.support)))
        for ballots, cells in self.parts:
            ballots.truths.add_to(total, np.stack([cells, cells * cells]))
        return total

    @cached_property
    def _decided(self) -> Float:
        """(powers, classes): every class of a ballot as if it had no vote, then the difference for those that have."""
        total = np.zeros((2, len(self.support)))
        for ballots, cells in self.parts:
            values = np.stack([cells, cells * cells])
            total += (values.take(ballots.zero_cell, axis=1) @ ballots.weight)[:, None]
            ballots.pairs.add_to(total, values - values.take(ballots.cell_zero, axis=1))
        return total

    def mean_squares(self, on_hits: PerClass, on_decided: PerClass) -> float:
        total = 0.0
        for ballots, cells in self.parts:
            extra = (cells - cells[ballots.cell_zero])[ballots.pairs.cell] * on_decided[ballots.pairs.label]
            mean = np.bincount(ballots.entry_ballot, weights=extra.take(ballots.entry_pair)).astype(
                np.float64, copy=False
            )
            mean += cells[ballots.zero_cell] * on_decided.sum()
            mean += on_hits[ballots.truth] * cells[ballots.truth_cell]
            total += float(ballots.weight @ mean**2)
        return total


def thinned_argmax(counts: NDArray[np.intp], clients: int, participation: Participation) -> Sums:
    """Decision probabilities without any noise: the first class with the most votes among those who take part.

    P(j wins with b votes) = P(X_j = b), all earlier classes below b, all later ones at most b. With b = 0 nobody takes part:
    such a round is drawn again, or answered by the first class.
    """
    pmf = binomial(clients, participation.probability)
    size = max(1, _BLOCK_BYTES // (8 * counts.shape[1] * (clients + 1)))
    blocks = [counts[start : start + size] for start in range(0, len(counts), size)]
    return np.concatenate([_thinned_argmax(block, pmf, participation) for block in blocks])


def _thinned_argmax(counts: NDArray[np.intp], pmf: Float, participation: Participation) -> Sums:
    at_most = np.cumsum(pmf, axis=1)
    below = np.concatenate([np.zeros((len(pmf), 1)), at_most[:, :-1]], axis=1)
    earlier = np.cumprod(below[counts], axis=1)
    earlier = np.concatenate([np.ones_like(earlier[:, :1]), earlier[:, :-1]], axis=1)
    later = np.cumprod(at_most[counts][:, ::-1], axis=1)[:, ::-1]
    later = np.concatenate([later[:, 1:], np.ones_like(later[:, :1])], axis=1)
    won = (pmf[counts] * earlier * later)[:, :, 1:].sum(axis=2)
    if participation.at_least == 1:
        return won / won.sum(axis=1, keepdims=True)
    won[:, 0] += participation.empty_probability
    return won
