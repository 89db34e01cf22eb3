"""What every registered access promises, against every participant set that can occur, counted by hand.

`sets` below enumerates the 2^n sets of the roster with their chance, so every expectation is a finite sum.
"""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from airchoir import Awgn, BeliefSum, Privacy, Scheme, ScoreBank
from airchoir.access import Access
from airchoir.link import Link
from airchoir.participation import Participation
from airchoir.registry import plugins

MakeBank = Callable[..., ScoreBank]
ACCESSES = {name: plugin() for name, plugin in plugins(Access).items()}
CASES = [
    pytest.param(access, clients, probability, lost, id=f"{name}-n{clients}-p{probability}-lost{lost}")
    for name, access in ACCESSES.items()
    for clients, probability, lost in product((1, 2, 5), (1.0, 0.4, 0.05), (0, 1, 4))
    if lost == 0 or (access.covers_lost and lost < clients)
]
every_case = pytest.mark.parametrize(("access", "clients", "probability", "lost"), CASES)
every_access = pytest.mark.parametrize("access", [pytest.param(access, id=name) for name, access in ACCESSES.items()])


def make_link(make_bank: MakeBank, access: Access, clients: int, probability: float, lost: int) -> Link:
    privacy = Privacy(epsilon=1.0, delta=0.01, lost=lost)
    scheme = Scheme(BeliefSum(), access, Awgn(snr_db=3.0), privacy, participation=probability)
    return scheme.link(make_bank(clients=clients, classes=3, queries=20))


def sets(law: Participation) -> tuple[np.ndarray, np.ndarray]:
    """Every set that the law allows, one per column, and its probability."""
    present = np.array(list(product((False, True), repeat=law.clients))).T
    sizes = present.sum(axis=0)
    weights = law.probability**sizes * (1.0 - law.probability) ** (law.clients - sizes)
    weights[sizes < law.at_least] = 0.0
    return present[:, weights > 0.0], weights[weights > 0.0] / weights.sum()


def by_slot(link: Link, values: np.ndarray) -> np.ndarray:
    """The sum over the clients of each slot, with a loop."""
    total = np.zeros((len(link.amplitudes), *values.shape[1:]))
    for client, slot in enumerate(link.slots):
        total[slot] += values[client]
    return total


@every_case
def test_the_link_names_slots_amplitudes_and_a_law_for_the_roster(
    make_bank: MakeBank, access: Access, clients: int, probability: float, lost: int
) -> None:
    link = make_link(make_bank, access, clients, probability, lost)
    assert len(set(link.roster)) == len(link.roster) == len(link.slots) == link.participation.clients
    assert set(link.slots) == set(range(len(link.amplitudes)))
    assert link.participation.probability == probability
    assert link.lost == lost


@every_case
def test_slot_use_is_the_chance_that_somebody_is_on_air_in_the_slot(
    make_bank: MakeBank, access: Access, clients: int, probability: float, lost: int
) -> None:
    link = make_link(make_bank, access, clients, probability, lost)
    present, chance = sets(link.participation)
    used = by_slot(link, access.on_air(present).astype(int)) > 0
    np.testing.assert_allclose(link.slot_use, used @ chance, rtol=1e-12)


@every_case
def test_mean_client_noise_variance_is_the_expectation_given_that_the_client_is_on_air(
    make_bank: MakeBank, access: Access, clients: int, probability: float, lost: int
) -> None:
    link = make_link(make_bank, access, clients, probability, lost)
    present, chance = sets(link.participation)
    variance = access.client_noise_std(link, present) ** 2
    for on_air in access.on_air(present):
        expected = (variance * on_air) @ chance / (on_air @ chance)
        claimed = access.mean_client_noise_variance(link.sigma, link.participation, lost)
        assert claimed == pytest.approx(expected, rel=1e-11)


@every_case
def test_every_used_slot_carries_the_promised_noise_even_if_the_lost_add_none(
    make_bank: MakeBank, access: Access, clients: int, probability: float, lost: int
) -> None:
    link = make_link(make_bank, access, clients, probability, lost)
    present, _ = sets(link.participation)
    transmitters = by_slot(link, access.on_air(present).astype(int))
    carried = access.client_noise_std(link, present) ** 2 * (transmitters - lost)
    assert link.sigma > 0.0
    assert carried[transmitters > 0].min() >= link.sigma**2 * (1 - 1e-12)
    if lost == 0:
        assert carried[transmitters > 0].max() == pytest.approx(link.sigma**2, rel=1e-12), "noise is wasted"


@every_case
def test_noise_variance_is_everyones_privacy_noise_and_the_receivers_in_each_used_slot(
    make_bank: MakeBank, access: Access, clients: int, probability: float, lost: int
) -> None:
    link = make_link(make_bank, access, clients, probability, lost)
    present, _ = sets(link.participation)
    on_air, noise_std = access.on_air(present), access.client_noise_std(link, present)
    v = [link.receiver_noise_variance / amplitude**2 for amplitude in link.amplitudes]
    expected = [
        sum(noise_std[q] ** 2 for client in range(len(link.roster)) if on_air[client, q])
        + sum(v[slot] for slot in {link.slots[client] for client in range(len(link.roster)) if on_air[client, q]})
        for q in range(present.shape[1])
    ]
    np.testing.assert_allclose(access.noise_variance(present, link), expected, rtol=1e-12)


@every_case
def test_an_access_that_claims_fixed_noise_has_the_same_for_every_set(
    make_bank: MakeBank, access: Access, clients: int, probability: float, lost: int
) -> None:
    link = make_link(make_bank, access, clients, probability, lost)
    present, _ = sets(link.participation)
    variance = access.noise_variance(present, link)
    if access.fixed_noise and lost == 0:
        np.testing.assert_allclose(variance, variance[0], rtol=1e-12)
    elif lost == 0 and present.shape[1] > 1:
        assert np.ptp(variance) > 0.0, "fixed_noise may be declared: the exact engine is faster with it"


