"""evaluate(): expected metrics by quadrature. Only participant sets are ever drawn, and only where they must be."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from airchoir._types import Float, Labels, PerClass, Present, Probabilities, Scores, Sums, Symbols
from airchoir.ballots import Ballots, BallotTally, Patterns, solve, thinned_argmax, vote_counts
from airchoir.bank import ScoreBank
from airchoir.link import Link
from airchoir.metrics import DenseTally, Estimate, Tally, gradient, summarise
from airchoir.quadrature import decision_probabilities
from airchoir.rules import Rule
from airchoir.scheme import Scheme

Progress = Callable[[int, int], None]
"""Called with (queries done, queries in all)."""

_KEPT_BYTES = 16 << 20
"""What a bank may keep of its sums between conditions; larger banks are read again, block by block."""
_BLOCK_BYTES = 4 << 20
_PILOT_QUERIES = 2048


def evaluate(
    scheme: Scheme,
    bank: ScoreBank,
    *,
    tolerance: float = 5e-4,
    seed: int = 0,
    progress: Progress | None = None,
    link: Link | None = None,
) -> Estimate:
    """Expected accuracy and F1 of a scheme on a bank, and their standard deviation over independent repeats.

    Without random numbers where everyone takes part, and for votes with random participation where the clients share the
    noise and none may be lost (over the air; always-on in any case). Elsewhere participant sets are drawn from `seed`, as
    many per query as bring the standard error of macro-F1 to `tolerance`, and the noise is integrated exactly given each.

    The `link` is `scheme.link(bank)` unless one is given: that of a running choir was fixed before its queries.
    """
    check_tolerance(tolerance)
    link = link or scheme.link(bank)
    report = progress or (lambda done, total: None)
    if _is_drawn(scheme, link):
        estimate = _evaluate_drawn(scheme, link, bank, tolerance, seed, report)
    else:
        estimate = summarise(_tally(scheme, link, bank, report))
    return with_costs(estimate, scheme, link)


def check_tolerance(tolerance: float) -> None:
    """A ValueError unless the tolerance is positive."""
    if not tolerance > 0.0:
        raise ValueError(
            f"tolerance must be > 0, got {tolerance!r}; it is the largest standard error of macro-F1 wanted"
        )


def with_costs(estimate: Estimate, scheme: Scheme, link: Link) -> Estimate:
    """The estimate with what the scheme spends to get there."""
    return replace(
        estimate,
        sigma=link.sigma,
        channel_noise_variance=link.channel_noise_variance,
        channel_uses=link.channel_uses,
        accountant=scheme.privacy.accountant,
    )


@dataclass(frozen=True, eq=False)
class Decisions:
    """P(decide j) for every query, the truth, and the confusion matrix they expect."""

    probabilities: Probabilities
    labels: Labels
    confusion: Float
    """Expected number of queries of class i (row) that are decided as j (column)."""


def decisions(scheme: Scheme, bank: ScoreBank, *, draws: int = 1, seed: int = 0) -> Decisions:
    """The decision probabilities behind an estimate of `evaluate`: give its `draws` and `seed` to see the same numbers."""
    link = scheme.link(bank)
    rows = np.concatenate(list(_probabilities(scheme, link, bank, draws, seed)))
    labels = np.asarray(bank.test_labels)
    confusion = np.zeros((bank.classes, bank.classes))
    np.add.at(confusion, labels, rows)
    return Decisions(rows, labels, confusion)


_MOST_SETS = 1 << 12
_SETS_DRAWN = 1 << 10


def answer_probabilities(scheme: Scheme, link: Link, scores: Scores) -> Probabilities:
    """P(decide j) for every query, from the scores of the roster's clients: a row depends on its own query alone.

    Where `evaluate` would draw participant sets all of them are summed over, as far as `is_exact`; a larger choir gets the
    mean over 1024 sets, the same for all queries, with a standard error of at most 0.016.
    """
    symbols = scheme.rule.encode(scores)
    if not _is_drawn(scheme, link):
        return _block_probabilities(scheme, link, np.round(symbols.sum(axis=0), 12), noise_std(scheme, link))
    present, law = link.participation.sets(_MOST_SETS if is_exact(scheme, link) else _SETS_DRAWN)
    total = np.zeros(symbols.shape[1:])
    for who, weight in zip(present.T, law, strict=True):
        if weight > 0.0:
            total += weight * _draw(scheme, link, symbols, np.repeat(who[:, None], symbols.shape[1], axis=1))
    return total


def is_exact(scheme: Scheme, link: Link) -> bool:
    """Whether `answer_probabilities` leaves no participant set out: always but for more than 12 clients with drawn sets."""
    return not _is_drawn(scheme, link) or link.participation.can_list(_MOST_SETS)


def _is_drawn(scheme: Scheme, link: Link) -> bool:
    if link.participation.certain:
        return False
    return not (scheme.rule.one_hot and scheme.access.fixed_noise and link.participation.at_least <= 1)


def noise_std(scheme: Scheme, link: Link) -> float:
    """The standard deviation of the noise in the server's sum where it does not depend on who is present."""
    clients = len(link.roster)  # all of them: what is the same for every set is the same as for this one
    of_each = float(scheme.access.client_noise_std(link, np.ones((clients, 1), dtype=bool))[0])
    return math.sqrt(clients * of_each**2 + link.channel_noise_variance)


