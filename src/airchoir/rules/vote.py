"""Majority voting [paper, Section III-A]: each client sends the one-hot of its most probable class."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir._types import Scores, Symbols
from airchoir.rules import SIMPLEX, Geometry, Rule


@dataclass(frozen=True)
class MajorityVote(Rule):
    """Sends the one-hot of argmax r_i, the first index on ties.

    >>> MajorityVote().encode(np.array([[[0.2, 0.7, 0.1]]]))
    array([[[0., 1., 0.]]])
    """

    name: ClassVar[str] = "vote"
    one_hot: ClassVar[bool] = True

    def encode(self, scores: Scores) -> Symbols:
        votes = np.zeros(scores.shape)
        np.put_along_axis(votes, np.argmax(scores, axis=-1, keepdims=True), 1.0, axis=-1)
        return votes

    def geometry(self, classes: int) -> Geometry:
        return SIMPLEX
