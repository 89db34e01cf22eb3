"""Always-on: everyone transmits noise in every round, and its answer by its own coin [METHOD, always-on]."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from airchoir import (
    AlwaysOn,
    Awgn,
    BeliefSum,
    CentredVote,
    MajorityVote,
    OverTheAir,
    Privacy,
    Rayleigh,
    Scheme,
    ScoreBank,
    evaluate,
    simulate,
)
from airchoir.exact import decisions, noise_std
from airchoir.link import Link
from airchoir.participation import Participation
from airchoir.quadrature import decision_probabilities
from airchoir.scheme import answer, symbol_power

MakeBank = Callable[..., ScoreBank]


def make_scheme(
    probability: float, lost: int = 0, snr_db: float = 3.0, rule: Any = None, epsilon: float = 1.0
) -> Scheme:
    privacy = Privacy(epsilon, 1e-6, "tight", lost=lost)
    return Scheme(rule or MajorityVote(), AlwaysOn(), Awgn(snr_db), privacy, probability)


def every_set(clients: int, probability: float) -> tuple[np.ndarray, np.ndarray]:
    """All 2^n sets, the empty one too, with the chance of n independent coins."""
    present = np.array(list(product((False, True), repeat=clients))).T
    sizes = present.sum(axis=0)
    return present, probability**sizes * (1 - probability) ** (clients - sizes)


def test_the_law_of_the_set_is_not_conditioned() -> None:
    for lost in (0, 3):
        assert AlwaysOn().participation(7, 0.3, lost) == Participation(7, 0.3, at_least=0)
    sizes = AlwaysOn().participation(7, 0.3).draw(20_000, np.random.default_rng(0)).sum(axis=0)
    law = np.array([math.comb(7, m) * 0.3**m * 0.7 ** (7 - m) for m in range(8)])
    seen = np.bincount(sizes, minlength=8) / 20_000
    assert (np.abs(seen - law) <= 4 * np.sqrt(law * (1 - law) / 20_000)).all()


@pytest.mark.parametrize("lost", [0, 2])
def test_all_of_it_is_hidden_lost_clients_or_not(lost: int) -> None:
    law = AlwaysOn().participation(7, 0.3, lost)
    assert AlwaysOn().hidden(law, lost) == law
    assert AlwaysOn().hidden(law, lost).inclusion == 0.3


@pytest.mark.parametrize(("clients", "lost"), [(1, 0), (4, 0), (4, 1), (4, 3), (20, 5)])
def test_each_client_adds_sigma_over_the_root_of_those_who_are_counted_on(
    make_bank: MakeBank, clients: int, lost: int
) -> None:
    link = make_scheme(0.4, lost).link(make_bank(clients=clients))
    present, _ = every_set(min(clients, 4), 0.4)
    present = np.resize(present, (clients, present.shape[1]))
    expected = link.sigma / math.sqrt(clients - lost)
    np.testing.assert_allclose(AlwaysOn().client_noise_std(link, present), expected, rtol=1e-15)
    assert AlwaysOn().on_air(present).all(), "in every round"
    assert AlwaysOn().mean_client_noise_variance(link.sigma, link.participation, lost) == pytest.approx(
        expected**2, rel=1e-14
    )


@pytest.mark.parametrize("probability", [0.1, 0.5, 1.0])
def test_the_link_is_the_methods_row(make_bank: MakeBank, probability: float) -> None:
    """One slot, noise sigma^2 + v, k channel uses, power_i = mean x_i^2 + sigma^2 / n."""
    bank = make_bank(clients=5, classes=4)
    for rule in (MajorityVote(), BeliefSum()):
        scheme = make_scheme(probability, rule=rule)
        link = scheme.link(bank)
        v = (max(symbol_power(rule, bank)) + link.sigma**2 / 5) / 10**0.3
        np.testing.assert_array_equal(link.slots, np.zeros(5))
        assert link.channel_uses == 4
        assert link.slot_noise_variance[0] == pytest.approx(v, rel=1e-12)
        assert link.channel_noise_variance == pytest.approx(v, rel=1e-12), "an empty round is a round"
        assert noise_std(scheme, link) ** 2 == pytest.approx(link.sigma**2 + v, rel=1e-12)
        present, _ = every_set(5, probability)
        np.testing.assert_allclose(AlwaysOn().noise_variance(present, link), link.sigma**2 + v, rtol=1e-12)


@pytest.mark.parametrize(("probability", "sigma"), [(0.1, 1.4456111239), (0.3, 2.3290686305), (0.5, 3.2129394929)])
def test_sigma_is_the_known_answer_whatever_the_number_of_clients(
    make_bank: MakeBank, probability: float, sigma: float
) -> None:
    for clients in (1, 5, 20):
        assert make_scheme(probability).link(make_bank(clients=clients)).sigma == pytest.approx(sigma, rel=5e-11)


def test_an_empty_round_is_answered_by_noise_alone(make_bank: MakeBank) -> None:
    """Every label is as likely, and without any noise it is the first."""
    bank = make_bank(clients=3, classes=4, queries=1)
    scores = np.repeat(bank.test_scores, 20_000, axis=1)
    scheme = make_scheme(1e-12)
    labels = answer(scheme, scheme.link(bank), scores, np.random.default_rng(1))
    seen = np.bincount(labels, minlength=4) / 20_000
    assert np.abs(seen - 0.25).max() < 4 * math.sqrt(0.25 * 0.75 / 20_000)
    silent = make_scheme(1e-12, snr_db=math.inf, epsilon=math.inf)
    assert (answer(silent, silent.link(bank), scores[:, :50], np.random.default_rng(1)) == 0).all()


def enumerated(scheme: Scheme, link: Link, bank: ScoreBank) -> np.ndarray:
    """P(decide j) of every query: each set of clients in turn, the noise integrated."""
    symbols = scheme.rule.encode(bank.test_scores)
    present, chance = every_set(bank.clients, scheme.participation)
    total = np.zeros(symbols.shape[1:])
    for members, probability in zip(present.T, chance, strict=True):
        if probability > 0.0:
            total += probability * decision_probabilities(
                np.round(symbols[members].sum(axis=0), 12), noise_std(scheme, link)
            )
    return total


@pytest.mark.parametrize("rule", [MajorityVote(), CentredVote()], ids=["vote", "centred-vote"])
@pytest.mark.parametrize("probability", [0.05, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("lost", [0, 2])
@pytest.mark.parametrize("snr_db", [-10.0, 20.0])
def test_the_exact_engine_agrees_with_every_set_enumerated(
    make_bank: MakeBank, rule: Any, probability: float, lost: int, snr_db: float
) -> None:
    bank = make_bank(clients=5, classes=3, queries=40)
    for epsilon in (2.0, 100.0):
        scheme = make_scheme(probability, lost, snr_db, rule, epsilon)
        link = scheme.link(bank)
        found = decisions(scheme, bank).probabilities
        np.testing.assert_allclose(found, enumerated(scheme, link, bank), rtol=0, atol=1e-7)
        estimate = evaluate(scheme, bank)
        assert estimate.draws == 0, "votes need no drawing"
        expected = found[np.arange(40), bank.test_labels].mean()
        assert estimate.accuracy == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("rule", [MajorityVote(), CentredVote()], ids=["vote", "centred-vote"])
def test_without_any_noise_the_first_class_answers_empty_rounds(make_bank: MakeBank, rule: Any) -> None:
    bank = make_bank(clients=3, classes=3, queries=30)
    scheme = make_scheme(0.3, snr_db=math.inf, rule=rule, epsilon=math.inf)
    present, chance = every_set(3, 0.3)
    votes = MajorityVote().encode(bank.test_scores)
    expected = np.zeros((30, 3))
    for members, probability in zip(present.T, chance, strict=True):
        expected[np.arange(30), np.argmax(votes[members].sum(axis=0), axis=-1)] += probability
    np.testing.assert_allclose(decisions(scheme, bank).probabilities, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rule", [MajorityVote(), BeliefSum()], ids=["vote", "belief"])
def test_the_literal_path_and_the_exact_engine_agree_within_4_standard_errors(make_bank: MakeBank, rule: Any) -> None:
    bank = make_bank(clients=4, classes=3, queries=40)
    scheme, rng, repeats = make_scheme(0.3, rule=rule, epsilon=10.0), np.random.default_rng(6), 3000
    link = scheme.link(bank)
    scores = np.repeat(bank.test_scores, repeats, axis=1)
    labels = answer(scheme, link, scores, rng).reshape(40, repeats)
    seen = np.stack([(labels == j).mean(axis=1) for j in range(3)], axis=1)
    truth = enumerated(scheme, link, bank)
    error = np.sqrt(truth * (1 - truth) / repeats)
    assert (np.abs(seen - truth) <= 4 * error).all()
    simulated, exact = simulate(scheme, bank, repeats=400, seed=3), evaluate(scheme, bank)
    assert simulated.accuracy == pytest.approx(
        exact.accuracy, abs=4 * math.hypot(simulated.accuracy_se, exact.accuracy_se)
    )


def test_everyone_taking_part_is_over_the_air(make_bank: MakeBank) -> None:
    bank = make_bank(clients=5)
    always, air = (Scheme(access=access, privacy=Privacy(1.0, 1e-6, "tight")) for access in (AlwaysOn(), OverTheAir()))
    assert evaluate(always, bank).macro_f1 == pytest.approx(evaluate(air, bank).macro_f1, abs=1e-12)
    assert always.link(bank).sigma == air.link(bank).sigma
    np.testing.assert_array_equal(always.link(bank).amplitudes, air.link(bank).amplitudes)


def test_fading_is_refused_because_a_client_in_a_deep_fade_cannot_transmit() -> None:
    for probability in (0.5, 1.0):
        with pytest.raises(
            ValueError, match=r"\A(always-on needs every client [^\n]+; use awgn|participation 1 with Ray)"
        ):
            Scheme(access=AlwaysOn(), channel=Rayleigh(10.0), participation=probability)
    with pytest.raises(
        ValueError, match=r"\Aalways-on needs every client in every round[^\n]+; use awgn, or over-the-air\Z"
    ):
        Scheme(access=AlwaysOn(), channel=Rayleigh(10.0), participation=0.5)