def _tally(scheme: Scheme, link: Link, bank: ScoreBank, report: Progress) -> Tally:
    """The tally of a scheme that needs no draws."""
    std = noise_std(scheme, link)
    if scheme.rule.one_hot and std > 0.0 and 8 * bank.queries * len(link.roster) <= _KEPT_BYTES:
        solved: list[tuple[Ballots, Float]] = []
        done = 0
        for ballots in _ballots(scheme.rule, link, bank):
            solved.append((ballots, solve(ballots.patterns, std, link.participation)))
            done += len(ballots.patterns.query_pattern)
            report(done, bank.queries)
        return BallotTally.of(solved)
    tally: DenseTally | None = None
    for block, sums in _sums(scheme.rule, link, bank):
        rows = _block_probabilities(scheme, link, sums, std)
        part = DenseTally.of(rows, np.asarray(bank.test_labels[block]))
        tally = part if tally is None else tally + part
        report(block.stop, bank.queries)
    assert tally is not None  # a bank has queries
    return tally


def _block_probabilities(scheme: Scheme, link: Link, sums: Sums, std: float) -> Probabilities:
    clients, participation = len(link.roster), link.participation
    if scheme.rule.one_hot and std > 0.0:
        counts = vote_counts(sums, clients)
        patterns = Patterns.of(counts, clients)
        return patterns.spread(solve(patterns, std, participation), counts)
    if participation.certain:
        return decision_probabilities(sums, std)
    return thinned_argmax(vote_counts(sums, clients), clients, participation)


def _probabilities(scheme: Scheme, link: Link, bank: ScoreBank, draws: int, seed: int) -> Iterator[Probabilities]:
    if _is_drawn(scheme, link):
        for index, block in enumerate(_blocks(link, bank)):
            yield _drawn_block(scheme, link, bank, block, max(draws, 1), _stream(seed, 1, index))
        return
    std = noise_std(scheme, link)
    for _, sums in _sums(scheme.rule, link, bank):
        yield _block_probabilities(scheme, link, sums, std)


