"""The paper's methods and setting, and which methods a choir can use: a bank without validation scores has no best client."""

import math
from collections.abc import Sequence

from airchoir.access import Access
from airchoir.access.best_client import BestClient
from airchoir.access.orthogonal import Orthogonal
from airchoir.access.over_the_air import OverTheAir
from airchoir.experiments.choirs import Choir
from airchoir.rules import Rule
from airchoir.rules.belief import BeliefSum
from airchoir.rules.vote import MajorityVote

VOTE, APART = "Majority Voting with OAC", "Orthogonal Majority Voting"
"""The choir and its nearest relative: one sum of votes, and votes one by one."""
BELIEF, BEST = "Belief Summation with OAC", "Best Client Model"
METHODS: dict[str, tuple[Rule, Access]] = {
    BEST: (MajorityVote(), BestClient()),
    APART: (MajorityVote(), Orthogonal()),
    "Orthogonal Belief Summation": (BeliefSum(), Orthogonal()),
    VOTE: (MajorityVote(), OverTheAir()),
    BELIEF: (BeliefSum(), OverTheAir()),
}
"""The paper's row names, in its order."""
EPSILONS = (math.inf, 1.0)
CLIENTS, DELTA, SNR_DB = 20, 1e-6, 10.0
"""The paper's."""


def methods_of(choir: Choir) -> tuple[str, ...]:
    """The names of the methods, in the paper's order."""
    judged = all(bank.val_scores is not None for bank in choir.banks)
    return tuple(method for method, (_, access) in METHODS.items() if judged or not isinstance(access, BestClient))


def common_methods(choirs: Sequence[Choir]) -> tuple[str, ...]:
    """Those that every choir can use."""
    return tuple(method for method in METHODS if all(method in methods_of(choir) for choir in choirs))


def style_of(method: str) -> int:
    """The style of a method's curves, the same in every figure."""
    return list(METHODS).index(method)


def without_best_client(choirs: Sequence[Choir]) -> tuple[str, ...]:
    """A note on every choir that has no best client."""
    return tuple(
        f"{choir.title}: no best client, for a bank here has no validation scores to choose it by."
        for choir in choirs
        if BEST not in methods_of(choir)
    )


def other_clients(compared: Sequence[Choir]) -> tuple[str, ...]:
    """A note on every choir that is compared with the paper and has another number of clients."""
    return tuple(
        f"{choir.title}: {choir.clients} clients here, {CLIENTS} in the paper: its numbers are no measure of these."
        for choir in compared
        if choir.clients != CLIENTS
    )
