"""Two small tasks, and the numbers in a sentence."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from airchoir import Scheme, ScoreBank, evaluate
from airchoir.experiments.choirs import Choir

NUMBER = re.compile(r"(?<![A-Za-z\d.,])[+\-\u2212]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?|\u221e")


def in_words(text: str) -> list[float]:
    return [
        float(found.replace("\u221e", "inf").replace("\u2212", "-").replace(",", "")) for found in NUMBER.findall(text)
    ]


@pytest.fixture
def numbers() -> Callable[[str], list[float]]:
    """A function that finds all numbers in a sentence, in order; the 1 of F1 is none."""
    return in_words


@pytest.fixture
def two_tasks(make_bank: Callable[..., ScoreBank]) -> list[Choir]:
    """Two banks of one task, one of another, with other numbers of clients and classes."""
    alpha = tuple(make_bank(clients=6, queries=50, classes=3, seed=seed) for seed in (1, 2))
    return [Choir("alpha", (), alpha), Choir("beta", (), (make_bank(clients=4, queries=40, classes=2, seed=3),))]


def mean_over_banks(scheme: Scheme, choir: Choir, name: str = "macro_f1") -> float:
    return float(np.mean([getattr(evaluate(scheme, bank), name) for bank in choir.banks]))


@pytest.fixture
def mean() -> Callable[..., float]:
    """A function that evaluates a scheme on every bank of a choir and takes the mean of one number, macro-F1 by default."""
    return mean_over_banks
