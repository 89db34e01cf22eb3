"""Rayleigh fading with a real power budget: the threshold that sets p also sets what inverting the gain costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from airchoir.channels.awgn import Awgn
from airchoir.channels.rayleigh import Rayleigh
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, check_any, source
from airchoir.experiments.conditions import Condition, Measured, check_ascending, measure_all, percent_curve
from airchoir.experiments.wording import each, listing, number, points, promise, share, under
from airchoir.privacy import Privacy
from airchoir.report.findings import Curve, Figure, Findings, Panel
from airchoir.scheme import Scheme

FADED, PLAIN = Rayleigh.name, Awgn.name


@dataclass(frozen=True)
class Fading(Experiment):
    """The vote over a Rayleigh channel whose threshold alone decides who takes part, and over AWGN at the same p."""

    name: ClassVar[str] = "fading"
    title: ClassVar[str] = "Macro-F1 under Rayleigh fading, by threshold"
    participations: tuple[float, ...] = (
        *(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999),
    )
    """p = exp(-t), ascending and below 1."""
    snrs_db: tuple[float, ...] = (-20.0, -10.0, 0.0)
    epsilon: float = 1.0
    delta: float = 1e-6
    accountant: str = "paper"

    def __post_init__(self) -> None:
        check_ascending("participations", self.participations)
        check_ascending("snrs_db", self.snrs_db)

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        conditions = [
            Condition(
                {"channel": channel, "epsilon": epsilon, "snr_db": snr_db, "participation": participation},
                choir,
                self._scheme(channel, epsilon, snr_db, participation),
            )
            for choir in choirs
            for epsilon in self.epsilons
            for snr_db in self.snrs_db
            for channel in (FADED, PLAIN)
            for participation in self._participations(channel)
        ]
        found = measure_all(conditions, progress=progress)
        panels = tuple(self._panel(choir, epsilon, found) for epsilon in self.epsilons for choir in choirs)
        caption = (
            "Macro-F1 of the vote over the air against p = exp(-t), where under Rayleigh fading only clients whose |h|² is "
            f"above the threshold t transmit, and over AWGN (delta {self.delta:g}, accountant {self.accountant})."
        )
        return Findings(
            name=self.name,
            title=self.title,
            summary=self._summary(choirs, found),
            figures=(Figure(self.name, caption, panels),),
            rows=found.rows(),
            notes=(
                "A client's average power is held to its budget whenever it transmits: inverting gains just above a small "
                "threshold costs power, so a larger p leaves less of it for the signal.",
                "AWGN is the paper's setting: the gain has been inverted and costs nothing.",
            ),
            source=source(),
        )

    @property
    def epsilons(self) -> tuple[float, float]:
        """No privacy, and the promise."""
        return math.inf, self.epsilon

    def _participations(self, channel: str) -> tuple[float, ...]:
        return self.participations if channel == FADED else (*self.participations, 1.0)

    def _scheme(self, channel: str, epsilon: float, snr_db: float, participation: float) -> Scheme:
        air = Rayleigh(snr_db) if channel == FADED else Awgn(snr_db)
        privacy = Privacy(epsilon, self.delta, accountant=self.accountant)
        return Scheme(channel=air, privacy=privacy, participation=participation)

    def _curve(
        self, choir: Choir, found: Measured, channel: str, epsilon: float, snr_db: float
    ) -> list[tuple[float, float]]:
        """p and macro-F1."""
        return [
            (p, found.f1(choir, channel=channel, epsilon=epsilon, snr_db=snr_db, participation=p))
            for p in self._participations(channel)
        ]

    def _panel(self, choir: Choir, epsilon: float, found: Measured) -> Panel:
        curves: list[Curve] = []
        for place, (channel, title) in enumerate(((FADED, "Rayleigh"), (PLAIN, "AWGN"))):
            for order, snr_db in enumerate(self.snrs_db):
                measured = self._curve(choir, found, channel, epsilon, snr_db)
                label = f"{title}, {number(snr_db)} dB"
                curves.append(percent_curve(label, measured, style=place * len(self.snrs_db) + order))
        return Panel(f"{choir.title}, {promise(epsilon)}", "Participation p = exp(−t)", "Macro-F1 (%)", tuple(curves))  # noqa: RUF001

    def _summary(self, choirs: Sequence[Choir], found: Measured) -> tuple[str, ...]:
        def best(place: int, epsilon: float) -> str:
            tops = [
                (snr_db, max(self._curve(choirs[place], found, FADED, epsilon, snr_db), key=lambda point: point[::-1]))
                for snr_db in self.snrs_db
            ]
            return listing(
                f"{-math.log(p):.3g} (p = {p:g}, {share(f1)}) at {number(snr_db)} dB" for snr_db, (p, f1) in tops
            )

        def price(place: int, epsilon: float) -> str:
            costs = []
            for snr_db in self.snrs_db:
                faded, plain = (
                    max(f1 for _, f1 in self._curve(choirs[place], found, channel, epsilon, snr_db))
                    for channel in (FADED, PLAIN)
                )
                costs.append(f"{points(faded - plain)} at {number(snr_db)} dB")
            return listing(costs)

        return (
            *(
                f"{under(epsilon).capitalize()} the best threshold t is {each(choirs, lambda i, e=epsilon: best(i, e))}."  # type: ignore[misc]
                for epsilon in self.epsilons
            ),
            self._cheaper(choirs, found),
            f"With the best threshold fading changes the best macro-F1, in points and {under(self.epsilon)}, by "
            f"{each(choirs, lambda place: price(place, self.epsilon))}, compared with AWGN.",
        )

    def _cheaper(self, choirs: Sequence[Choir], found: Measured) -> str:
        """Where fading, which lets only strong gains through, beats the channel without it."""
        wins, cases = {True: 0, False: 0}, {True: 0, False: 0}
        for choir in choirs:
            for epsilon in self.epsilons:
                for snr_db in self.snrs_db:
                    plain = dict(self._curve(choir, found, PLAIN, epsilon, snr_db))
                    for p, f1 in self._curve(choir, found, FADED, epsilon, snr_db):
                        cheap = Rayleigh(snr_db).inversion_cost(p) < 1.0
                        cases[cheap] += 1
                        wins[cheap] += f1 > plain[p]
        return (
            f"At the same p fading is better than AWGN in {wins[True]} of the {cases[True]} cases here in which inverting the "
            f"gain costs less power than no fading, t above 0.435, and in {wins[False]} of the other {cases[False]}."
        )
