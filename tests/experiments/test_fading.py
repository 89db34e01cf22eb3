"""Fading: every point is a direct evaluation, the best threshold is the best, and every sentence is true."""

import math
from collections.abc import Callable

import mpmath
import pytest

from airchoir import Awgn, Privacy, Rayleigh, Scheme, ScoreBank
from airchoir.experiments.choirs import Choir
from airchoir.experiments.fading import Fading

Numbers, Mean = Callable[[str], list[float]], Callable[..., float]
GRID, SNRS = (0.3, 0.6, 0.7, 0.99), (-10.0, 5.0)
SMALL = Fading(participations=GRID, snrs_db=SNRS, epsilon=2.0, delta=1e-3, accountant="tight")


def scheme(channel: str, epsilon: float, snr_db: float, p: float) -> Scheme:
    air = Rayleigh(snr_db, threshold=-math.log(p)) if channel == "Rayleigh" else Awgn(snr_db)
    return Scheme(channel=air, privacy=Privacy(epsilon, 1e-3, accountant="tight"), participation=p)


def curve(choir: Choir, mean: Mean, channel: str, epsilon: float, snr_db: float) -> dict[float, float]:
    grid = GRID if channel == "Rayleigh" else (*GRID, 1.0)
    return {p: mean(scheme(channel, epsilon, snr_db, p), choir) for p in grid}


def test_every_curve_is_what_evaluate_says_with_the_threshold_written_out(two_tasks: list[Choir], mean: Mean) -> None:
    (figure,) = SMALL.run(two_tasks).figures
    panels = iter(figure.panels)
    for epsilon, promise in ((math.inf, "ε = ∞"), (2.0, "ε = 2")):
        for choir in two_tasks:
            panel = next(panels)
            assert panel.title == f"{choir.task}, {promise}"
            assert len({line.style for line in panel.curves}) == 4
            for line in panel.curves:
                channel, snr = line.label.replace("\N{MINUS SIGN}", "-").removesuffix(" dB").split(", ")
                wanted = curve(choir, mean, channel, epsilon, float(snr))
                assert line.x == tuple(wanted)
                assert line.y == pytest.approx([100 * value for value in wanted.values()], rel=1e-9)


def test_every_number_in_every_sentence(two_tasks: list[Choir], mean: Mean, numbers: Numbers) -> None:
    free, private, cheaper, price = SMALL.run(two_tasks).summary
    for sentence, epsilon in ((free, math.inf), (private, 2.0)):
        wanted: list[float] = [] if epsilon == math.inf else [2.0]
        for choir in two_tasks:
            for snr_db in SNRS:
                found = curve(choir, mean, "Rayleigh", epsilon, snr_db)
                best = max(found, key=lambda p: (found[p], p))
                wanted += [float(f"{-math.log(best):.3g}"), best, round(100 * found[best], 1), snr_db]
        assert numbers(sentence) == wanted

    wins, cases = [0, 0], [0, 0]
    for choir in two_tasks:
        for epsilon in (math.inf, 2.0):
            for snr_db in SNRS:
                faded, plain = (curve(choir, mean, channel, epsilon, snr_db) for channel in ("Rayleigh", "AWGN"))
                for p in GRID:
                    dear = int(mpmath.e1(-mpmath.log(p)) / p >= 1)
                    cases[dear] += 1
                    wins[dear] += faded[p] > plain[p]
    assert cases == [16, 16]
    assert numbers(cheaper) == [wins[0], cases[0], 0.435, wins[1], cases[1]]

    wanted = [2.0]
    for choir in two_tasks:
        for snr_db in SNRS:
            faded, plain = (max(curve(choir, mean, channel, 2.0, snr_db).values()) for channel in ("Rayleigh", "AWGN"))
            wanted += [round(100 * (faded - plain), 2), snr_db]
    assert numbers(price) == pytest.approx(wanted, abs=0.0101)


def test_the_threshold_of_the_sentence_is_where_inverting_costs_as_much_as_no_fading() -> None:
    threshold = mpmath.findroot(lambda t: mpmath.e1(t) * mpmath.exp(t) - 1, 0.4)
    assert float(f"{float(threshold):.3g}") == 0.435


def test_on_the_digits_the_best_threshold_is_neither_end_at_low_snr(digits_bank: Callable[[int], ScoreBank]) -> None:
    """The finding itself: almost everyone is too dear, few are too few."""
    choir = Choir("digits", (), (digits_bank(0),))
    rows = Fading(participations=(0.1, 0.8, 0.9999), snrs_db=(-20.0,)).run([choir]).rows
    for epsilon in ("inf", 1.0):
        few, middle, many = (
            row["macro_f1"] for row in rows if row["channel"] == "rayleigh" and row["epsilon"] == epsilon
        )
        assert middle > max(few, many)
