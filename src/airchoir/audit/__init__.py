"""audit_privacy(): a lower bound on epsilon, measured: the real mechanism sings, and an attacker guesses which choir it was.

Two neighbouring choirs differ in one client's whole model, in all queries that the promise covers together. Each is heard
many times through `scheme.hear`, without the receiver's noise, which no promise counts. An attacker who says "the first" in a
share `true` of the first choir's runs and in a share `false` of the second's proves, at the claim's delta,

    epsilon >= log((true - delta) / false)      whatever the mechanism does [Kairouz, Oh and Viswanath 2015, Theorem 2.1]
    mu >= Phi^-1(true) - Phi^-1(false)          if its trade-off is Gaussian [Dong, Roth and Su 2022, Section 2.2]

and mu is an epsilon by the Gaussian mechanism. Both shares are replaced by their one-sided Clopper-Pearson bounds.

**Which bound counts when.** The first always. The second where no amplification by sampling is claimed: there the theorem
promises all of the Gaussian trade-off of mu = C sqrt(T) / sigma, at p = 1 exactly attained, and rates beyond it refute the
theorem's promise. With amplification the trade-off is no Gaussian's: the second bound is not stated, and the verdict rests on
the first alone. That one must count errors as rare as delta to come close to epsilon, so at small delta a consistent verdict
says little: one participant set reused over 100 queries is found at p = 0.1 and delta = 1e-3 (20 clients), but is out of reach
at p = 0.5 and delta = 1e-6. The attacker is not told |P_t|, even if the accountant allows for it (`counted`).

**Confidence.** Attack and threshold are chosen in rehearsals, then measured once, on runs of their own: nothing needs
correcting for how many were tried, and all bounds hold together with the stated confidence. A mechanism that keeps its promise
is called violated at most as often as the confidence leaves open.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airchoir.audit.attacks import Stage, battery
from airchoir.audit.evidence import Bound, Guess, epsilon_of, epsilon_shown, measure, mu_shown, rehearse
from airchoir.bank import ScoreBank
from airchoir.exact import Progress
from airchoir.privacy import check_sigma
from airchoir.privacy.ledger import Mechanism
from airchoir.scheme import Scheme

FEWEST_REPEATS = 100
_QUERIES = 400_000
_REPEATS = 10_000
_KEPT = 4
"""Each round of rehearsals keeps one in so many attacks."""


@dataclass(frozen=True)
class Audit:
    """What was claimed, and what an attacker showed."""

    epsilon: float
    """The claim."""
    delta: float
    queries: int
    """T: the claim is about so many queries together, and so were the attacks."""
    sigma: float
    accountant: str
    lower_bound: float
    """On epsilon at delta, whatever the mechanism does."""
    attack: str
    gaussian_lower_bound: float | None
    """On epsilon at delta if the trade-off is Gaussian; None where amplification is claimed, for then it is not."""
    gaussian_attack: str | None
    confidence: float
    """With which all bounds hold together."""
    repeats: int
    """Measured runs of each choir."""

    @property
    def violated(self) -> bool:
        """Whether a lower bound that counts exceeds the claim."""
        return max(self.lower_bound, self.gaussian_lower_bound or 0.0) > self.epsilon

    @property
    def verdict(self) -> str:
        """In one word."""
        return "VIOLATED" if self.violated else "consistent"


def audit_privacy(
    scheme: Scheme,
    *,
    clients: int = 20,
    classes: int = 10,
    sigma: float | None = None,
    repeats: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> Audit:
    """The promise of `scheme.privacy` beside what attacks on the real mechanism prove.

    A `sigma` is audited instead of the noise that the promise asks for; if the promise is infinite the claim is what this
    sigma costs. `repeats` runs of each choir are measured, by default enough for 400,000 queries; rehearsals take
    up to three times as many. The channel is the scheme's at infinite SNR. `progress` hears of runs done and in total.

    >>> from airchoir import Privacy
    >>> found = audit_privacy(Scheme(privacy=Privacy(epsilon=1.0, delta=1e-6)), clients=2, classes=2, repeats=20_000)
    >>> found.verdict, found.lower_bound < found.gaussian_lower_bound < 1.0
    ('consistent', True)
    """
    privacy = scheme.privacy
    repeats = max(_REPEATS, _QUERIES // privacy.queries) if repeats is None else repeats
    _check(clients=clients, classes=classes, repeats=repeats, confidence=confidence, seed=seed)
    stage, claim = _set_up(scheme, clients=clients, classes=classes, sigma=sigma, seed=seed)
    bounds: list[Bound] = [lambda true, false: epsilon_shown(true, false, privacy.delta)]
    if not stage.amplified:
        bounds.append(mu_shown)
    shown, guesses = _contest(stage, bounds, repeats, (1.0 - confidence) / (2 * len(bounds)), progress)
    return Audit(
        epsilon=claim,
        delta=privacy.delta,
        queries=privacy.queries,
        sigma=stage.link.sigma,
        accountant=privacy.accountant,
        lower_bound=max(0.0, shown[0]),
        attack=guesses[0].title,
        gaussian_lower_bound=None if stage.amplified else epsilon_of(shown[1], privacy.delta, stage.geometry),
        gaussian_attack=None if stage.amplified else guesses[1].title,
        confidence=confidence,
        repeats=repeats,
    )


def _check(*, clients: int, classes: int, repeats: int, confidence: float, seed: int) -> None:
    """A ValueError for what no audit can work with."""
    if not (isinstance(clients, int | np.integer) and clients >= 1):
        raise ValueError(f"clients must be a whole number >= 1, got {clients!r}; a choir needs a voice")
    if not (isinstance(classes, int | np.integer) and classes >= 2):
        raise ValueError(f"classes must be a whole number >= 2, got {classes!r}; deciding needs a choice")
    if not (isinstance(repeats, int | np.integer) and repeats >= FEWEST_REPEATS):
        raise ValueError(
            f"repeats must be a whole number >= {FEWEST_REPEATS}, got {repeats!r}; fewer runs prove nothing about rates"
        )
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}; 0.95 is a common choice")
    if not (isinstance(seed, int | np.integer) and seed >= 0):
        raise ValueError(f"seed must be a whole number >= 0, got {seed!r}; any of them names a reproducible audit")


def _set_up(scheme: Scheme, *, clients: int, classes: int, sigma: float | None, seed: int) -> tuple[Stage, float]:
    """The stage, without the receiver's noise, and the epsilon that is claimed for what happens on it."""
    privacy, channel = scheme.privacy, scheme.channel
    dataclass_channel: Any = channel
    scheme = replace(scheme, channel=replace(dataclass_channel, snr_db=math.inf))
    scores, labels = np.eye(classes, dtype=np.float32)[np.zeros((clients, 1), dtype=int)], np.zeros(1, dtype=np.int64)
    bank = ScoreBank(scores, labels, scores, labels)
    if sigma is None:
        link = scheme.link(bank)
    else:
        check_sigma(sigma)
        noiseless = replace(scheme, privacy=replace(privacy, epsilon=math.inf, queries=1))
        link = replace(noiseless.link(bank), sigma=float(sigma))
    hidden = scheme.access.hidden(link.participation, link.lost)
    claim = float(privacy.epsilon)
    if claim == math.inf and link.sigma > 0.0:
        mechanism = Mechanism(privacy.accountant, scheme.rule.geometry(classes), hidden, link.sigma)
        claim = mechanism.epsilon(privacy.delta, queries=privacy.queries)
    if claim == math.inf:
        raise ValueError("epsilon is inf, which promises nothing to audit; give a finite epsilon, or a sigma above 0")
    return Stage(scheme, link, amplified=not hidden.certain, seeds=np.random.SeedSequence(seed)), claim


