"""The known answers, and Theorems 1 and 2 a second time: straight from their formulas, in 50 digits."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import pytest

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
