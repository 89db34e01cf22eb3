"""The attacks: their likelihood ratio against every participant set, their choirs, and who is lost."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from airchoir import (
    AlwaysOn,
    Awgn,
    BeliefSum,
    CentredVote,
    MajorityVote,
    Orthogonal,
    OverTheAir,
    Privacy,
    Scheme,
    ScoreBank,
)
from airchoir._types import Present, Received, Symbols
from airchoir.access import Access
from airchoir.audit.attacks import Attack, Losing, Stage, battery, log_likelihood_ratio, perform
from airchoir.channels import Channel
from airchoir.link import Link
from airchoir.rules import Rule


def make_stage(scheme: Scheme, *, clients: int = 4, classes: int = 3) -> Stage:
    scores = np.eye(classes, dtype=np.float32)[np.zeros((clients, 1), dtype=int)]
    link = scheme.link(ScoreBank(scores, np.zeros(1, dtype=np.int64)))
    amplified = not scheme.access.hidden(link.participation, link.lost).certain
    return Stage(scheme, link, amplified, np.random.SeedSequence(3))


def enumerated_ratio(stage: Stage, attack: Attack, answers: np.ndarray, voices: int) -> np.ndarray:
    """The same from all classes and every set of those whose answers arrive, straight from the density."""
    densities = []
    for choir in (0, 1):
        symbols = stage.scheme.rule.encode(attack.scores(stage, choir)[:voices])[:, 0]
        density, law = np.zeros(len(answers)), stage.link.participation
        for present in product((0, 1), repeat=voices):
            if sum(present) >= law.at_least:
                weight = np.prod(np.where(present, law.probability, 1.0 - law.probability))
                mean = np.array(present) @ symbols
                density += weight * stats.multivariate_normal(mean, stage.link.sigma**2).pdf(answers)
        densities.append(density)
    return np.log(densities[0]) - np.log(densities[1])


@pytest.mark.parametrize("rule", [MajorityVote(), BeliefSum(), CentredVote()], ids=lambda rule: rule.name)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("access", "lost"), [(OverTheAir(), 0), (AlwaysOn(), 0), (AlwaysOn(), 2)])
def test_the_likelihood_ratio_is_that_of_the_mixture_over_all_sets(
    access: Access, lost: int, rule: Rule, classes: int
) -> None:
    stage = make_stage(Scheme(rule, access, Awgn(math.inf), Privacy(2.0, 0.01, lost=lost), 0.4), classes=classes)
    answers = np.random.default_rng(0).normal(0.5, 2.0, (40, classes))
    attacks = [attack for attack in battery(stage) if attack.victim == 0]
    assert {attack.others for attack in attacks} == {1, classes - 1}
    for attack in attacks:
        heard = answers[:, None] @ attack.directions(stage).T
        found = log_likelihood_ratio(stage, attack, heard)[:, 0]
        np.testing.assert_allclose(
            found, enumerated_ratio(stage, attack, answers, voices=4 - lost), rtol=1e-9, atol=1e-12
        )


def test_the_likelihood_ratio_survives_little_noise() -> None:
    """Densities of 1e-5000 have a ratio too."""
    stage = make_stage(Scheme(access=AlwaysOn(), privacy=Privacy(1e4, 0.01), participation=0.5))
    attack = battery(stage)[0]
    heard = np.array([[[1.0, 0.0, 1.0]], [[0.0, 1.0, 1.0]], [[0.0, 0.0, 3.0]]])
    ratio = log_likelihood_ratio(stage, attack, heard)[:, 0]
    assert np.isfinite(ratio).all()
    assert ratio[0] == -ratio[1] > 1e3
    assert ratio[2] == 0.0


def test_under_the_second_choir_the_mean_likelihood_ratio_is_one() -> None:
    """E_Q[dP/dQ] = 1 within 4 standard errors, through the real path: what is heard has the density that was claimed."""
    for access in (OverTheAir(), AlwaysOn()):
        stage = make_stage(Scheme(access=access, channel=Awgn(math.inf), privacy=Privacy(1.0, 0.05), participation=0.4))
        for attack in (each for each in battery(stage) if each.victim == 2):
            blocks = perform(stage, attack, 1, 20_000, np.random.SeedSequence(4))
            ratio = np.exp(np.concatenate([block["sum of log-likelihood ratios"] for block in blocks]))
            assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std() / math.sqrt(len(ratio))


@pytest.mark.parametrize("access", [OverTheAir(), Orthogonal()], ids=lambda access: access.name)
@pytest.mark.parametrize("queries", [1, 5])
def test_choirs_are_neighbours_and_every_client_differs_once_in_turn(access: Access, queries: int) -> None:
    stage = make_stage(Scheme(access=access, privacy=Privacy(1.0, 0.01, queries=queries)))
    attacks = battery(stage)
    assert {attack.victim for attack in attacks} == set(range(4))
    assert len({attack.title for attack in attacks}) == len(attacks)
    for attack in attacks:
        first, second = attack.scores(stage, 0), attack.scores(stage, 1)
        assert first.shape == (4, queries, 3)
        differ = (first != second).any(axis=2)
        assert not np.delete(differ, attack.victim, axis=0).any(), "only the victim's model changes"
        np.testing.assert_array_equal(differ[attack.victim], np.arange(queries) % attack.every == 0)
        apart = stage.scheme.rule.encode(first) - stage.scheme.rule.encode(second)
        assert np.linalg.norm(apart[attack.victim, 0]) == pytest.approx(stage.geometry.sensitivity), "as far as can be"


@pytest.mark.parametrize(("runs", "queries"), [(100, 1), (1000, 3), (7, 50)])
def test_as_many_runs_are_heard_as_were_asked_for_however_they_are_cut(runs: int, queries: int) -> None:
    stage = make_stage(Scheme(privacy=Privacy(1.0, 0.01, queries=queries)), clients=3)
    for attack in battery(stage):
        found = list(perform(stage, attack, 0, runs, np.random.SeedSequence(1)))
        for name in found[0]:
            assert sum(len(block[name]) for block in found) == runs


def test_a_run_longer_than_a_block_is_heard_in_several_calls() -> None:
    """100 clients and 100 classes fill a block with one query; what a query's statistic is made of stays the same."""
    stage = make_stage(Scheme(channel=Awgn(math.inf), privacy=Privacy(1.0, 0.01, queries=4)), clients=100, classes=100)
    attack = battery(stage)[0]
    blocks = list(perform(stage, attack, 0, 300, np.random.SeedSequence(1)))
    sums = np.concatenate([block["sum of projections"] for block in blocks])
    deviation = math.sqrt(2.0 * 4) * stage.link.sigma
    assert abs(sums.mean() - 4.0) < 4.0 * deviation / math.sqrt(300)
    assert abs(sums.std() / deviation - 1.0) < 4.0 / math.sqrt(2 * 300)


class Recorder(Channel):
    """Keeps what was sent."""

    name = "recorder"
    fades = False
    snr_db = math.inf

    def check_participation(self, probability: float) -> None: ...

    def inversion_cost(self, probability: float) -> float:
        return 1.0

    def transmit(self, private: Symbols, on_air: Present, link: Link, rng: np.random.Generator) -> Received:
        return private


@pytest.mark.parametrize("spared", [0, 2, 3])
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_the_lost_are_others_on_air_and_just_so_many(lost: int, spared: int) -> None:
    on_air = np.array(list(product((False, True), repeat=4))).T
    private = np.where(on_air[:, :, None], np.ones((4, 16, 3)), 0.0)
    link = make_stage(Scheme()).link
    rng = np.random.default_rng(0)
    arrived = Losing(Recorder(), lost, spared).transmit(private, on_air, link, rng)[:, :, 0] > 0.0
    np.testing.assert_array_equal(arrived[spared], on_air[spared])
    assert not (arrived & ~on_air).any()
    others = np.delete(on_air, spared, axis=0).sum(axis=0)
    np.testing.assert_array_equal(np.delete(arrived, spared, axis=0).sum(axis=0), np.maximum(others - lost, 0))
