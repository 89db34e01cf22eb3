"""[open] How a client turns its scores into a symbol, and how the server turns the sum into a label.

To add a rule, add a file here with one frozen dataclass that derives from `Rule`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from airchoir._types import Labels, Scores, Sums, Symbols


@dataclass(frozen=True)
class Geometry:
    """What a privacy theorem may assume of the symbols x that one client can send.

    `sensitivity` is the largest |x - x'|, `largest_norm` the largest |x|, and `smallest_inner_product` the
    smallest <x, x'> of two symbols, all in the L2 geometry.
    """

    sensitivity: float
    largest_norm: float
    smallest_inner_product: float


class Rule(ABC):
    """Scores -> symbols, sum -> label. The label is always the argmax of the sum: the exact engine relies on it."""

    name: ClassVar[str]
    one_hot: ClassVar[bool]
    """Whether every symbol is a one-hot vector, up to a constant added to all its entries: sums can be solved as counts."""

    @abstractmethod
    def encode(self, scores: Scores) -> Symbols:
        """The symbols of every client, in float64."""

    @abstractmethod
    def geometry(self, classes: int) -> Geometry:
        """What the accountant may assume of the symbols."""

    @final
    def decide(self, sums: Sums) -> Labels:
        """The label of every query: the largest sum, the first one on ties."""
        return first_largest(sums)


def first_largest(sums: Sums) -> Labels:
    """The index of the largest entry, the first one on ties.

    >>> first_largest(np.array([[0.2, 0.4, 0.4]]))
    array([1])
    """
    return np.argmax(sums, axis=-1).astype(np.int64, copy=False)


SIMPLEX = Geometry(sensitivity=float(np.sqrt(2.0)), largest_norm=1.0, smallest_inner_product=0.0)
"""The geometry of everything that is non-negative and sums to 1: worst are two different one-hot vectors."""
