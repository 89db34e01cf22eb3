"""Centring: send x - 1/k instead of x. The argmax stays, the power falls, and at p < 1 the tight bound improves."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir._types import Scores, Symbols
from airchoir.rules import SIMPLEX, Geometry, Rule
from airchoir.rules.belief import BeliefSum
from airchoir.rules.vote import MajorityVote


def centre(symbols: Symbols) -> Symbols:
    """The symbols less 1/k in every class: each sums to 0, and the sum's argmax is what it was."""
    return symbols - 1.0 / symbols.shape[-1]


def centred_simplex(classes: int) -> Geometry:
    """Distances stay; norms fall to sqrt(1 - 1/k); inner products, as <x - 1/k, y - 1/k> = <x, y> - 1/k, reach -1/k.

    >>> centred_simplex(2).smallest_inner_product
    -0.5
    """
    return Geometry(
        sensitivity=SIMPLEX.sensitivity,
        largest_norm=float(np.sqrt(1.0 - 1.0 / classes)),
        smallest_inner_product=-1.0 / classes,
    )


@dataclass(frozen=True)
class CentredVote(Rule):
    """Majority voting with x - 1/k; at k = 2 the symbols are (1/2, -1/2) and (-1/2, 1/2), at half the power.

    >>> CentredVote().encode(np.array([[[0.2, 0.8]]]))
    array([[[-0.5,  0.5]]])
    """

    name: ClassVar[str] = "centred-vote"
    one_hot: ClassVar[bool] = True

    def encode(self, scores: Scores) -> Symbols:
        return centre(MajorityVote().encode(scores))

    def geometry(self, classes: int) -> Geometry:
        return centred_simplex(classes)


@dataclass(frozen=True)
class CentredBelief(Rule):
    """Belief summation with x - 1/k: a client that knows nothing sends nothing."""

    name: ClassVar[str] = "centred-belief"
    one_hot: ClassVar[bool] = False

    def encode(self, scores: Scores) -> Symbols:
        return centre(BeliefSum().encode(scores))

    def geometry(self, classes: int) -> Geometry:
        return centred_simplex(classes)
