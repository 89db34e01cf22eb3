"""How much noise a promise takes, in all and for each client, by every accountant. Needs no bank."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from airchoir import provenance
from airchoir.access import Access
from airchoir.access.always_on import AlwaysOn
from airchoir.access.over_the_air import OverTheAir
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, source
from airchoir.experiments.wording import promise, rounded_up, small
from airchoir.privacy import Privacy, find_accountant
from airchoir.report.findings import Cell, Curve, Figure, Findings, Panel, Table
from airchoir.rules.vote import MajorityVote
from airchoir.scheme import Scheme

CONTENDERS: dict[str, tuple[Access, str]] = {
    "over the air, paper": (OverTheAir(), "paper"),
    "over the air, tight": (OverTheAir(), "tight"),
    "over the air, counted": (OverTheAir(), "counted"),
    "always-on, tight": (AlwaysOn(), "tight"),
}
"""Every accountant, and the access that makes counting transmitters useless."""
TIGHT = "over the air, tight"
CLASSES = 10
"""Of no effect: symbols of any number of classes differ by at most the same."""


@dataclass(frozen=True)
class Point:
    """The noise of one contender under one promise at one participation."""

    contender: str
    clients: int
    scheme: Scheme
    sigma: float
    """Of the sum."""
    own: float
    """Root mean square of what a client on air adds itself."""
    theorem: str

    def row(self) -> dict[str, Any]:
        """The point with all that it depends on, in JSON's own types."""
        row: dict[str, Any] = provenance.plain(
            {
                "contender": self.contender,
                "clients": self.clients,
                "epsilon": self.scheme.privacy.epsilon,
                "participation": self.scheme.participation,
                "accountant": self.scheme.privacy.accountant,
                "theorem": self.theorem,
                "sigma": self.sigma,
                "client_noise": self.own,
                "scheme": provenance.describe(self.scheme),
            }
        )
        return row


def point(contender: str, clients: int, privacy: Privacy, participation: float) -> Point:
    """The noise that keeps a promise; the accountant is the contender's."""
    access, accountant = CONTENDERS[contender]
    privacy = Privacy(privacy.epsilon, privacy.delta, accountant=accountant)
    scheme = Scheme(access=access, privacy=privacy, participation=participation)
    law = access.participation(clients, participation)
    sigma = privacy.sigma(MajorityVote().geometry(CLASSES), access.hidden(law))
    own = math.sqrt(access.mean_client_noise_variance(sigma, law))
    return Point(contender, clients, scheme, sigma, own, find_accountant(accountant).theorem(access.hidden(law)))


