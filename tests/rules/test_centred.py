"""Centring: x - 1/k decides the same and costs less power."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from airchoir import (
    AlwaysOn,
    Awgn,
    BeliefSum,
    CentredBelief,
    CentredVote,
    MajorityVote,
    Orthogonal,
    OverTheAir,
    Privacy,
    Scheme,
    ScoreBank,
    evaluate,
    infer,
)
from airchoir.exact import decisions, noise_std
from airchoir.rules import SIMPLEX
from airchoir.rules.centred import centred_simplex
from airchoir.scheme import symbol_power

MakeBank = Callable[..., ScoreBank]
PAIRS = [
    pytest.param(MajorityVote(), CentredVote(), id="vote"),
    pytest.param(BeliefSum(), CentredBelief(), id="belief"),
]
every_pair = pytest.mark.parametrize(("plain", "centred"), PAIRS)
SILENT = Awgn(snr_db=math.inf)


@every_pair
@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_a_symbol_is_the_plain_one_less_1_over_k(plain: Any, centred: Any, classes: int) -> None:
    scores = np.random.default_rng(0).dirichlet(np.full(classes, 0.3), (3, 5))
    symbols = centred.encode(scores)
    np.testing.assert_allclose(symbols, plain.encode(scores) - 1 / classes, rtol=0, atol=1e-15)
    np.testing.assert_allclose(symbols.sum(axis=-1), 0.0, atol=1e-13)
    assert centred.one_hot == plain.one_hot


@pytest.mark.parametrize("classes", [2, 3, 7, 100])
def test_the_geometry_in_rational_numbers(classes: int) -> None:
    """Of e_1 - 1/k and e_2 - 1/k: |.|^2 = 1 - 1/k, <.,.> = -1/k, |difference|^2 = 2."""
    first = [Fraction(int(j == 0)) - Fraction(1, classes) for j in range(classes)]
    second = [Fraction(int(j == 1)) - Fraction(1, classes) for j in range(classes)]
    geometry = centred_simplex(classes)
    assert geometry.largest_norm**2 == pytest.approx(float(sum(a * a for a in first)), rel=1e-15)
    inner = sum((a * b for a, b in zip(first, second, strict=True)), Fraction(0))
    assert geometry.smallest_inner_product == pytest.approx(float(inner), rel=1e-15)
    distance = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    assert geometry.sensitivity**2 == pytest.approx(float(distance), rel=1e-15)
    assert geometry.sensitivity == SIMPLEX.sensitivity


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 7), st.integers(1, 4), st.integers(2, 11)),
        elements=st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 1.0]),
    )
)
def test_without_noise_every_label_is_the_plain_rules_ties_and_all(weights: np.ndarray) -> None:
    """Through the whole scheme, where the sum's rounding must not decide between equal votes."""
    weights = np.where(weights.sum(axis=-1, keepdims=True) == 0.0, 1.0, weights)
    scores = (weights / weights.sum(axis=-1, keepdims=True)).astype("float32")
    bank = ScoreBank(scores, np.zeros(scores.shape[1], dtype=np.int64))
    for access, probability in ((OverTheAir(), 1.0), (OverTheAir(), 0.5), (AlwaysOn(), 0.5)):
        for plain, centred in ((MajorityVote(), CentredVote()), (BeliefSum(), CentredBelief())):
            one, other = (
                infer(
                    Scheme(rule, access, SILENT, participation=probability),
                    bank,
                    rng=np.random.default_rng(7),
                )
                for rule in (plain, centred)
            )
            np.testing.assert_array_equal(one, other)


def test_two_votes_each_are_a_tie_for_the_first_class_at_any_k() -> None:
    for classes in (3, 6, 7, 11, 49):
        scores = np.eye(classes, dtype="float32")[[[2], [1], [2], [1]]]
        bank = ScoreBank(scores, np.array([0]))
        for rule in (MajorityVote(), CentredVote(), BeliefSum(), CentredBelief()):
            scheme = Scheme(rule, channel=SILENT)
            assert infer(scheme, bank, rng=np.random.default_rng(0)) == [1]
            assert decisions(scheme, bank).probabilities[0, 1] == 1.0


