"""The known answers, and Theorems 1 and 2 a second time: straight from their formulas, in 50 digits."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

from airchoir.participation import Participation

Number = Any
ALONE = Participation(1, 1.0)


class Exact:
    """Nothing here cancels below 30 digits in the range the tests use, so float comparisons are against the truth."""

    def __init__(self) -> None:
        self.mp = mpmath.mp.clone()
        self.mp.dps = 50

    def number(self, x: float | str) -> Number:
        return self.mp.mpf(x)

    def phi(self, x: Number) -> Number:
        return self.mp.erfc(-x / self.mp.sqrt(2)) / 2

    def gaussian_delta(self, epsilon: Number, mu: Number) -> Number:
        """[Balle and Wang 2018, Theorem 8]"""
        epsilon, mu = self.mp.mpf(epsilon), self.mp.mpf(mu)
        return self.phi(mu / 2 - epsilon / mu) - self.mp.exp(epsilon) * self.phi(-mu / 2 - epsilon / mu)

    def delta(self, epsilon: Number, sigma: Number, law: Participation = ALONE) -> Number:
        """[paper, Theorem 2]; Theorem 1 where eta = 1."""
        eta = self.eta(law)
        return eta * self.gaussian_delta(self.inner_epsilon(epsilon, eta), self.mp.sqrt(2) / self.mp.mpf(sigma))

    def eta(self, law: Participation) -> Number:
        p = self.mp.mpf(law.probability)
        return p if law.at_least == 0 else p / (1 - (1 - p) ** law.clients)

    def inner_epsilon(self, epsilon: Number, eta: Number) -> Number:
        return self.mp.log1p(self.mp.expm1(self.mp.mpf(epsilon)) / eta)

    def invert(self, falling: Callable[[Number], Number], value: float) -> Number:
        """x > 0 with falling(x) = value to 20 digits, by bisection in logarithms from a bracket that moves until it fits."""
        exp, low = self.mp.exp, self.mp.mpf(0)
        while falling(exp(low)) < value:
            low -= 1
        while falling(exp(low + 1)) > value:
            low += 1
        high = low + 1
        for _ in range(67):
            middle = (low + high) / 2
            low, high = (middle, high) if falling(exp(middle)) > value else (low, middle)
        return exp(high)


@pytest.fixture(scope="session")
def exact() -> Exact:
    return Exact()


@pytest.fixture(scope="session")
def known_answers() -> dict[str, list[list[float]]]:
    path = Path(__file__).parents[1] / "known_answers" / "privacy.json"
    answers: dict[str, list[list[float]]] = json.loads(path.read_text())
    return answers


Mixture = tuple[np.ndarray, np.ndarray]
"""Means (components, dimensions) and weights (components,)."""


def _directions(means: np.ndarray, along: np.ndarray) -> np.ndarray:
    """An orthonormal basis of all that the means differ by, `along` first."""
    first = along / np.linalg.norm(along)
    rest = means - means[0]
    rest = rest - np.outer(rest @ first, first)
    _, sizes, others = np.linalg.svd(rest, full_matrices=False)
    return np.vstack([first, others[sizes > 1e-9]])


def _upper_tail_of_positive_part(weights: np.ndarray, means: np.ndarray) -> np.ndarray:
    """For every row the integral of (sum of weights[row, i] phi(x - means[i]))_+ over x: roots by bisection, then Phi."""
    grid = np.linspace(means.min() - 9.0, means.max() + 9.0, 240)

    def value(x: np.ndarray, row: np.ndarray) -> np.ndarray:
        return (weights[row] * np.exp(-((x[:, None] - means) ** 2) / 2)).sum(axis=1)

    signs = weights @ np.exp(-((grid[None, :] - means[:, None]) ** 2) / 2) > 0.0
    row, cell = np.nonzero(signs[:, 1:] != signs[:, :-1])
    rising = signs[row, cell + 1]
    low, high = grid[cell], grid[cell + 1]
    for _ in range(45):
        middle = (low + high) / 2
        right = (value(middle, row) > 0.0) != rising
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    tail = (weights[row] * special.ndtr(means - low[:, None])).sum(axis=1)
    total = np.where(signs[:, 0], weights.sum(axis=1), 0.0)
    np.add.at(total, row, np.where(rising, tail, -tail))
    return total


def _hockey_stick(one: Mixture, other: Mixture, alpha: float, sigma: float, along: np.ndarray) -> float:
    """The integral of (p - alpha q)_+ for two mixtures of N(mean, sigma^2 I): exact along one axis, trapezoid across."""
    means = np.concatenate([one[0], other[0]]) / sigma
    weights = np.concatenate([one[1], -alpha * other[1]])
    coordinates = means @ _directions(means, along).T
    step = 0.15 if coordinates.shape[1] == 2 else 0.4
    axes = [np.arange(c.min() - 8.5, c.max() + 8.5, step) for c in coordinates.T[1:]]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)) if axes else np.zeros((1, 0))
    squares = ((points[:, None, :] - coordinates[None, :, 1:]) ** 2).sum(axis=-1)
    across = weights * np.exp(-squares / 2) * (step / math.sqrt(2 * math.pi)) ** len(axes)
    return float(_upper_tail_of_positive_part(across, coordinates[:, 0]).sum())


@pytest.fixture(scope="session")
def hockey_stick() -> Callable[..., float]:
    """A function of two mixtures, alpha, sigma and the axis along which they differ most."""
    return _hockey_stick
