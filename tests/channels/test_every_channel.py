"""What every registered channel promises: the sum of what is sent in each slot, and the receiver's noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from airchoir import Participation
from airchoir.channels import Channel
from airchoir.link import Link
from airchoir.registry import plugins

CHANNELS = [pytest.param(plugin(), id=name) for name, plugin in plugins(Channel).items()]
every_channel = pytest.mark.parametrize("channel", CHANNELS)
CLASSES = 3


def make_link(slots: list[int], *, noise: float, probability: float = 0.4) -> Link:
    """A link made by hand: amplitudes 2, 3, ... and a receiver noise variance."""
    used = max(slots) + 1
    return Link(
        classes=CLASSES,
        roster=np.arange(len(slots)),
        participation=Participation(len(slots), probability),
        sigma=0.0,
        lost=0,
        slots=np.array(slots),
        slot_use=np.ones(used),
        amplitudes=np.arange(2.0, 2.0 + used),
        receiver_noise_variance=noise,
    )


def literal_sums(private: np.ndarray, link: Link) -> np.ndarray:
    """Amplitude times the sum of everything sent, slot by slot, with loops."""
    received = np.zeros((len(link.amplitudes), *private.shape[1:]))
    for client, slot in enumerate(link.slots):
        received[slot] += link.amplitudes[slot] * private[client]
    return received


@every_channel
@pytest.mark.parametrize("slots", [[0, 0, 0, 0], [0, 1, 2, 3], [0, 1, 0, 1], [1, 0, 0, 0]])
def test_without_receiver_noise_the_server_hears_the_scaled_sum(channel: Channel, slots: list[int]) -> None:
    rng = np.random.default_rng(1)
    private = rng.normal(0.0, 1.0, (4, 50, CLASSES))
    link = make_link(slots, noise=0.0)
    received = channel.transmit(private, np.ones((4, 50), dtype=bool), link, rng)
    assert received.dtype == np.float64
    np.testing.assert_allclose(received, literal_sums(private, link), rtol=0.0, atol=1e-13)


@every_channel
@pytest.mark.parametrize("noise", [1e-4, 1.0, 50.0])
def test_receiver_noise_has_the_stated_variance_and_is_independent_of_everything(
    channel: Channel, noise: float
) -> None:
    queries = 30_000
    rng = np.random.default_rng(2)
    private = rng.normal(0.0, 1.0, (4, queries, CLASSES))
    link = make_link([0, 1, 0, 1], noise=noise)
    errors = channel.transmit(private, np.ones((4, queries), dtype=bool), link, rng) - literal_sums(private, link)
    series = np.concatenate([errors[0].T, errors[1].T, *private.transpose(0, 2, 1)])  # each a row of `queries` draws
    for error in series[: 2 * CLASSES]:
        assert abs(error.mean()) < 4.0 * math.sqrt(noise / queries)
        assert abs((error**2).mean() - noise) < 4.0 * noise * math.sqrt(2.0 / queries)
    correlations = np.corrcoef(series)[: 2 * CLASSES]
    correlations[np.arange(2 * CLASSES), np.arange(2 * CLASSES)] = 0.0
    assert np.abs(correlations).max() < 4.0 / math.sqrt(queries)


@every_channel
def test_a_slot_in_which_nobody_is_on_air_is_zero(channel: Channel) -> None:
    rng = np.random.default_rng(3)
    on_air = np.array([[True, False, False, True], [False, False, True, True], [False, False, False, False]])
    private = rng.normal(0.0, 1.0, (3, 4, CLASSES)) * on_air[:, :, None]
    received = channel.transmit(private, on_air, make_link([0, 1, 1], noise=1.0), rng)
    used = np.array([[True, False, False, True], [False, False, True, True]])
    assert (received[~used] == 0.0).all()
    assert (received[used] != 0.0).all(), "a slot in use carries noise"


@every_channel
def test_the_same_generator_state_gives_the_same_air(channel: Channel) -> None:
    private, on_air = np.ones((2, 5, CLASSES)), np.ones((2, 5), dtype=bool)
    link = make_link([0, 0], noise=1.0)
    first, again, other = (channel.transmit(private, on_air, link, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


@every_channel
def test_transmitting_leaves_what_the_clients_hold_as_it_is(channel: Channel) -> None:
    private = np.random.default_rng(0).normal(size=(2, 5, CLASSES))
    before = private.copy()
    channel.transmit(private, np.ones((2, 5), dtype=bool), make_link([0, 1], noise=1.0), np.random.default_rng(1))
    np.testing.assert_array_equal(private, before)


@every_channel
@pytest.mark.parametrize("snr_db", [math.nan, -math.inf, -100.5, -1e9])
def test_an_snr_that_is_no_number_or_absurdly_low_is_refused(channel: Channel, snr_db: float) -> None:
    with pytest.raises(ValueError, match=r"\Asnr_db must be >= -100 decibels, or inf, got \S+; [^\n]+\Z"):
        replace(channel, snr_db=snr_db)


@every_channel
@pytest.mark.parametrize("snr_db", [-100.0, -30.0, 0.0, 10.0, 300.0, math.inf])
def test_any_snr_from_minus_a_hundred_to_infinity_is_accepted(channel: Channel, snr_db: float) -> None:
    assert replace(channel, snr_db=snr_db).snr_db == snr_db


@every_channel
@pytest.mark.parametrize("probability", [1e-12, 0.1, 0.4, 0.999])
def test_inverting_the_gain_costs_a_positive_finite_power(channel: Channel, probability: float) -> None:
    channel.check_participation(probability)
    assert 0.0 < channel.inversion_cost(probability) < math.inf