@every_pair
def test_two_classes_cost_half_a_votes_power_and_k_classes_1_less_1_over_k(
    make_bank: MakeBank, plain: Any, centred: Any
) -> None:
    """sum (x - 1/k)^2 = sum x^2 - 1/k: per channel use 1/k^2 less, whatever the rule."""
    for classes in (2, 4, 10):
        bank = make_bank(classes=classes)
        before, after = symbol_power(plain, bank), symbol_power(centred, bank)
        np.testing.assert_allclose(before - after, 1 / classes**2, rtol=1e-6)  # scores are rows of float32
        if plain.one_hot:
            np.testing.assert_allclose(after / before, 1 - 1 / classes, rtol=1e-12)


@every_pair
@pytest.mark.parametrize("access", [OverTheAir(), AlwaysOn(), Orthogonal()], ids=lambda access: access.name)
@pytest.mark.parametrize("probability", [1.0, 0.4])
def test_at_equal_noise_decisions_are_the_plain_rules(
    make_bank: MakeBank, plain: Any, centred: Any, access: Any, probability: float
) -> None:
    """Theorem 1 and 2 give both the same sigma, and at infinite SNR there is no other noise."""
    bank = make_bank(clients=5, classes=4, queries=50)
    one, other = (
        Scheme(rule, access, SILENT, Privacy(3.0, 1e-3), participation=probability) for rule in (plain, centred)
    )
    assert one.link(bank).sigma == other.link(bank).sigma > 0.0
    assert noise_std(one, one.link(bank)) == noise_std(other, other.link(bank))
    first, second = (decisions(scheme, bank, draws=3, seed=1).probabilities for scheme in (one, other))
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-7)


@every_pair
def test_at_low_snr_less_power_is_less_receiver_noise_by_hand(make_bank: MakeBank, plain: Any, centred: Any) -> None:
    bank = make_bank(clients=5, classes=2)
    for rule in (plain, centred):
        link = Scheme(rule, channel=Awgn(-10.0), privacy=Privacy(1.0, 1e-6)).link(bank)
        power = float(np.mean(rule.encode(bank.test_scores) ** 2, axis=(1, 2)).max())
        assert link.slot_noise_variance[0] == pytest.approx((power + link.sigma**2 / 5) / 0.1, rel=1e-12)
    v = [Scheme(rule, channel=Awgn(-10.0)).link(bank).slot_noise_variance[0] for rule in (plain, centred)]
    assert v[1] < v[0]
    if plain.one_hot:
        assert v[1] == pytest.approx(v[0] / 2, rel=1e-12)
        f1 = [evaluate(Scheme(rule, channel=Awgn(-10.0)), bank).macro_f1 for rule in (plain, centred)]
        assert f1[1] > f1[0]


@pytest.mark.parametrize("access", [OverTheAir(), AlwaysOn()], ids=lambda access: access.name)
@pytest.mark.parametrize("rule", [CentredVote(), CentredBelief()], ids=lambda rule: rule.name)
def test_only_the_tight_theorem_gains_privacy_from_it(make_bank: MakeBank, access: Any, rule: Any) -> None:
    bank = make_bank(clients=20, classes=2)
    plain = MajorityVote() if rule.one_hot else BeliefSum()
    for accountant in ("paper", "tight", "counted"):
        before, after = (
            Scheme(r, access, privacy=Privacy(1.0, 1e-6, accountant), participation=0.5).link(bank).sigma
            for r in (plain, rule)
        )
        gains = accountant == "tight" or (accountant == "counted" and isinstance(access, AlwaysOn))
        assert (after < 0.94 * before) if gains else after == before
