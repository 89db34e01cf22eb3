"""Macro-F1 when many queries share one budget: what answering T times under a total epsilon costs each answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from airchoir.access import Access
from airchoir.access.always_on import AlwaysOn
from airchoir.access.over_the_air import OverTheAir
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
from airchoir.experiments.methods import SNR_DB
from airchoir.experiments.wording import each, listing, points, share
from airchoir.privacy import Privacy
from airchoir.report.findings import Figure, Findings, Panel
from airchoir.scheme import Scheme

EVERYONE = "everyone"
SAMPLED: dict[str, tuple[Access, str]] = {
    "over the air, paper": (OverTheAir(), "paper"),
    "over the air, tight": (OverTheAir(), "tight"),
    "over the air, counted": (OverTheAir(), "counted"),
    "always-on, tight": (AlwaysOn(), "tight"),
}


@dataclass(frozen=True)
class Budget(Experiment):
    """The vote over the air under a total epsilon for T queries, with everyone and with random participation."""

    name: ClassVar[str] = "budget"
    title: ClassVar[str] = "Macro-F1 when T queries share a total epsilon"
    totals: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
    """Total epsilons, ascending."""
    queries: tuple[int, ...] = (1, 10, 100, 1000, 10000)
    """T, ascending."""
    total: float = 8.0
    """The total epsilon at which participations and accountants are compared."""
    participation: float = 0.5
    delta: float = 1e-6
    snr_db: float = SNR_DB
    close: float = 0.01
    """The macro-F1 that counts as no loss in the sentences."""

    def __post_init__(self) -> None:
        check_ascending("totals", self.totals)
        check_ascending("queries", self.queries)

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        found = measure_all([one for choir in choirs for one in self._conditions(choir)], progress=progress)
        setting = f"SNR {self.snr_db:g} dB, total delta {self.delta:g}"
        figures = (
            Figure(
                self.name,
                f"Macro-F1 of the vote over the air against the total epsilon of T queries (p = 1, {setting}).",
                tuple(self._total_panel(choir, found) for choir in choirs),
            ),
            Figure(
                f"{self.name}_sampled",
                f"What p = {self.participation:g} instead of p = 1 changes in the macro-F1 of the vote, against the number of "
                f"queries T that share a total epsilon of {self.total:g} ({setting}), by access and accountant.",
                tuple(self._sampled_panel(choir, found) for choir in choirs),
            ),
        )
        return Findings(
            name=self.name,
            title=self.title,
            summary=self._summary(choirs, found),
            figures=figures,
            rows=found.rows(),
            notes=(
                "With everyone T queries are one Gaussian mechanism, exactly, by every accountant; with random participation "
                "their privacy-loss laws are composed, and participation is drawn afresh for every query.",
            ),
            source=source(),
        )

    def _conditions(self, choir: Choir) -> list[Condition]:
        def condition(contender: str, total: float, queries: int) -> Condition:
            words = {"contender": contender, "total_epsilon": total, "queries": queries}
            return Condition(words, choir, self._scheme(contender, total, queries))

        totals = sorted({*self.totals, self.total})
        together = [condition(EVERYONE, total, queries) for queries in self.queries for total in totals]
        return together + [condition(name, self.total, queries) for name in SAMPLED for queries in self.queries]

    def _scheme(self, contender: str, total: float, queries: int) -> Scheme:
        channel = Awgn(self.snr_db)
        if contender == EVERYONE:
            return Scheme(channel=channel, privacy=Privacy(total, self.delta, queries=queries))
        access, accountant = SAMPLED[contender]
        privacy = Privacy(total, self.delta, accountant=accountant, queries=queries)
        return Scheme(access=access, channel=channel, privacy=privacy, participation=self.participation)

    def _f1(self, choir: Choir, found: Measured, *, total: float, queries: int, contender: str = EVERYONE) -> float:
        return found.f1(choir, contender=contender, total_epsilon=total, queries=queries)

    def _change(self, choir: Choir, found: Measured, contender: str, queries: int) -> float:
        """What random participation changes in macro-F1."""
        everyone = self._f1(choir, found, total=self.total, queries=queries)
        return self._f1(choir, found, total=self.total, queries=queries, contender=contender) - everyone

    def _total_panel(self, choir: Choir, found: Measured) -> Panel:
        curves = [
            percent_curve(
                f"T = {queries:,}",
                [(total, self._f1(choir, found, total=total, queries=queries)) for total in self.totals],
                style=style,
            )
            for style, queries in enumerate(self.queries)
        ]
        return Panel(choir.title, "Total epsilon", "Macro-F1 (%)", tuple(curves), log_x=True)

    def _sampled_panel(self, choir: Choir, found: Measured) -> Panel:
        curves = []
        for style, contender in enumerate(SAMPLED):
            less = [self._change(choir, found, contender, queries) for queries in self.queries]
            curves.append(percent_curve(contender, zip(self.queries, less, strict=True), style=style))
        return Panel(
            choir.title,
            "Queries T",
            "Change of macro-F1 (points)",
            tuple(curves),
            log_x=True,
            x_ticks=tuple(map(float, self.queries)),
            x_tick_labels=tuple(f"{queries:,}" for queries in self.queries),
        )

    def _summary(self, choirs: Sequence[Choir], found: Measured) -> tuple[str, ...]:
        def falls(place: int) -> str:
            return listing(
                f"{share(self._f1(choirs[place], found, total=self.total, queries=queries))} for {queries:,}"
                for queries in self.queries
            )

        def enough(place: int) -> str:
            return listing(f"{self._enough(choirs[place], found, queries)} for {queries:,}" for queries in self.queries)

        middle = self.queries[len(self.queries) // 2]

        def sampled(place: int) -> str:
            parts = [
                f"{share(self._f1(choirs[place], found, total=self.total, queries=middle, contender=name))} ({name})"
                for name in SAMPLED
            ]
            return (
                f"{listing(parts)} against {share(self._f1(choirs[place], found, total=self.total, queries=middle))} with "
                "everyone"
            )

        sigmas = listing(
            f"{found.pooled(choirs[0], contender=EVERYONE, total_epsilon=self.total, queries=queries).sigma:.2f} for "
            f"{queries:,}"
            for queries in self.queries
        )
        return (
            f"A total epsilon of {self.total:g} buys a macro-F1 of {each(choirs, falls)} queries.",
            f"The total epsilon here from which on macro-F1 stays within {100 * self.close:g} point of its best here: "
            f"{each(choirs, enough)} queries.",
            f"The reason: within a total epsilon of {self.total:g} the noise of every answer is {sigmas} queries.",
            f"With p = {self.participation:g}, {middle:,} queries and a total epsilon of {self.total:g} macro-F1 is "
            f"{each(choirs, sampled)}.",
            self._extremes(choirs, found),
        )

    def _extremes(self, choirs: Sequence[Choir], found: Measured) -> str:
        changes = [
            (self._change(choir, found, contender, queries), f"{contender}; {queries:,} queries; {choir.title}")
            for choir in choirs
            for contender in SAMPLED
            for queries in self.queries
        ]
        (worst, where), (best, there) = min(changes), max(changes)
        return (
            f"Compared with everyone, p = {self.participation:g} changes macro-F1 by {points(worst)} ({where}) to "
            f"{points(best)} points ({there})."
        )

    def _enough(self, choir: Choir, found: Measured, queries: int) -> str:
        best = max(
            self._f1(choir, found, total=total, queries=each_one) for each_one in self.queries for total in self.totals
        )
        good = [self._f1(choir, found, total=total, queries=queries) >= best - self.close for total in self.totals]
        first = steady_from(good)
        return f"more than {self.totals[-1]:g}" if first is None else f"{self.totals[first]:g}"
