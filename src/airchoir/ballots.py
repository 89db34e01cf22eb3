"""Votes are small integers: solve every distinct pattern of counts once, exactly, with every client present or thinned.

A query's decision probabilities depend on its counts only through their multiset (the pattern), and within a pattern a class
depends only on its own count. A `cell` is such a (pattern, count) pair: some hundreds for 20 clients, whatever the number of
classes and queries.
"""

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from airchoir._types import Float, Indices, Labels, PerClass, Probabilities, Sums
from airchoir.participation import Participation
from airchoir.quadrature import grid, step

_REACH = 5.2
"""Standard deviations covered on either side of the top count where all are present, with 0.95 times the step in `quadrature`:
error below 2e-7."""
_THINNED_REACH = 6.5
"""The same on either side of the counts where they are thinned, with 0.8 times the step: error 9e-9."""
_BLOCK_BYTES = 1 << 20
_RARE = 2e-7
"""Below this expected number of participants one is as good as the law: a second one changes it by less than 1e-7."""
_LEAST_STD = 1.0 / 64.0
"""Counts are integers: noise this small never overturns one vote (probability 1e-446), so less noise changes nothing."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """The vote counts of a set of queries, sorted into distinct patterns and their cells: what there is to solve."""

    clients: int
    classes: int
    multiplicity: Float
    """(patterns, clients + 1): how many classes of the pattern have c votes."""
    cell_pattern: Indices
    cell_count: Indices
    query_pattern: Indices
    """(queries)"""

    @classmethod
    def of(cls, counts: NDArray[np.intp], clients: int) -> "Patterns":
        """The patterns of `counts` (queries, classes), each row summing to `clients`."""
        queries, classes = counts.shape
        flat = np.arange(queries)[:, None] * (clients + 1) + counts
        histogram = np.bincount(flat.ravel(), minlength=queries * (clients + 1)).reshape(queries, clients + 1)
        multiplicity, query_pattern = _distinct_rows(histogram)
        cell_pattern, cell_count = np.nonzero(multiplicity)
        return cls(clients, classes, multiplicity.astype(np.float64), cell_pattern, cell_count, query_pattern)

    @cached_property
    def top(self) -> Indices:
        """(patterns): the highest count."""
        return self.clients - np.argmax(self.multiplicity[:, ::-1] > 0, axis=1)

    @cached_property
    def shortfall(self) -> Float:
        """(clients + 1, patterns): how many classes lie o votes below the top."""
        at = self.top - np.arange(self.clients + 1)[:, None]
        return np.where(at >= 0, np.take_along_axis(self.multiplicity.T, np.maximum(at, 0), axis=0), 0.0)

    @cached_property
    def cell_shortfall(self) -> Indices:
        """(cells): where the cell is in `shortfall`, flattened."""
        return (self.top[self.cell_pattern] - self.cell_count) * len(self.top) + self.cell_pattern

    @cached_property
    def nodes(self) -> Float:
        """The grid around the top count."""
        return grid(_REACH, 0.95 * step(self.classes))

    @cached_property
    def levels(self) -> Float:
        """(clients + 1, 1): every number of votes."""
        return np.arange(self.clients + 1, dtype=np.float64)[:, None]

    def table(self, cells: NDArray[Any]) -> NDArray[Any]:
        """(patterns, clients + 1): the cells' entries, 0 where no class has so many votes."""
        table = np.zeros(self.multiplicity.shape, dtype=cells.dtype)
        table[self.cell_pattern, self.cell_count] = cells
        return table

    def spread(self, cells: Float, counts: NDArray[np.intp]) -> Probabilities:
        """The full probability rows of the queries these patterns were made of."""
        return self.table(cells)[self.query_pattern[:, None], counts]


