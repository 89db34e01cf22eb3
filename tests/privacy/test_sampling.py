"""eta and the inner epsilon of an array."""

import math
from typing import Any

import numpy as np
import pytest

from airchoir.participation import Participation
from airchoir.privacy.sampling import inner_epsilons, log_inclusion

EPSILONS = [0.0, 1e-12, 1e-3, 0.5, 1.0, 1.0 + 1e-15, 8.0, 700.0, 710.0, 1000.0]


@pytest.mark.parametrize("eta", [1e-9, 1e-4, 0.3, 0.5, 1 - 1e-12, 1.0])
def test_inner_epsilons_agree_with_50_digits_across_their_two_formulas(exact: Any, eta: float) -> None:
    for epsilon, found in zip(EPSILONS, inner_epsilons(np.array(EPSILONS), eta), strict=True):
        truth = exact.inner_epsilon(exact.number(epsilon), exact.number(eta))
        assert found == pytest.approx(float(truth), rel=4 * math.ulp(1.0), abs=0)


def test_eta_may_vary_along_with_epsilon() -> None:
    etas = np.array([0.1, 0.5, 1.0])
    together = inner_epsilons(np.array(EPSILONS)[:, None], etas)
    assert np.array_equal(together, np.stack([inner_epsilons(np.array(EPSILONS), eta) for eta in etas], axis=1))


@pytest.mark.parametrize("law", [Participation(20, 0.1), Participation(1000, 1e-6), Participation(7, 0.3, at_least=0)])
def test_inclusion_is_rounded_up_by_less_than_1e_13(exact: Any, law: Participation) -> None:
    excess = exact.number(log_inclusion(law)) - exact.mp.log(exact.eta(law))
    assert 0 <= excess <= 1e-13


def test_certain_inclusion_is_exact() -> None:
    assert log_inclusion(Participation(5, 1.0)) == 0.0
