"""Smaller choirs: some of a bank's clients, over several random hands."""

from collections.abc import Sequence

import numpy as np

from airchoir.experiments.choirs import Choir

SEED = 20220203
"""Deals the hands; the same for every task, bank and method, so that all are compared on the same clients."""


def hands(clients: int, size: int, *, least: int, seed: int = SEED) -> tuple[tuple[int, ...], ...]:
    """Sets of `size` clients, dealt from shuffled decks of all of them: as many as a deck holds, and at least `least`.

    So few clients at a time are all heard, or nearly, and all about equally often. With all clients there is one hand.

    >>> [len(hands(20, size, least=4)) for size in (1, 3, 8, 20)]
    [20, 6, 4, 1]
    """
    if size == clients:
        return (tuple(range(clients)),)
    rng = np.random.default_rng([seed, size])
    dealt: list[tuple[int, ...]] = []
    while len(dealt) < max(least, clients // size):
        deck = rng.permutation(clients)
        dealt.extend(tuple(sorted(map(int, deck[a : a + size]))) for a in range(0, clients - size + 1, size))
    return tuple(dealt[: max(least, clients // size)])


def smaller(choir: Choir, dealt: Sequence[Sequence[int]]) -> Choir:
    """The choir of every hand of every bank: what is measured on it is an average over hands, all of one size."""
    banks = tuple(bank.subset(hand) for hand in dealt for bank in choir.banks)
    return Choir(choir.task, choir.paths * len(dealt), banks)


def sizes_within(sizes: Sequence[int], clients: int) -> tuple[int, ...]:
    """Those of the sizes that are below the number of clients, and that number."""
    return (*sorted({size for size in sizes if 0 < size < clients}), clients)