def _contest(
    stage: Stage, bounds: list[Bound], repeats: int, risk: float, progress: Progress | None
) -> tuple[list[float], list[Guess]]:
    """What each bound proves, and by which guess.

    Every round of rehearsals keeps the best attacks, by the bound that sees most, the last. The winner rehearses once more, as
    long as the performance, to place the thresholds.
    """
    contenders = battery(stage)
    rounds = _rounds(len(contenders), repeats)
    total, done = sum(count * runs for count, runs in rounds) + repeats, 0
    report = progress or (lambda done, total: None)
    for count, runs in rounds:
        rehearsed = []
        for attack in contenders:
            rehearsed.append(rehearse(stage, attack, bounds, runs, risk))
            report(done := done + runs, total)
        rehearsed.sort(key=lambda found: found[-1][0], reverse=True)
        contenders = [found[-1][1].attack for found in rehearsed[: _fewer(count)]]
    guesses = [guess for _, guess in rehearsed[0]]
    shown = measure(stage, guesses, bounds, repeats, risk)
    report(total, total)
    return shown, guesses


def _rounds(attacks: int, repeats: int) -> list[tuple[int, int]]:
    """How many attacks are rehearsed in each round, down to one, and in how many runs each.

    >>> _rounds(20, 100_000)
    [(20, 2500), (5, 10000), (2, 25000), (1, 100000)]
    """
    if attacks == 1:
        return [(1, repeats)]
    return [(attacks, max(FEWEST_REPEATS, repeats // 2 // attacks)), *_rounds(_fewer(attacks), repeats)]


def _fewer(count: int) -> int:
    return math.ceil(count / _KEPT)
