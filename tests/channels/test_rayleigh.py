"""Rayleigh fading: what truncated inversion costs, and which participation no power can buy."""

import math
from typing import Any, ClassVar

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from airchoir import BestClient, MajorityVote, Participation, Rayleigh, Scheme
from airchoir.link import Link

PROPERTY = settings(deadline=None, derandomize=True)


def exact_cost(threshold: float) -> mpmath.mpf:
    """E[1/g given g > t] of g ~ Exp(1), to 40 digits."""
    with mpmath.workdps(40):
        return mpmath.e1(threshold) * mpmath.exp(threshold)


@pytest.mark.parametrize("probability", [0.999, 0.9, 0.5, 0.4, 0.1, 1e-3, 1e-8])
def test_inversion_cost_is_the_mean_of_one_over_the_gain_above_the_threshold(probability: float) -> None:
    threshold = -math.log(probability)
    numerator, error = integrate.quad(lambda g: math.exp(-(g - threshold)) / g, threshold, math.inf, epsabs=1e-13)
    assert Rayleigh().inversion_cost(probability) == pytest.approx(numerator, abs=10 * error + 1e-12)


@pytest.mark.parametrize("threshold", [1e-15, 1e-6, 0.01, 0.5, 1.0, 20.0, 100.0, 499.0, 501.0, 700.0, 745.0, 1e4, 1e15])
def test_inversion_cost_has_fourteen_digits_at_every_threshold(threshold: float) -> None:
    cost = Rayleigh(threshold=threshold).inversion_cost(1e-300)
    assert abs(mpmath.mpf(cost) / exact_cost(threshold) - 1) < 1e-14


@pytest.mark.parametrize("channel", [Rayleigh(), Rayleigh(threshold=0.2)])
@pytest.mark.parametrize("probability", [0.8, 0.3])
def test_inversion_cost_meets_gains_drawn_and_thinned_as_clients_do(channel: Rayleigh, probability: float) -> None:
    rng = np.random.default_rng(7)
    draws = 400_000
    h = (rng.normal(size=draws) + 1j * rng.normal(size=draws)) / math.sqrt(2.0)
    threshold = -math.log(probability) if channel.threshold is None else channel.threshold
    coin = probability * math.exp(threshold)
    takes_part = (np.abs(h) ** 2 > threshold) & (rng.random(draws) < coin)
    share_error = math.sqrt(probability * (1 - probability) / draws)
    assert abs(takes_part.mean() - probability) < 4.0 * share_error
    costs = 1.0 / np.abs(h[takes_part]) ** 2
    standard_error = costs.std(ddof=1) / math.sqrt(len(costs))
    assert abs(costs.mean() - channel.inversion_cost(probability)) < 4.0 * standard_error


@PROPERTY
@given(st.floats(1e-9, 1e6), st.floats(1.001, 10.0))
def test_a_higher_threshold_costs_less_power_and_lies_between_its_bounds(threshold: float, factor: float) -> None:
    cost = Rayleigh(threshold=threshold).inversion_cost(1e-300)
    assert Rayleigh(threshold=threshold * factor).inversion_cost(1e-300) < cost
    # [Abramowitz and Stegun 1964, 5.1.19 and 5.1.20]
    assert 1.0 / (threshold + 1.0) < cost * (1 + 1e-14)
    assert 0.5 * math.log1p(2.0 / threshold) < cost * (1 + 1e-14)
    assert cost < math.log1p(1.0 / threshold) * (1 + 1e-14)


def test_without_a_threshold_it_is_minus_log_p() -> None:
    for probability in (0.9, 0.5, 1e-5):
        threshold = -math.log(probability)
        assert Rayleigh().inversion_cost(probability) == Rayleigh(threshold=threshold).inversion_cost(probability)


class Tapped(np.ndarray):
    """Symbols that note by what a client's transmitter multiplies them."""

    taps: ClassVar[list[np.ndarray]] = []

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        if ufunc is np.multiply:
            self.taps.extend(factor for factor in inputs if not isinstance(factor, Tapped))
        return getattr(ufunc, method)(*(np.asarray(each) for each in inputs), **settings)


@pytest.mark.parametrize(("channel", "threshold"), [(Rayleigh(), -math.log(0.4)), (Rayleigh(threshold=0.1), 0.1)])
def test_transmitters_invert_fresh_gains_that_exceed_the_threshold_by_an_exponential(
    channel: Rayleigh, threshold: float
) -> None:
    amplitude, shape = 3.0, (4, 10_000)
    link = Link(
        classes=3,
        roster=np.arange(4),
        participation=Participation(4, 0.4),
        sigma=0.0,
        lost=0,
        slots=np.zeros(4, dtype=np.intp),
        slot_use=np.ones(1),
        amplitudes=np.array([amplitude]),
        receiver_noise_variance=0.0,
    )
    Tapped.taps.clear()
    channel.transmit(np.ones((*shape, 3)).view(Tapped), np.ones(shape, dtype=bool), link, np.random.default_rng(11))
    (factors,) = Tapped.taps
    assert factors.shape == (*shape, 1), "one gain per client and query, the same for all classes"
    h = (amplitude / factors).ravel()
    surely_no_worse = 6.3e-5  # the chance of 4 standard errors
    assert stats.kstest(np.abs(h) ** 2 - threshold, "expon").pvalue > surely_no_worse
    assert stats.kstest(np.angle(h) / (2.0 * np.pi) + 0.5, "uniform").pvalue > surely_no_worse
    correlations = np.corrcoef(np.abs(factors[:, :, 0])) - np.eye(4)
    assert np.abs(correlations).max() < 4.0 / math.sqrt(shape[1])
    power = (np.abs(factors) ** 2).ravel()
    expected = amplitude**2 * channel.inversion_cost(0.4)
    assert abs(power.mean() - expected) < 4.0 * power.std(ddof=1) / math.sqrt(len(power))


def test_full_participation_needs_infinite_power_and_says_so() -> None:
    message = r"participation 1 with Rayleigh fading needs infinite power.*; choose a participation below 1"
    with pytest.raises(ValueError, match=message):
        Scheme(channel=Rayleigh(), participation=1.0)
    with pytest.raises(ValueError, match=message):
        Scheme(channel=Rayleigh(threshold=0.5), participation=1.0)
    with pytest.raises(ValueError, match=message):
        Scheme(rule=MajorityVote(), access=BestClient(), channel=Rayleigh(), participation=1.0)


def test_a_threshold_that_lets_too_few_clients_through_is_refused() -> None:
    threshold = -math.log(0.5)
    for possible in (0.5, 0.3, math.exp(-threshold)):
        Scheme(channel=Rayleigh(threshold=threshold), participation=possible)
    with pytest.raises(ValueError, match=r"threshold 0.693147 lets .* at most 0.5, got participation 0.51; lower one"):
        Scheme(channel=Rayleigh(threshold=threshold), participation=0.51)


@PROPERTY
@given(st.floats(1e-12, 0.9999999))
def test_the_threshold_that_gives_p_is_never_refused_for_rounding(probability: float) -> None:
    Rayleigh(threshold=-math.log(probability)).check_participation(probability)


@pytest.mark.parametrize("threshold", [0.0, -1.0, math.nan, math.inf])
def test_a_threshold_must_be_positive_and_finite(threshold: float) -> None:
    with pytest.raises(ValueError, match=r"\Athreshold must be > 0, got \S+; [^\n]+\Z"):
        Rayleigh(threshold=threshold)