@dataclass(frozen=True, eq=False)
class Ballots:
    """A set of queries sorted into ballots, a truth with its counts: what the metrics are sums over.

    Where on_decided sums to 0, the sum over all classes of on_decided[j] P_j is that over the classes with votes of
    on_decided[j] (P_j - P_0), P_0 being the probability of a class without. With on_hits[truth] P_truth that makes a
    handful of `terms` for each ballot, slope times value, and most of them occur in many ballots.
    """

    patterns: Patterns
    support: PerClass
    weight: Float
    """(ballots): how many queries have this truth and these counts."""
    totals: Any
    """(2 classes, cells), sparse unless it is small: how many queries of each class have their truth in the cell, then how
    many queries have the class in the cell."""
    terms: Any
    """(ballots, terms), sparse: 1 where the ballot has the term."""
    term_value: Indices
    """(terms): in the cells less their blanks, followed by the cells."""
    slope_terms: Indices
    """(2 classes): how many terms have each slope, on_decided followed by on_hits; terms come in this order."""
    blank: Indices
    """(cells): the cell of the classes without votes in the same pattern; any cell where there is none."""

    @classmethod
    def of(cls, counts: NDArray[np.intp], labels: Labels, clients: int) -> "Ballots":
        """The ballots of `counts` (queries, classes), each row summing to `clients`."""
        patterns = Patterns.of(counts, clients)
        cells, classes = len(patterns.cell_pattern), patterns.classes
        _, ballot = _distinct_rows(np.column_stack([labels, counts]))
        _, first, queries = np.unique(ballot, return_index=True, return_counts=True)
        # Sorted by length, the rows of `terms` cost no mispredicted branches.
        order = np.argsort(np.count_nonzero(counts[first], axis=1), kind="stable")
        first, weight = first[order], queries[order].astype(np.float64)

        every, truth, kept = np.arange(len(first)), labels[first], counts[first]
        cell_at = patterns.table(np.arange(cells))
        cell = cell_at[patterns.query_pattern[first, None], kept]
        holder, voted = np.nonzero(kept)
        slope = np.concatenate([voted, classes + truth])
        value = np.concatenate([cell[holder, voted], cells + cell[every, truth]])
        distinct, term = np.unique(slope * (2 * cells) + value, return_inverse=True)
        terms = _sparse(np.ones(len(term)), (np.concatenate([holder, every]), term), (len(first), len(distinct)))

        row = np.concatenate([truth, np.tile(classes + np.arange(classes), len(first))])
        column = np.concatenate([cell[every, truth], cell.ravel()])
        entry = np.concatenate([weight, np.repeat(weight, classes)])
        totals = _sparse(entry, (row, column), (2 * classes, cells))
        return cls(
            patterns=patterns,
            support=np.bincount(labels, minlength=classes).astype(np.float64),
            weight=weight,
            totals=totals.toarray() if 8 * 2 * classes * cells <= _BLOCK_BYTES else totals,
            terms=terms,
            term_value=distinct % (2 * cells),
            slope_terms=np.bincount(distinct // (2 * cells), minlength=2 * classes),
            blank=cell_at[patterns.cell_pattern, 0],
        )


def _sparse(entries: Float, places: tuple[Indices, Indices], shape: tuple[int, int]) -> Any:
    """A sparse matrix; entries at the same place add up. Indices of 32 bits, as they are much of what a bank keeps."""
    rows, columns = places
    return sparse.coo_array((entries, (rows.astype(np.int32), columns.astype(np.int32))), shape=shape).tocsr()


def vote_counts(sums: Sums, clients: int) -> NDArray[np.intp]:
    """The votes behind sums of one-hot symbols, whatever constant was added to all classes: votes sum to `clients`.

    >>> vote_counts(np.array([[0.5, -0.5]]), 3)
    array([[2, 1]])
    """
    missing = (clients - sums @ np.ones(sums.shape[1])) / sums.shape[1]
    return np.rint(sums + missing[:, None]).astype(np.intp)


def _distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], Indices]:
    """The distinct rows and, for each row, which one it is."""
    packed = np.ascontiguousarray(rows, dtype=np.min_scalar_type(int(rows.max())))
    keys = packed.view(np.dtype((np.void, packed.dtype.itemsize * packed.shape[1])))[:, 0]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], inverse


def solve(patterns: Patterns, noise_std: float, participation: Participation) -> Float:
    """The decision probability of a class in each cell, for noise_std > 0, over noise and participation."""
    noise_std = max(noise_std, _LEAST_STD)
    if participation.certain:
        return _solve_all_present(patterns, noise_std)
    return _solve_thinned(patterns, noise_std, participation)


