"""Which participation is best, by access and accountant: noise falls with p, and so does the number of voices."""

from collections.abc import Sequence
from dataclasses import dataclass, field
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
from airchoir.experiments.subsets import hands, sizes_within, smaller
from airchoir.experiments.wording import listing, points, promise
from airchoir.metrics import Estimate
from airchoir.privacy import Privacy
from airchoir.report.findings import Cell, Curve, Figure, Findings, Panel, Table
from airchoir.rules import Rule
from airchoir.rules.vote import MajorityVote
from airchoir.scheme import Scheme

CONTENDERS: dict[str, tuple[Access, str]] = {
    "over the air, paper": (OverTheAir(), "paper"),
    "over the air, tight": (OverTheAir(), "tight"),
    "over the air, counted": (OverTheAir(), "counted"),
    "always-on, tight": (AlwaysOn(), "tight"),
}
"""Accesses and accountants; with everyone they are one mechanism."""
PARTICIPATIONS = (0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class Best:
    """The participation of highest accuracy, and what it is worth."""

    participation: float
    accuracy: float
    gain: float
    """Over the largest participation of the grid."""


@dataclass(frozen=True)
class BestParticipation(Experiment):
    """The vote at every participation, epsilon and size of choir, for every access and accountant."""

    name: ClassVar[str] = "best_participation"
    title: ClassVar[str] = "The best participation, by access and accountant"
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)
    participations: tuple[float, ...] = PARTICIPATIONS
    """Ascending."""
    sizes: tuple[int, ...] = (5,)
    """Of smaller choirs; all clients of a bank are added."""
    reference: float = 1.0
    """The epsilon whose accuracies are drawn against p."""
    delta: float = 1e-6
    snr_db: float = SNR_DB
    rule: Rule = field(default_factory=MajorityVote)
    hands: int = 4
    """The least number of hands of a smaller choir."""
    close: float = 0.01
    """Of accuracy: what a deployment may give up for fewer transmitters."""
    worth: float = 1e-4
    """Of accuracy: the gain that is counted as one."""

    def __post_init__(self) -> None:
        check_ascending("epsilons", self.epsilons)
        check_ascending("participations", self.participations, least=2)

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        found = measure_all([one for choir in choirs for one in self._conditions(choir)], progress=progress)
        places = self._places(choirs)
        setting = f"(delta {self.delta:g}, SNR {self.snr_db:g} dB, rule {self.rule.name})"
        figures = (
            Figure(
                self.name,
                f"The participation p of highest accuracy against the epsilon of one query {setting}. Where a curve cannot "
                "be seen it lies under the others.",
                self._best_panels(places, found),
            ),
            Figure(
                f"{self.name}_accuracy",
                f"Accuracy against participation p at {promise(self._reference)} per query {setting}.",
                tuple(self._accuracy_panel(choir, size, found) for choir, size in places),
            ),
        )
        return Findings(
            name=self.name,
            title=self.title,
            summary=self._summary(choirs, places, found),
            tables=(self._table(places, found),),
            figures=figures,
            rows=found.rows(),
            notes=(
                "Gains are exact for these test sets, without noise of their own; hundredths of a point may well differ on "
                "another test set.",
                "The server must not be able to count transmitters, except by accountant counted and with always-on noise.",
                f"A smaller choir is an average over {self.hands} or more hands of clients, dealt at random with fixed seed.",
            ),
            source=source(),
        )

    def _places(self, choirs: Sequence[Choir]) -> list[tuple[Choir, int]]:
        """All clients of every choir, then the smaller choirs."""
        some = [(choir, size) for choir in choirs for size in sizes_within(self.sizes, choir.clients)]
        return sorted(some, key=lambda place: place[1] < place[0].clients)

    @property
    def _reference(self) -> float:
        """An epsilon of the grid."""
        return min(self.epsilons, key=lambda epsilon: abs(epsilon - self.reference))

    def _conditions(self, choir: Choir) -> list[Condition]:
        conditions = []
        for size in sizes_within(self.sizes, choir.clients):
            part = smaller(choir, hands(choir.clients, size, least=self.hands))
            conditions += [
                Condition(
                    {"contender": name, "epsilon": epsilon, "participation": participation, "clients": size},
                    part,
                    self._scheme(name, epsilon, participation),
                )
                for name in CONTENDERS
                for epsilon in self.epsilons
                for participation in self.participations
            ]
        return conditions

    def _scheme(self, contender: str, epsilon: float, participation: float) -> Scheme:
        access, accountant = CONTENDERS[contender]
        privacy = Privacy(epsilon, self.delta, accountant=accountant)
        return Scheme(self.rule, access, Awgn(self.snr_db), privacy, participation)

    def _curve(self, choir: Choir, size: int, found: Measured, *, contender: str, epsilon: float) -> list[Estimate]:
        """At every participation."""
        return [
            found.pooled(choir, contender=contender, epsilon=epsilon, participation=participation, clients=size)
            for participation in self.participations
        ]

    def best(self, choir: Choir, size: int, found: Measured, *, contender: str, epsilon: float) -> Best:
        """The highest accuracy of a contender; of equals the one with the most voices."""
        curve = self._curve(choir, size, found, contender=contender, epsilon=epsilon)
        place = max(range(len(curve)), key=lambda i: (curve[i].accuracy, i))
        return Best(self.participations[place], curve[place].accuracy, curve[place].accuracy - curve[-1].accuracy)

    def _best_panels(self, places: Sequence[tuple[Choir, int]], found: Measured) -> tuple[Panel, ...]:
        """All on one scale, as most are close to 1."""
        drawn = [
            tuple(
                Curve(
                    name,
                    tuple(map(float, self.epsilons)),
                    tuple(
                        self.best(choir, size, found, contender=name, epsilon=e).participation for e in self.epsilons
                    ),
                    style=style,
                )
                for style, name in enumerate(CONTENDERS)
            )
            for choir, size in places
        ]
        lowest = min(p for curves in drawn for curve in curves for p in curve.y)
        return tuple(
            Panel(
                f"{choir.title}, n = {size}",
                "Epsilon per query",
                "Best p",
                curves,
                log_x=True,
                x_ticks=tuple(map(float, self.epsilons)),
                x_tick_labels=tuple(f"{epsilon:g}" for epsilon in self.epsilons),
                y_limits=(max(0.0, lowest - 0.1), 1.05),
            )
            for (choir, size), curves in zip(places, drawn, strict=True)
        )

    def _accuracy_panel(self, choir: Choir, size: int, found: Measured) -> Panel:
        curves = []
        for style, name in enumerate(CONTENDERS):
            curve = self._curve(choir, size, found, contender=name, epsilon=self._reference)
            accuracies = [estimate.accuracy for estimate in curve]
            curves.append(percent_curve(name, zip(self.participations, accuracies, strict=True), style=style))
        return Panel(f"{choir.title}, n = {size}", "Participation p", "Accuracy (%)", tuple(curves))

    def _table(self, places: Sequence[tuple[Choir, int]], found: Measured) -> Table:
        rows = []
        for choir, size in places:
            for epsilon in self.epsilons:
                top = [self.best(choir, size, found, contender=name, epsilon=epsilon) for name in CONTENDERS]
                highest = max(one.accuracy for one in top)
                rows.append(
                    (
                        *map(Cell, (choir.title, str(size), f"{epsilon:g}")),
                        *(
                            Cell(
                                f"{one.participation:g}: {100.0 * one.accuracy:.2f} ({points(one.gain)})",
                                bold=one.accuracy == highest,
                            )
                            for one in top
                        ),
                    )
                )
        return Table(
            self.name,
            "The best p, its accuracy in percent, and in brackets the points it gains over the largest p.",
            ("task", "clients", "epsilon", *CONTENDERS),
            tuple(rows),
            sections=tuple(range(len(self.epsilons), len(rows), len(self.epsilons))),
        )

    def _summary(
        self, choirs: Sequence[Choir], places: Sequence[tuple[Choir, int]], found: Measured
    ) -> tuple[str, ...]:
        cases = [(choir, size, epsilon) for choir, size in places for epsilon in self.epsilons]
        top = {
            name: [self.best(choir, size, found, contender=name, epsilon=epsilon) for choir, size, epsilon in cases]
            for name in CONTENDERS
        }
        counts = listing(
            f"{sum(one.gain < self.worth for one in best)} of {len(cases)} ({name})" for name, best in top.items()
        )
        gain, place, name = max((one.gain, place, name) for name, best in top.items() for place, one in enumerate(best))
        choir, size, epsilon = cases[place]
        return (
            f"No smaller p gains as much as {100.0 * self.worth:g} points of accuracy over p = {self.participations[-1]:g} in "
            f"so many of the cases, each a task, a number of clients and an epsilon: {counts}.",
            f"The most that a smaller p gains is {points(gain)} points of accuracy: {name} at p = "
            f"{top[name][place].participation:g}, with {size} clients at epsilon {epsilon:g} ({choir.title}).",
            self._close(choirs, found),
            self._reason(choirs[0], found),
        )

    def _close(self, choirs: Sequence[Choir], found: Measured) -> str:
        def first(choir: Choir, name: str) -> str:
            curve = self._curve(choir, choir.clients, found, contender=name, epsilon=self._reference)
            accuracies = [estimate.accuracy for estimate in curve]
            place = steady_from([accuracy >= max(accuracies) - self.close for accuracy in accuracies])
            return "nowhere" if place is None else f"{self.participations[place]:g}"

        by_contender = "; ".join(f"{listing(first(choir, name) for choir in choirs)} ({name})" for name in CONTENDERS)
        return (
            f"With all clients at epsilon {self._reference:g} accuracy stays within {100.0 * self.close:g} point of the best "
            f"from this p on ({listing(choir.title for choir in choirs)}): {by_contender}."
        )

    def _reason(self, choir: Choir, found: Measured) -> str:
        """What p does to the mean number of voices over the noise: it must raise that to pay for who is missing."""

        def most(name: str) -> str:
            ratios = [
                (ratio, self.participations[place], epsilon)
                for epsilon in self.epsilons
                for place, ratio in enumerate(self._voices_over_noise(choir, found, name, epsilon)[:-1])
            ]
            ratio, participation, epsilon = max(ratios)
            return f"{ratio:.3f} ({name}; p = {participation:g}, epsilon {epsilon:g})"

        return (
            f"The reason: a smaller p must raise the expected number of voices over the noise. Relative to p = "
            f"{self.participations[-1]:g} and with n = {choir.clients} that is at most {listing(map(most, CONTENDERS))}."
        )

    def _voices_over_noise(self, choir: Choir, found: Measured, contender: str, epsilon: float) -> list[float]:
        """The expected number of voices over sigma at every participation, relative to the last."""
        access, _ = CONTENDERS[contender]
        curve = self._curve(choir, choir.clients, found, contender=contender, epsilon=epsilon)
        voices = [
            access.participation(choir.clients, participation).mean_size / estimate.sigma
            for participation, estimate in zip(self.participations, curve, strict=True)
        ]
        return [each_one / voices[-1] for each_one in voices]