def _blocks(link: Link, bank: ScoreBank) -> Iterator[slice]:
    per_query = 8 * link.classes * len(link.roster)
    return bank.blocks(max(1, _BLOCK_BYTES // per_query))


def _symbols(rule: Rule, link: Link, bank: ScoreBank, queries: slice) -> Symbols:
    """The symbols of a slice of queries; those of the whole bank are kept by it where they are small."""
    if 8 * bank.queries * bank.classes * len(link.roster) > _KEPT_BYTES:
        return rule.encode(bank.test_scores[link.roster, queries])
    key = ("symbols", rule, link.roster.tobytes())
    return bank.remember(key, lambda: rule.encode(bank.test_scores[link.roster]))[:, queries]


def _sums(rule: Rule, link: Link, bank: ScoreBank) -> Iterator[tuple[slice, Sums]]:
    """Block by block, the noiseless sum over the whole roster; kept by the bank where it is small."""

    def compute() -> Iterator[tuple[slice, Sums]]:
        for block in _blocks(link, bank):
            yield block, np.round(_symbols(rule, link, bank, block).sum(axis=0), 12)

    if 8 * bank.queries * bank.classes > _KEPT_BYTES:
        return compute()
    return iter(bank.remember(("sums", rule, link.roster.tobytes()), lambda: _merge(list(compute()))))


def _merge(blocks: list[tuple[slice, Sums]]) -> list[tuple[slice, Sums]]:
    """The same sums in pieces that are worth a call: the symbols that limited the blocks are gone."""
    whole = np.concatenate([sums for _, sums in blocks])
    size = max(1, _BLOCK_BYTES // (8 * whole.shape[1]))
    return [(slice(a, min(a + size, len(whole))), whole[a : a + size]) for a in range(0, len(whole), size)]


def _ballots(rule: Rule, link: Link, bank: ScoreBank) -> Iterator[Ballots]:
    """The vote counts, sorted into patterns; kept by the bank where it is small."""

    def compute() -> Iterator[Ballots]:
        for block, sums in _sums(rule, link, bank):
            counts = vote_counts(sums, len(link.roster))
            yield Ballots.of(counts, np.asarray(bank.test_labels[block]), len(link.roster))

    if 8 * bank.queries * bank.classes > _KEPT_BYTES:
        return compute()
    return iter(bank.remember(("ballots", rule, link.roster.tobytes()), lambda: list(compute())))


def _stream(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))


def _draw(scheme: Scheme, link: Link, symbols: Symbols, present: Present) -> Probabilities:
    """Decision probabilities given who is present in each query; the noise is integrated."""
    sums = scheme.access.sums(symbols, present)
    return decision_probabilities(np.round(sums, 12), np.sqrt(scheme.access.noise_variance(present, link)))


def _drawn_block(
    scheme: Scheme, link: Link, bank: ScoreBank, block: slice, draws: int, rng: np.random.Generator
) -> Probabilities:
    """The mean over `draws` participant sets per query."""
    symbols = _symbols(scheme.rule, link, bank, block)
    total = np.zeros(symbols.shape[1:])
    for _ in range(draws):
        total += _draw(scheme, link, symbols, link.participation.draw(symbols.shape[1], rng))
    return total / draws


@dataclass(frozen=True, eq=False)
class _Pilot:
    """Two participant sets for each of some queries: how much drawing one set per query varies the metrics."""

    first: Probabilities
    second: Probabilities
    labels: Labels
    queries: int
    """In the whole bank."""

    def variances(self, tally: Tally) -> tuple[float, float, PerClass]:
        """The variance that one set per query leaves in macro-F1, in accuracy and in every class's F1."""
        on_hits, on_decided = gradient(tally)
        difference = self.first - self.second
        rows = np.arange(len(difference))
        hit = difference[rows, self.labels]
        shares = difference * on_decided
        shares[rows, self.labels] += on_hits[self.labels] * hit
        f1 = shares.sum(axis=1)
        own = shares * len(on_decided)
        scale = self.queries / (2.0 * len(rows))
        return float(f1 @ f1) * scale, float(hit @ hit) * scale / self.queries**2, (own**2).sum(axis=0) * scale


def _pilot(scheme: Scheme, link: Link, bank: ScoreBank, seed: int) -> _Pilot:
    stride = -(-bank.queries // _PILOT_QUERIES)
    span = stride * max(1, _BLOCK_BYTES // (8 * link.classes * len(link.roster)))
    first: list[Probabilities] = []
    second: list[Probabilities] = []
    for index, start in enumerate(range(0, bank.queries, span)):
        rng = _stream(seed, 0, index)
        symbols = _symbols(scheme.rule, link, bank, slice(start, min(start + span, bank.queries), stride))
        for half in (first, second):
            half.append(_draw(scheme, link, symbols, link.participation.draw(symbols.shape[1], rng)))
    labels = np.asarray(bank.test_labels[::stride])
    return _Pilot(np.concatenate(first), np.concatenate(second), labels, bank.queries)


def _evaluate_drawn(
    scheme: Scheme, link: Link, bank: ScoreBank, tolerance: float, seed: int, report: Progress
) -> Estimate:
    """Average over drawn participant sets: a pilot says how many sets per query the tolerance needs."""
    pilot = _pilot(scheme, link, bank, seed)
    f1_variance, _, _ = pilot.variances(DenseTally.of((pilot.first + pilot.second) / 2.0, pilot.labels))
    # The pilot sees fewer queries than the bank has, so its counts are smaller and one decision moves them more.
    f1_variance *= (len(pilot.labels) / bank.queries) ** 2
    draws = _draws_needed(f1_variance, tolerance)
    while True:
        tally = _drawn_tally(scheme, link, bank, draws, seed, report)
        f1_variance, accuracy_variance, class_f1_variance = pilot.variances(tally)
        if f1_variance / draws <= tolerance**2:
            break
        draws = max(draws + 1, _draws_needed(f1_variance, tolerance))
    estimate = summarise(
        tally,
        drawn_f1_variance=f1_variance / draws,
        drawn_accuracy_variance=accuracy_variance / draws,
        drawn_class_f1_variance=class_f1_variance / draws,
    )
    return replace(estimate, draws=draws)


def _draws_needed(variance: float, tolerance: float) -> int:
    return max(1, math.ceil(variance / tolerance**2))


def _drawn_tally(scheme: Scheme, link: Link, bank: ScoreBank, draws: int, seed: int, report: Progress) -> DenseTally:
    tally: DenseTally | None = None
    for index, block in enumerate(_blocks(link, bank)):
        rows = _drawn_block(scheme, link, bank, block, draws, _stream(seed, 1, index))
        part = DenseTally.of(rows, np.asarray(bank.test_labels[block]))
        tally = part if tally is None else tally + part
        report(block.stop, bank.queries)
    assert tally is not None  # a bank has queries
    return tally