def _solve_all_present(patterns: Patterns, noise_std: float) -> Float:
    """The quadrature of `quadrature`, on counts: one table row per shortfall below the top."""
    z = patterns.nodes + patterns.levels / noise_std
    cdf = special.ndtr(z)
    hazard = np.exp(-0.5 * z * z) / cdf  # times sqrt(2 pi), which cancels
    won = hazard @ np.exp(np.log(cdf).T @ patterns.shortfall)
    total = (won * patterns.shortfall).sum(axis=0)
    probabilities: Float = won.take(patterns.cell_shortfall) / total.take(patterns.cell_pattern)
    return probabilities


def _solve_thinned(patterns: Patterns, noise_std: float, participation: Participation) -> Float:
    """Each class keeps a Binomial(c, p) share of its votes, independently: Phi and phi become binomial mixtures.

    The grid covers all counts. Where nobody takes part the noise decides evenly; if such rounds are drawn again, that term
    is taken out.
    """
    probability = participation.probability
    if participation.at_least == 1:
        probability = max(probability, _RARE / participation.clients)
    law = Participation(participation.clients, probability, participation.at_least)
    thinned = binomial(patterns.clients, probability)
    nodes = _covering_nodes(patterns, noise_std)
    won = np.zeros(patterns.multiplicity.shape)
    size = max(1, _BLOCK_BYTES // (8 * max(won.shape)))
    for x in (nodes[start : start + size] for start in range(0, len(nodes), size)):
        z = x - patterns.levels / noise_std
        cdf = np.maximum(thinned @ special.ndtr(z), 1e-300)
        density = thinned @ (np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))
        won += np.exp(patterns.multiplicity @ np.log(cdf)) @ (density / cdf).T
    won /= np.einsum("uc,uc->u", won, patterns.multiplicity)[:, None]
    if law.at_least == 1:
        classes = patterns.classes
        won = np.maximum(won - law.empty_probability / classes, 0.0) / (1.0 - law.empty_probability)
    probabilities: Float = won[patterns.cell_pattern, patterns.cell_count]
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


def _covering_nodes(patterns: Patterns, noise_std: float) -> Float:
    """Nodes that cover every count, in standard deviations; where the counts lie far apart, a window around each."""
    counts, width = np.arange(int(patterns.top.max()) + 1), 0.8 * step(patterns.classes)
    window = grid(_THINNED_REACH, width)
    if 1.0 / noise_std > 2.0 * _THINNED_REACH:
        return (counts[:, None] / noise_std + window).ravel()
    beyond = np.arange(1, math.ceil(counts[-1] / noise_std / width) + 1) * width
    return np.concatenate([window, window[-1] + beyond])


@dataclass(frozen=True, eq=False)
class BallotTally:
    """The tally of one or more sets of ballots with their solved cells, without ever forming the probability rows."""

    parts: list[tuple[Ballots, Float]]
    support: PerClass
    hits: PerClass
    hits_squared: PerClass
    decided: PerClass
    decided_squared: PerClass

    @classmethod
    def of(cls, parts: list[tuple[Ballots, Float]]) -> "BallotTally":
        """The tally of ballots, each set with the decision probabilities of its cells."""
        support = reduce(add, [ballots.support for ballots, _ in parts])
        hits, decided = reduce(add, [ballots.totals @ cells for ballots, cells in parts]).reshape(2, -1)
        squares = reduce(add, [ballots.totals @ (cells * cells) for ballots, cells in parts])
        hits_squared, decided_squared = squares.reshape(2, -1)
        return cls(parts, support, hits, hits_squared, decided, decided_squared)

    def mean_squares(self, on_hits: PerClass, on_decided: PerClass) -> float:
        centre = float(on_decided.sum()) / len(on_decided)  # probabilities sum to 1, so this much can be taken out
        slopes = np.concatenate([on_decided - centre, on_hits])
        total = 0.0
        for ballots, cells in self.parts:
            values = np.concatenate([cells - cells.take(ballots.blank), cells])
            terms = values.take(ballots.term_value)
            terms *= np.repeat(slopes, ballots.slope_terms)
            mean = ballots.terms @ terms + centre
            total += float(ballots.weight @ (mean * mean))
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
