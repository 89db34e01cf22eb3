"""No client exceeds its power budget, and the hungriest of each slot uses all of it: measured, gains and all.

Powers are in units of the budget, so the power A^2 |x + noise|^2 / |h|^2 per channel use, averaged over the rounds in which
a client takes part, is at most 1. Gains are drawn here as nature does, and those below the threshold are thrown away.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest

from airchoir import Awgn, BeliefSum, MajorityVote, Privacy, Rayleigh, Scheme, ScoreBank
from airchoir.access import Access
from airchoir.channels import Channel
from airchoir.registry import plugins
from airchoir.rules import Rule

MakeBank = Callable[..., ScoreBank]
ROUNDS = 40_000
ACCESSES = [pytest.param(plugin(), id=name) for name, plugin in plugins(Access).items()]


def gains(channel: Channel, probability: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """|h|^2 of clients that take part."""
    if isinstance(channel, Awgn):
        return np.ones(shape)
    assert isinstance(channel, Rayleigh)
    threshold = -math.log(probability) if channel.threshold is None else channel.threshold
    wanted, kept = math.prod(shape), np.empty(0)
    while len(kept) < wanted:
        h = rng.normal(0.0, math.sqrt(0.5), (2, wanted))
        power = (h**2).sum(axis=0)
        kept = np.concatenate([kept, power[power > threshold]])
    return kept[:wanted].reshape(shape)


def uneven(bank: ScoreBank) -> ScoreBank:
    """The bank with clients made surer and surer of themselves, so that their beliefs need more and more power."""
    sharpness = np.linspace(0.3, 3.0, bank.clients)[:, None, None]
    scores = bank.test_scores.astype(np.float64) ** sharpness
    scores /= scores.sum(axis=-1, keepdims=True)
    return ScoreBank(scores.astype("float32"), bank.test_labels, bank.val_scores, bank.val_labels)


@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
@pytest.mark.parametrize(
    ("channel", "probability"),
    [(Awgn(), 1.0), (Awgn(), 0.4), (Rayleigh(), 0.4), (Rayleigh(threshold=0.2), 0.4), (Rayleigh(), 0.9)],
    ids=["awgn-1", "awgn-0.4", "rayleigh-0.4", "rayleigh-coin-0.4", "rayleigh-0.9"],
)
@pytest.mark.parametrize("rule", [BeliefSum(), MajorityVote()], ids=["belief", "vote"])
@pytest.mark.parametrize("access", ACCESSES)
def test_the_power_budget_is_met_by_all_and_used_up_by_the_hungriest(
    make_bank: MakeBank, access: Access, rule: Rule, channel: Channel, probability: float, epsilon: float
) -> None:
    bank = uneven(make_bank(clients=4, queries=50, classes=3))
    try:
        scheme = Scheme(rule, access, channel, Privacy(epsilon=epsilon, delta=0.1), participation=probability)
    except ValueError:
        pytest.skip("the scheme refuses this combination")
    link, rng = scheme.link(bank), np.random.default_rng(12)
    queries = rng.integers(bank.queries, size=ROUNDS)
    symbols = rule.encode(bank.test_scores[link.roster[:, None], queries])
    present = link.participation.draw(ROUNDS, rng)
    private = access.perturb(symbols, present, link, rng)
    amplitudes = link.amplitudes[link.slots][:, None]
    powers = amplitudes**2 * (private**2).mean(axis=2) / gains(channel, probability, present.shape, rng)
    spent = [power[here] for power, here in zip(powers, present, strict=True)]
    means = np.array([power.mean() for power in spent])
    errors = np.array([power.std(ddof=1) / math.sqrt(len(power)) for power in spent])
    assert (means <= 1.0 + 4.0 * errors + 1e-12).all(), "over budget"
    everywhere = powers * access.on_air(present)
    assert (everywhere.mean(axis=1) <= 1.0 + 4.0 * everywhere.std(axis=1) / math.sqrt(ROUNDS) + 1e-12).all()
    for slot in set(link.slots):
        of_slot = np.flatnonzero(link.slots == slot)
        energy = (rule.encode(bank.test_scores[link.roster[of_slot]]) ** 2).mean(axis=(1, 2))
        hungriest = of_slot[np.argmax(energy)]
        assert abs(means[hungriest] - 1.0) <= 4.0 * errors[hungriest] + 1e-12, "the amplitude could be larger"
