"""Centring: both curves are direct evaluations, the gain is their difference, and every sentence is true."""

import math
from collections.abc import Callable

import pytest

from airchoir import Awgn, CentredVote, MajorityVote, Privacy, Scheme
from airchoir.experiments.centring import Centring, Setting
from airchoir.experiments.choirs import Choir

Numbers, Mean = Callable[[str], list[float]], Callable[..., float]
SNRS = (-15.0, -5.0, 10.0)
SETTINGS = {
    "ε = ∞, p = 1": (math.inf, 1.0),
    "ε = 2, p = 1": (2.0, 1.0),
    "ε = 2, p = 0.5, tight": (2.0, 0.5),
}
SMALL = Centring(settings=tuple(Setting(*setting) for setting in SETTINGS.values()), snrs_db=SNRS, delta=1e-3)
RULES = {"vote": MajorityVote(), "centred vote": CentredVote()}


def scheme(rule: str, setting: str, snr_db: float) -> Scheme:
    epsilon, p = SETTINGS[setting]
    return Scheme(
        RULES[rule], channel=Awgn(snr_db), privacy=Privacy(epsilon, 1e-3, accountant="tight"), participation=p
    )


def accuracies(choir: Choir, mean: Mean, rule: str, setting: str) -> list[float]:
    return [mean(scheme(rule, setting, snr_db), choir, "accuracy") for snr_db in SNRS]


def gains(choir: Choir, mean: Mean, setting: str) -> list[float]:
    plain, centred = (accuracies(choir, mean, rule, setting) for rule in RULES)
    return [after - before for before, after in zip(plain, centred, strict=True)]


def test_every_curve_is_what_evaluate_says(two_tasks: list[Choir], mean: Mean) -> None:
    (figure,) = SMALL.run(two_tasks).figures
    for choir, panel, gain in zip(two_tasks, figure.panels[:2], figure.panels[2:], strict=True):
        assert panel.title == gain.title == f"{choir.task}, k = {choir.classes}"
        wanted = {f"{rule}, {setting}": (rule, setting) for setting in SETTINGS for rule in RULES}
        assert [curve.label for curve in panel.curves] == list(wanted)
        for curve in panel.curves:
            assert curve.x == SNRS
            values = accuracies(choir, mean, *wanted[curve.label])
            assert curve.y == pytest.approx([100 * value for value in values], rel=1e-12)
        for curve, setting in zip(gain.curves, SETTINGS, strict=True):
            assert curve.label == f"centred vote, {setting}"
            assert curve.y == pytest.approx([100 * value for value in gains(choir, mean, setting)], abs=1e-9)
            assert curve.style == next(c.style for c in panel.curves if c.label == curve.label)


def test_every_number_in_every_sentence(two_tasks: list[Choir], mean: Mean, numbers: Numbers) -> None:
    most, weaker, noise = SMALL.run(two_tasks).summary
    wanted: list[float] = []
    falls: list[float] = []
    sigmas: list[float] = []
    for setting in SETTINGS:
        own = numbers(setting)
        wanted += own
        falls += own
        for choir in two_tasks:
            found = gains(choir, mean, setting)
            wanted += [round(100 * max(found), 2), SNRS[found.index(max(found))]]
            plain, centred = (mean(scheme(rule, setting, SNRS[0]), choir, "channel_noise_variance") for rule in RULES)
            falls.append(round(10 * math.log10(plain / centred), 2))
        sigmas += [round(mean(scheme(rule, setting, 0.0), two_tasks[0], "sigma"), 2) for rule in RULES]
        sigmas += own
    assert numbers(most) == wanted
    assert numbers(weaker) == falls
    assert numbers(noise) == [3, *sigmas]


def test_without_privacy_two_classes_gain_3_decibels(two_tasks: list[Choir]) -> None:
    beta = two_tasks[1]
    assert beta.classes == 2
    assert "ε = ∞, p = 1: 3.01 dB (beta)" in SMALL.run([beta]).summary[1]
