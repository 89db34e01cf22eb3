"""Condition: one point of a grid, named, meant and by default as the options of `airchoir evaluate`."""

import hashlib
import math
from functools import cache, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import airchoir
from airchoir.access import Access
from airchoir.bank import ScoreBank
from airchoir.channels import Channel
from airchoir.exact import evaluate
from airchoir.metrics import Estimate
from airchoir.montecarlo import simulate
from airchoir.privacy import Privacy, check_lost, find_accountant
from airchoir.registry import build
from airchoir.rules import Rule
from airchoir.scheme import Scheme

Value = str | int | float | None

EXACT, SIMULATE = "exact", "simulate"
IDLE = {EXACT: ("repeats",), SIMULATE: ("tolerance",)}
"""What a method does not look at."""


class Condition(NamedTuple):
    """What is evaluated on a bank: a scheme, and how."""

    rule: str = "vote"
    access: str = "over-the-air"
    channel: str = "awgn"
    participation: float = 1.0
    epsilon: float = math.inf
    delta: float = 1e-6
    accountant: str = "paper"
    queries: int = 1
    lost: int = 0
    snr_db: float = 10.0
    threshold: float | None = None
    method: str = EXACT
    repeats: int | None = 200
    tolerance: float | None = 5e-4
    seed: int = 0

    def scheme(self) -> Scheme:
        """The scheme, or a ValueError where its parts do not go together."""
        return Scheme(
            rule=_part(Rule, self.rule),
            access=_part(Access, self.access),
            channel=_channel(self.channel, self.snr_db, self.threshold),
            privacy=_privacy(self.epsilon, self.delta, self.accountant, self.queries, self.lost),
            participation=self.participation,
        )

    def estimate(self, bank: ScoreBank) -> Estimate:
        """What `airchoir evaluate` computes on this bank."""
        if self.method == SIMULATE:
            assert self.repeats is not None
            return simulate(self.scheme(), bank, repeats=self.repeats, seed=self.seed)
        assert self.tolerance is not None
        return evaluate(self.scheme(), bank, tolerance=self.tolerance, seed=self.seed)

    def record(self) -> dict[str, Value]:
        """By name, in JSON's own types; infinity is the string "inf"."""
        return {name: "inf" if value == math.inf else value for name, value in zip(self._fields, self, strict=True)}

    def key(self, bank: str) -> str:
        """Of the numbers that this engine gives for the bank with the checksum `bank`."""
        return hashlib.sha256(f"{engine()} {bank} {tuple(self)!r}".encode()).hexdigest()[:32]

    def __str__(self) -> str:
        usual = Condition()
        told = [name for name in self._fields if getattr(self, name) not in (getattr(usual, name), None)]
        return ", ".join(f"{name} {getattr(self, name)}" for name in dict.fromkeys(["rule", "access", *told]))


class Reach(NamedTuple):
    """What of a condition decides whether it is possible: all but amounts, which are fine with anything."""

    rule: str
    access: str
    channel: str
    participation: float
    accountant: str
    lost: int
    threshold: float | None
    private: bool

    @classmethod
    def of(cls, condition: Condition) -> "Reach":
        """Of a condition."""
        rule, access, channel, participation, epsilon, _, accountant, _, lost, _, threshold, *_ = condition
        return cls(rule, access, channel, participation, accountant, lost, threshold, epsilon < math.inf)

    def check(self) -> None:
        """A ValueError where it is impossible on any bank: the parts of the scheme do not go together."""
        Condition(
            rule=self.rule,
            access=self.access,
            channel=self.channel,
            participation=self.participation,
            accountant=self.accountant,
            lost=self.lost,
            threshold=self.threshold,
        ).scheme()

    def check_on(self, bank: ScoreBank) -> None:
        """A ValueError where the bank lacks what it takes, or the accountant's theorem does not cover it."""
        rule, access = _part(Rule, self.rule), _part(Access, self.access)
        roster = access.roster(bank)
        check_lost(self.lost, len(roster))
        hidden = access.hidden(access.participation(len(roster), self.participation, self.lost), self.lost)
        if self.private:
            theorem = find_accountant(self.accountant)
            theorem.log_delta(1.0, 1.0, geometry=rule.geometry(bank.classes), hidden=hidden)


@cache
def _part(kind: type, name: str) -> Any:
    return build(kind, name)


@lru_cache(maxsize=4096)
def _channel(name: str, snr_db: float, threshold: float | None) -> Channel:
    made: Channel = build(Channel, name, snr_db=snr_db, threshold=threshold)
    return made


@lru_cache(maxsize=4096)
def _privacy(epsilon: float, delta: float, accountant: str, queries: int, lost: int) -> Privacy:
    return Privacy(epsilon, delta, accountant=accountant, queries=queries, lost=lost)


@cache
def engine() -> str:
    """The checksum of everything in the source that a number depends on: rows of another engine are made anew."""
    home = Path(airchoir.__file__).parent
    digest = hashlib.sha256(airchoir.__version__.encode())
    for part in _ENGINE:
        folder = home / part
        for file in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]:
            digest.update(f"{file.relative_to(home).as_posix()} ".encode() + file.read_bytes())
    return digest.hexdigest()


_ENGINE = (
    "_types",
    "metrics",
    "bank",
    "rules",
    "participation",
    "privacy",
    "channels",
    "access",
    "link",
    "scheme",
    "quadrature",
    "ballots",
    "exact",
    "montecarlo",
)


NUMBERS = (
    "macro_f1",
    "macro_f1_std",
    "macro_f1_se",
    "accuracy",
    "accuracy_std",
    "accuracy_se",
    "sigma",
    "channel_noise_variance",
    "channel_uses",
    "draws",
)
"""What a row says of a condition."""


_NUMBERS_OF = attrgetter(*NUMBERS)


def numbers(estimate: Estimate) -> tuple[Any, ...]:
    """The numbers of a row."""
    found: tuple[Any, ...] = _NUMBERS_OF(estimate)
    return found
