"""What table 1 says in sentences, each computed from its numbers."""

import math
from collections.abc import Sequence

import numpy as np

from airchoir.experiments import paper
from airchoir.experiments.bootstrap import LEVEL
from airchoir.experiments.choirs import Choir
from airchoir.experiments.methods import APART, BELIEF, BEST, VOTE, other_clients, without_best_client
from airchoir.experiments.table1_tables import Result
from airchoir.experiments.wording import by_task, listing, number, rounded_up, share, under
from airchoir.metrics import Estimate

_NEAR = 2.0
"""Standard deviations."""


def summary(results: Sequence[Result], epsilons: Sequence[float]) -> list[str]:
    """What a reader should take away. `epsilons` holds infinity and the one that is promised."""
    public, private = max(epsilons), min(epsilons)
    sentences = [
        _privacy(results, private),  # the paper's point, and so the page's first words
        _together(results),
        _air(results, public),
        _share_of_noise(results, private),
        *(_best(results, epsilon) for epsilon in epsilons),
        *(_votes_and_beliefs(results, epsilon) for epsilon in (private, public)),
    ]
    if any(result.published for result in results):
        sentences.append(_beside(results))
    return [*sentences, _cost(results, private)]


def notes(results: Sequence[Result], epsilons: Sequence[float]) -> list[str]:
    """What a careful reader should know."""
    private = min(epsilons)
    lines = [
        *without_best_client([result.choir for result in results]),
        *other_clients([result.choir for result in results if result.published]),
    ]
    compared = [result for result in results if (VOTE, private) in result.published]
    if compared:
        parts = [f"{result.choir.title} {_noise_of_mean(result, private):.2f}" for result in compared]
        lines.append(
            f"A published number is the mean of {paper.RUNS} single noisy runs. By the exact engine noise alone moves such a "
            f"mean by (standard deviation in points, {VOTE} {under(private)}): {listing(parts)}."
        )
    return lines


def _each(results: Sequence[Result], phrases: Sequence[str]) -> str:
    return by_task((result.choir for result in results), phrases)


def _at(result: Result, method: str, epsilon: float) -> Estimate:
    return result.measured[method, epsilon].pooled


def _together(results: Sequence[Result]) -> str:
    phrases = []
    for result in results:
        alone = accuracies(result.choir)
        phrases.append(
            f"{share(alone.min())} to {share(alone.max())} alone (mean {share(alone.mean())}), "
            f"{share(_at(result, VOTE, math.inf).accuracy)} by their vote over the air"
        )
    return f"How often clients are right, without privacy: {_each(results, phrases)}."


def accuracies(choir: Choir) -> np.ndarray:
    """(banks x clients) of each client alone."""
    alone = [np.mean(np.argmax(bank.test_scores, axis=-1) == bank.test_labels, axis=1) for bank in choir.banks]
    return np.concatenate(alone)


def _air(results: Sequence[Result], epsilon: float) -> str:
    phrases = []
    for result in results:
        vote, apart = _at(result, VOTE, epsilon), _at(result, APART, epsilon)
        phrases.append(
            f"{vote.channel_uses:,.0f} channel uses instead of {apart.channel_uses:,.0f}, for a macro-F1 of "
            f"{share(vote.macro_f1)} against {share(apart.macro_f1)}"
        )
    return f"A vote over the air against separate votes, {under(epsilon)}: {_each(results, phrases)}."


def _privacy(results: Sequence[Result], epsilon: float) -> str:
    phrases = []
    for result in results:
        kept = [f"{share(_at(result, VOTE, epsilon).macro_f1)} over the air"]
        kept.append(f"{share(_at(result, APART, epsilon).macro_f1)} separately")
        if (BEST, epsilon) in result.measured:
            kept.append(f"{share(_at(result, BEST, epsilon).macro_f1)} by the best client alone")
        phrases.append(listing(kept))
    return f"What votes keep of their macro-F1 {under(epsilon)}: {_each(results, phrases)}."


def _share_of_noise(results: Sequence[Result], epsilon: float) -> str:
    cases = dict.fromkeys((result.choir.clients, _at(result, VOTE, epsilon).sigma) for result in results)
    shares = [f"{sigma / math.sqrt(clients):.2f} each where {clients} share it" for clients, sigma in cases]
    sigmas = listing(dict.fromkeys(f"{sigma:.2f}" for _, sigma in cases))
    return (
        f"The reason: {under(epsilon)} the sum needs noise of standard deviation {sigmas}, over the air {listing(shares)}; a "
        "client that is heard alone adds all of it to an answer of size 1."
    )


def _best(results: Sequence[Result], epsilon: float) -> str:
    phrases = [
        f"{listing(method for method, _ in result.best(epsilon))} with {result.percent(result.best(epsilon)[0]):.2f} %"
        for result in results
    ]
    return f"Highest macro-F1 {under(epsilon)}: {_each(results, phrases)}."


def _votes_and_beliefs(results: Sequence[Result], epsilon: float) -> str:
    phrases = []
    for result in results:
        gain = result.differences[BELIEF, epsilon]
        ahead, low, high = ("votes", -gain.high, -gain.low) if gain.value < 0.0 else ("beliefs", gain.low, gain.high)
        interval = f"{share(LEVEL, 0)} interval {number(100 * low, '.2f')} to {number(100 * high, '.2f')}"
        sure = "" if gain.clear else ", which another test set may undo"
        phrases.append(f"{ahead}, by {100 * abs(gain.value):.2f} points, {interval}{sure}")
    return f"The higher macro-F1 over the air {under(epsilon)}: {_each(results, phrases)}."


def _beside(results: Sequence[Result]) -> str:
    pairs = [(result, key) for result in results for key in result.published]
    near = sum(abs(result.off(key)) <= _NEAR for result, key in pairs)
    result, key = max(pairs, key=lambda pair: abs(pair[0].percent(pair[1]) - pair[0].published[pair[1]].mean))
    return (
        f"Of {len(pairs)} values that the paper has too, {near} lie within {_NEAR:g} of its standard deviations. Farthest in "
        f"points is {key[0]} {under(key[1])} on {result.choir.title}: ours {result.percent(key):.2f}, the paper's "
        f"{result.published[key].mean:.2f}."
    )


def _cost(results: Sequence[Result], epsilon: float) -> str:
    """What all answers about a test set cost together."""
    phrases = []
    for result in results:
        scheme, bank = result.measured[VOTE, epsilon].scheme, result.choir.banks[0]
        total = scheme.mechanism(bank).epsilon(scheme.privacy.delta, queries=bank.queries)
        phrases.append(f"{rounded_up(total, 1)} for {bank.queries:,} answers")
    return (
        f"ε = {epsilon:g} is the price of one query, and answers add up. What each client pays for the whole test set, in ε: "
        f"{_each(results, phrases)}."
    )


def _noise_of_mean(result: Result, epsilon: float) -> float:
    """What noise alone leaves in a mean of the paper's many runs, in points."""
    own = [estimate.macro_f1_std**2 for estimate in result.measured[VOTE, epsilon].estimates]
    return 100.0 * math.sqrt(float(np.mean(own)) / paper.RUNS)