@every_case
def test_without_any_noise_the_server_gets_the_sum_of_those_present(
    make_bank: MakeBank, access: Access, clients: int, probability: float, lost: int
) -> None:
    bank = make_bank(clients=clients, classes=3, queries=20)
    scheme = Scheme(BeliefSum(), access, Awgn(snr_db=math.inf), Privacy(lost=lost), participation=probability)
    link, rng = scheme.link(bank), np.random.default_rng(5)
    present, _ = sets(link.participation)
    queries = np.arange(present.shape[1]) % bank.queries
    symbols = scheme.rule.encode(bank.test_scores[link.roster[:, None], queries])
    private = access.perturb(symbols, present, link, rng)
    sums = access.collect(scheme.channel.transmit(private, access.on_air(present), link, rng), link)
    expected = np.zeros(symbols.shape[1:])
    for client in range(len(link.roster)):
        expected[present[client]] += symbols[client, present[client]]
    np.testing.assert_allclose(sums, expected, rtol=0.0, atol=1.1e-12)  # the server rounds to 12 digits
    np.testing.assert_allclose(access.sums(symbols, present), expected, rtol=0.0, atol=1e-14)


@every_case
def test_a_client_sends_its_symbol_only_if_it_takes_part_and_noise_only_if_it_is_on_air(
    make_bank: MakeBank, access: Access, clients: int, probability: float, lost: int
) -> None:
    link = make_link(make_bank, access, clients, probability, lost)
    present, _ = sets(link.participation)
    on_air = access.on_air(present)
    assert (on_air | ~present).all(), "who takes part is on air"
    symbols = np.full((*present.shape, 3), 7.0)
    noise = access.perturb(symbols, present, link, np.random.default_rng(6))
    noise[present] -= 7.0
    assert (noise[~on_air] == 0.0).all()
    assert (noise[on_air] != 0.0).all()


@every_access
@pytest.mark.parametrize("probability", [1.0, 0.4])
def test_the_server_sum_has_the_stated_mean_and_variance_in_every_class(
    make_bank: MakeBank, access: Access, probability: float
) -> None:
    """The literal path, repeated with one set: mean, variance and no correlation between classes, within 4 SE."""
    link = make_link(make_bank, access, 5, probability, 0)
    repeats, classes = 20_000, 3
    present_sets, _ = sets(link.participation)
    rng = np.random.default_rng(7)
    for column in {0, present_sets.shape[1] // 2, present_sets.shape[1] - 1}:
        present = np.repeat(present_sets[:, [column]], repeats, axis=1)
        one = rng.dirichlet(np.ones(classes), (len(link.roster), 1))
        private = access.perturb(np.repeat(one, repeats, axis=1), present, link, rng)
        received = Awgn(snr_db=3.0).transmit(private, access.on_air(present), link, rng)
        errors = access.collect(received, link) - access.sums(one, present[:, :1])
        variance = float(access.noise_variance(present[:, :1], link)[0])
        assert np.abs(errors.mean(axis=0)).max() < 4.0 * math.sqrt(variance / repeats)
        assert np.abs(np.mean(errors**2, axis=0) - variance).max() < 4.0 * variance * math.sqrt(2.0 / repeats)
        off_diagonal = np.corrcoef(errors.T)[~np.eye(classes, dtype=bool)]
        assert np.abs(off_diagonal).max() < 4.0 / math.sqrt(repeats)


@every_access
def test_each_clients_noise_is_its_own(make_bank: MakeBank, access: Access) -> None:
    link = make_link(make_bank, access, 5, 1.0, 0)
    repeats, clients = 20_000, len(link.roster)
    present = np.ones((clients, repeats), dtype=bool)
    noise = access.perturb(np.zeros((clients, repeats, 3)), present, link, np.random.default_rng(8))
    series = noise.transpose(0, 2, 1).reshape(-1, repeats)
    expected = float(access.client_noise_std(link, present[:, :1])[0]) ** 2
    assert np.abs(np.mean(series**2, axis=1) - expected).max() < 4.0 * expected * math.sqrt(2.0 / repeats)
    correlations = np.corrcoef(series) - np.eye(len(series))
    assert np.abs(correlations).max() < 4.0 / math.sqrt(repeats)


@every_access
def test_no_privacy_means_no_client_noise(make_bank: MakeBank, access: Access) -> None:
    bank = make_bank(clients=4)
    link = Scheme(access=access).link(bank)
    assert link.sigma == 0.0
    symbols = np.ones((len(link.roster), 5, 4))
    present = np.ones((len(link.roster), 5), dtype=bool)
    np.testing.assert_array_equal(access.perturb(symbols, present, link, np.random.default_rng(0)), symbols)


@every_access
@pytest.mark.parametrize("lost", [1, 3])
def test_lost_clients_are_covered_or_refused_in_one_line(make_bank: MakeBank, access: Access, lost: int) -> None:
    privacy = Privacy(epsilon=1.0, lost=lost)
    if access.covers_lost:
        assert Scheme(access=access, privacy=privacy).link(make_bank(clients=lost + 1)).lost == lost
        with pytest.raises(
            ValueError, match=rf"\Alost must be below the {lost} client\(s\) there are, got {lost}; .+\Z"
        ):
            Scheme(access=access, privacy=privacy).link(make_bank(clients=lost))
    else:
        with pytest.raises(ValueError, match=rf"\Alost must be 0 with {access.name}, got {lost}: [^\n]+; use [^\n]+\Z"):
            Scheme(access=access, privacy=privacy)
