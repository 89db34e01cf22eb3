"""Scheme: one choice of everything, and `infer`, one query in a straight line [paper, Algorithm 1; METHOD]."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from airchoir._types import Labels, PerClient, Received, Scores
from airchoir.access import Access, check_covers_lost
from airchoir.access.over_the_air import OverTheAir
from airchoir.bank import ScoreBank
from airchoir.channels import Channel
from airchoir.channels.awgn import Awgn
from airchoir.link import Link, amplitudes
from airchoir.participation import check_participation
from airchoir.privacy import Privacy, check_lost
from airchoir.privacy.ledger import Mechanism, PrivacyLedger
from airchoir.rules import Rule
from airchoir.rules.vote import MajorityVote


@dataclass(frozen=True)
class Scheme:
    """What the clients say, how they share the air, what the air does, what is promised, and who takes part."""

    rule: Rule = field(default_factory=MajorityVote)
    access: Access = field(default_factory=OverTheAir)
    channel: Channel = field(default_factory=Awgn)
    privacy: Privacy = field(default_factory=Privacy)
    participation: float = 1.0

    def __post_init__(self) -> None:
        for part, kind in (("rule", Rule), ("access", Access), ("channel", Channel), ("privacy", Privacy)):
            given = getattr(self, part)
            if not isinstance(given, kind):
                raise ValueError(f"{part} must be an instance of {kind.__name__}, got {given!r}; see airchoir.Scheme()")
        check_participation(self.participation)
        self.channel.check_participation(self.participation)
        if self.access.always_on_air and self.channel.fades:
            raise ValueError(
                f"{self.access.name} needs every client in every round, and with {self.channel.name} one in a deep fade "
                f"cannot transmit; use awgn, or over-the-air"
            )
        check_covers_lost(self.access, self.privacy.lost)

    def link(self, bank: ScoreBank) -> Link:
        """Everything that is fixed before any query."""
        cost = self.channel.inversion_cost(self.participation)
        key = ("link", self.rule, self.access, self.privacy, self.participation, cost)
        link = bank.remember(key, lambda: self._link(bank, cost))  # a sweep over the SNR pays for it once
        return link(receiver_noise_variance=10.0 ** (-self.channel.snr_db / 10.0))

    def _link(self, bank: ScoreBank, inversion_cost: float) -> Callable[..., Link]:
        """The link but for the receiver's noise."""
        lost = self.privacy.lost
        roster = self.access.roster(bank)
        check_lost(lost, len(roster))
        law = self.access.participation(len(roster), self.participation, lost)
        sigma = self.privacy.sigma(self.rule.geometry(bank.classes), self.access.hidden(law, lost))
        slots = self.access.slots(len(roster))
        noise_power = self.access.mean_client_noise_variance(sigma, law, lost)
        power = (symbol_power(self.rule, bank)[roster] + noise_power) * inversion_cost
        return partial(
            Link,
            classes=bank.classes,
            roster=roster,
            participation=law,
            sigma=sigma,
            lost=lost,
            slots=slots,
            slot_use=self.access.slot_use(law),
            amplitudes=amplitudes(power, slots),
        )

    def mechanism(self, bank: ScoreBank) -> Mechanism:
        """What an accountant must know to add up the cost of queries."""
        link = self.link(bank)
        hidden = self.access.hidden(link.participation, link.lost)
        return Mechanism(self.privacy.accountant, self.rule.geometry(bank.classes), hidden, link.sigma)


def infer(scheme: Scheme, bank: ScoreBank, *, rng: np.random.Generator, ledger: PrivacyLedger | None = None) -> Labels:
    """The label of every test query, each answered once, literally.

    A `ledger` is charged for all of them before the first is transmitted.
    """
    link = scheme.link(bank)
    if ledger is not None:
        ledger.charge(scheme.mechanism(bank), queries=bank.queries)
    return np.concatenate([answer(scheme, link, bank.test_scores[link.roster, block], rng) for block in bank.blocks()])


def answer(scheme: Scheme, link: Link, scores: Scores, rng: np.random.Generator) -> Labels:
    """The labels of a block of queries: scores of the roster's clients in, one decision per query out."""
    received = hear(scheme, link, scores, rng)  # all that reaches the server
    return scheme.rule.decide(scheme.access.collect(received, link))


def hear(scheme: Scheme, link: Link, scores: Scores, rng: np.random.Generator) -> Received:
    """What the server hears of a block of queries: one noisy sum per slot. Every promise is about this."""
    symbols = scheme.rule.encode(scores)  # each client's own model
    present = link.participation.draw(scores.shape[1], rng)  # who sings
    private = scheme.access.perturb(symbols, present, link, rng)  # each client's own noise
    return scheme.channel.transmit(private, scheme.access.on_air(present), link, rng)  # the air


def symbol_power(rule: Rule, bank: ScoreBank) -> PerClient:
    """The mean over the whole test set and the classes of x_i^2, per client of the bank."""
    return bank.remember(("symbol power", rule), lambda: _symbol_power(rule, bank))


def _symbol_power(rule: Rule, bank: ScoreBank) -> PerClient:
    energy = np.zeros(bank.clients)
    for block in bank.blocks():
        symbols = rule.encode(bank.test_scores[:, block])
        energy += np.einsum("cqk,cqk->c", symbols, symbols)
    return energy / (bank.queries * bank.classes)
