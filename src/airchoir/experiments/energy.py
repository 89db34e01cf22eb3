"""Macro-F1 against the energy of a query: what all clients together spend, in units of the receiver's noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from airchoir.bank import ScoreBank
from airchoir.channels.awgn import Awgn
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, check_any, source
from airchoir.experiments.conditions import (
    Condition,
    Measured,
    check_ascending,
    measure_all,
    percent_curve,
    steady_from,
)
from airchoir.experiments.methods import APART, METHODS, VOTE, methods_of, style_of, without_best_client
from airchoir.experiments.wording import each, listing, number, promise, share, under
from airchoir.privacy import Privacy
from airchoir.report.findings import Figure, Findings, Panel
from airchoir.scheme import Scheme, symbol_power

_SHORT = {VOTE: "the choir's vote", APART: "separate votes"}


@dataclass(frozen=True)
class Energy(Experiment):
    """The five methods of table 1 over SNR, by what they cost the clients' batteries."""

    name: ClassVar[str] = "energy"
    title: ClassVar[str] = "Macro-F1 against energy per query"
    snrs_db: tuple[float, ...] = tuple(2.5 * step for step in range(-16, 13))
    """Ascending and finite."""
    epsilon: float = 1.0
    delta: float = 1e-6
    close: float = 0.01
    """The macro-F1 that counts as no loss in the sentences."""

    def __post_init__(self) -> None:
        check_ascending("snrs_db", self.snrs_db)

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        conditions = [
            Condition(
                {"method": method, "epsilon": epsilon, "snr_db": snr_db}, choir, self._scheme(method, epsilon, snr_db)
            )
            for choir in choirs
            for epsilon in self.epsilons
            for method in methods_of(choir)
            for snr_db in self.snrs_db
        ]
        found = measure_all(conditions, progress=progress)
        panels = tuple(self._panel(choir, epsilon, found) for epsilon in self.epsilons for choir in choirs)
        caption = (
            "Macro-F1 against the energy that all clients together transmit per query, over the receiver's noise energy in "
            f"one channel use (delta {self.delta:g}, p = 1, SNR {number(self.snrs_db[0])} to {number(self.snrs_db[-1])} dB)."
        )
        return Findings(
            name=self.name,
            title=self.title,
            summary=self._summary(choirs, found),
            figures=(Figure(self.name, caption, panels),),
            rows=tuple(
                {**row, "energy_db": mean_energy_db(condition.scheme, condition.choir)}
                for row, condition in zip(found.rows(), conditions, strict=True)
            ),
            notes=(
                "Energy is channel uses times mean transmit power, privacy noise included, summed over the clients.",
                *without_best_client(choirs),
            ),
            source=source(),
        )

    @property
    def epsilons(self) -> tuple[float, float]:
        """No privacy, and the promise."""
        return math.inf, self.epsilon

    def _scheme(self, method: str, epsilon: float, snr_db: float) -> Scheme:
        return Scheme(*METHODS[method], Awgn(snr_db), Privacy(epsilon, self.delta))

    def _points(self, choir: Choir, found: Measured, method: str, epsilon: float) -> list[tuple[float, float]]:
        """Energy in decibels and macro-F1, at every SNR."""
        return [
            (
                mean_energy_db(self._scheme(method, epsilon, snr_db), choir),
                found.f1(choir, method=method, epsilon=epsilon, snr_db=snr_db),
            )
            for snr_db in self.snrs_db
        ]

    def _panel(self, choir: Choir, epsilon: float, found: Measured) -> Panel:
        curves = [
            percent_curve(method, self._points(choir, found, method, epsilon), style=style_of(method))
            for method in methods_of(choir)
        ]
        return Panel(f"{choir.title}, {promise(epsilon)}", "Energy per query (dB)", "Macro-F1 (%)", tuple(curves))

    def _summary(self, choirs: Sequence[Choir], found: Measured) -> tuple[str, ...]:
        def needed(place: int, method: str) -> str:
            points = self._points(choirs[place], found, method, math.inf)
            wanted = max(f1 for _, f1 in points) - self.close
            first = steady_from([f1 >= wanted for _, f1 in points])
            return "more than this" if first is None else f"{number(points[first][0], '.1f')} dB"

        def unharmed(place: int) -> str:
            return listing(f"{needed(place, method)} for {words}" for method, words in _SHORT.items())

        def at_most(place: int) -> str:
            tops = [max(f1 for _, f1 in self._points(choirs[place], found, m, self.epsilon)) for m in _SHORT]
            return listing(f"{share(f1)} for {words}" for f1, words in zip(tops, _SHORT.values(), strict=True))

        def noise(place: int) -> str:
            shares = [
                noise_share(self._scheme(method, self.epsilon, self.snrs_db[-1]), choirs[place]) for method in _SHORT
            ]
            return listing(f"{share(part)} for {words}" for part, words in zip(shares, _SHORT.values(), strict=True))

        return (
            f"{under(math.inf).capitalize()}, the energy from which on macro-F1 stays within {100 * self.close:g} point of "
            f"the method's best here is {each(choirs, unharmed)}.",
            f"{under(self.epsilon).capitalize()} the highest macro-F1 at any energy here is {each(choirs, at_most)}.",
            f"{under(self.epsilon).capitalize()} privacy noise takes this part of the transmitted energy: "
            f"{each(choirs, noise)}.",
        )


def energy_per_query(scheme: Scheme, bank: ScoreBank) -> float:
    """The energy that all clients together are expected to transmit per query, in the receiver's noise energy per use.

    The sum over the clients of k A^2 power_i P(i is on air) / v_rx, with METHOD's power_i; A is the amplitude of i's slot.
    """
    symbols, noise = _powers(scheme, bank)
    link = scheme.link(bank)
    amplitude = link.amplitudes[link.slots]
    return float(link.classes * np.sum(amplitude**2 * (symbols + noise)) / link.receiver_noise_variance)


def mean_energy_db(scheme: Scheme, choir: Choir) -> float:
    """In decibels, the mean over the choir's banks."""
    energies = [energy_per_query(scheme, bank) for bank in choir.banks]
    return 10.0 * math.log10(math.fsum(energies) / len(energies))


def noise_share(scheme: Scheme, choir: Choir) -> float:
    """The part of the energy that is privacy noise, over all banks of the choir."""
    powers = [_powers(scheme, bank) for bank in choir.banks]
    return math.fsum(float(noise.sum() / (symbols + noise).sum()) for symbols, noise in powers) / len(powers)


def _powers(scheme: Scheme, bank: ScoreBank) -> tuple[np.ndarray, np.ndarray]:
    """The mean power, at amplitude 1 and averaged over rounds, of each client's symbols and of its noise."""
    link = scheme.link(bank)
    law = link.participation
    cost = scheme.channel.inversion_cost(scheme.participation)
    on_air = 1.0 if scheme.access.always_on_air else law.inclusion
    noise = scheme.access.mean_client_noise_variance(link.sigma, law, link.lost)
    symbols = symbol_power(scheme.rule, bank)[link.roster]
    return cost * law.inclusion * symbols, np.full(len(symbols), cost * on_air * noise)