@dataclass(frozen=True)
class Noise(Experiment):
    """How much noise a promise takes, in all and for each client, by every accountant. Needs no bank."""

    name: ClassVar[str] = "noise"
    title: ClassVar[str] = "How much noise a promise takes"
    needs_banks: ClassVar[bool] = False

    epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)
    delta: float = 1e-6
    participations: tuple[float, ...] = tuple(twentieths / 20 for twentieths in range(1, 21))
    clients: int = 20
    """Where no bank says how many."""

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        crowds = sorted({choir.clients for choir in choirs}) or [self.clients]
        grid = [(n, e, c, p) for n in crowds for e in self.epsilons for c in CONTENDERS for p in self.participations]
        points: list[Point] = []
        for n, epsilon, contender, p in grid:
            points.append(point(contender, n, Privacy(epsilon, self.delta), p))
            progress(len(points), len(grid))
        return Findings(
            name=self.name,
            title=self.title,
            summary=tuple(sentence for n in crowds for sentence in self._summary(crowd(points, n))),
            tables=tuple(self._table(crowd(points, n), suffix(n, crowds)) for n in crowds),
            figures=tuple(figure for n in crowds for figure in self._figures(crowd(points, n), suffix(n, crowds))),
            rows=tuple(each.row() for each in points),
            notes=(
                "sigma is the standard deviation of the privacy noise in the sum. A client's own noise is the root mean "
                "square over the rounds that it is on air: sigma / sqrt(|P_t|) over the air, sigma / sqrt(n) always-on.",
                "Majority voting and belief summation need the same noise: two answers of either differ by at most sqrt(2).",
            ),
            source=source(),
        )

    def _figures(self, points: Sequence[Point], ending: str) -> list[Figure]:
        """The sum's noise and each client's, a panel for every epsilon."""
        n = points[0].clients
        kinds = (("sigma", "Noise of the sum, sigma"), ("client", "A client's own noise"))
        return [
            Figure(
                f"noise_{kind}{ending}",
                f"{label} against the participation p, {n} clients, δ = {small(self.delta)}",
                tuple(self._panel(points, epsilon, kind, label) for epsilon in self.epsilons),
            )
            for kind, label in kinds
        ]

    def _panel(self, points: Sequence[Point], epsilon: float, kind: str, label: str) -> Panel:
        curves = []
        for style, contender in enumerate(CONTENDERS):
            own = pick(points, epsilon, contender)
            y = tuple(each.sigma if kind == "sigma" else each.own for each in own)
            curves.append(Curve(contender, self.participations, y, style=style))
        return Panel(promise(epsilon), "Participation p", label, tuple(curves))

    def _table(self, points: Sequence[Point], ending: str) -> Table:
        """The sum's noise and a client's own at every place of the grid."""
        rows = []
        for epsilon in self.epsilons:
            columns = [pick(points, epsilon, contender) for contender in CONTENDERS]
            for place, p in enumerate(self.participations):
                cells = [
                    Cell(f"{rounded_up(column[place].sigma, 3)} ({rounded_up(column[place].own, 3)})")
                    for column in columns
                ]
                rows.append((Cell(f"{epsilon:g}"), Cell(f"{p:g}"), *cells))
        return Table(
            name=f"noise{ending}",
            caption=f"Noise of the sum, and in brackets a client's own, {points[0].clients} clients",
            header=("ε", "p", *CONTENDERS),
            rows=tuple(rows),
            sections=tuple(range(len(self.participations), len(rows), len(self.participations))),
            notes=(f"Standard deviations, rounded up, δ = {small(self.delta)}.",),
        )

    def _summary(self, points: Sequence[Point]) -> list[str]:
        usual = min(self.epsilons, key=lambda epsilon: abs(epsilon - 1.0))
        ends = max(self.participations), min(self.participations)
        return [
            *(self._asked(points, usual, p) for p in reversed(ends)),  # where they differ comes first
            self._own(points, usual, ends),
            f"By the paper's theorem the sum needs {_ratio(points, 'over the air, paper', 'sigma')}.",
            f"Against a server that counts transmitters the sum needs {_ratio(points, 'over the air, counted', 'sigma')}.",
            f"Always-on, a client adds {_ratio(points, 'always-on, tight', 'own')}.",
        ]

    def _asked(self, points: Sequence[Point], epsilon: float, p: float) -> str:
        asked = [f"{each.contender} {rounded_up(each.sigma, 2)}" for each in points if _is(each, epsilon, p)]
        return (
            f"What the sum of {points[0].clients} clients needs at {promise(epsilon)}, p = {p:g}: {'; '.join(asked)}."
        )

    def _own(self, points: Sequence[Point], epsilon: float, ends: tuple[float, float]) -> str:
        phrases = []
        for contender in CONTENDERS:
            values = [each for p in ends for each in points if _is(each, epsilon, p) and each.contender == contender]
            phrases.append(f"{contender} {' and '.join(rounded_up(each.own, 2) for each in values)}")
        return (
            f"What each of {points[0].clients} clients adds itself at {promise(epsilon)}, p = {ends[0]:g} and {ends[1]:g}: "
            f"{'; '.join(phrases)}."
        )


def crowd(points: Sequence[Point], clients: int) -> list[Point]:
    """The points of so many clients."""
    return [each for each in points if each.clients == clients]


def suffix(clients: int, crowds: Sequence[int]) -> str:
    """What tells files apart where there are several crowds."""
    return f"_{clients}_clients" if len(crowds) > 1 else ""


def pick(points: Sequence[Point], epsilon: float, contender: str) -> list[Point]:
    """A contender's points under a promise, by participation."""
    return [each for each in points if (each.scheme.privacy.epsilon, each.contender) == (epsilon, contender)]


def _is(point: Point, epsilon: float, p: float) -> bool:
    return (point.scheme.privacy.epsilon, point.scheme.participation) == (epsilon, p)


def _ratio(points: Sequence[Point], contender: str, what: str) -> str:
    """The smallest and largest quotient of a contender and the tight accountant over the air, and where the largest is."""
    theirs = {(e.scheme.privacy.epsilon, e.scheme.participation): e for e in points if e.contender == TIGHT}
    quotients = []
    for each in (each for each in points if each.contender == contender):
        place = each.scheme.privacy.epsilon, each.scheme.participation
        if theirs[place].sigma > 0.0:
            quotients.append((getattr(each, what) / getattr(theirs[place], what), place))
    if not quotients:
        return "no noise, as no promise here takes any"
    largest, (epsilon, p) = max(quotients)
    return (
        f"{min(quotients)[0]:.2f} to {largest:.2f} times what the tight accountant asks for over the air, the most at "
        f"{promise(epsilon)}, p = {p:g}"
    )
