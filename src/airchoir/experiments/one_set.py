"""Who takes part, drawn once for a whole test set instead of for every query: how the paper's figure 2 was made."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from airchoir import provenance
from airchoir.bank import ScoreBank
from airchoir.experiments import Experiment, Progress, paper, silent
from airchoir.experiments.choirs import Choir, check_any, measure, source
from airchoir.experiments.lines import Line
from airchoir.experiments.methods import other_clients
from airchoir.experiments.participation import Participation
from airchoir.experiments.wording import by_task, promise, under
from airchoir.metrics import DenseTally, Estimate, summarise
from airchoir.quadrature import decision_probabilities
from airchoir.report.findings import ABSENT, Cell, Curve, Figure, Findings, Panel, Table
from airchoir.scheme import Scheme

DRAWN = "a set for every query"
KEPT = f"one set for a test set, mean of {paper.RUNS} runs: ± 2 std."
_NEAR = 2.0
_QUADRATURE = 1e-6
"""By how much two ways to average the noise may differ."""


@dataclass(frozen=True)
class Place:
    """A line at one participation, both ways."""

    choir: Choir
    line: Line
    participation: float
    scheme: Scheme
    drawn: Estimate
    """With a set for every query."""
    kept: tuple[float, ...]
    """Macro-F1 of each whole-test-set set, noise averaged exactly, the mean over banks."""
    noise: float
    """Standard deviation of macro-F1 that noise leaves in one run with one set."""
    said: float | None
    """The paper's."""

    @property
    def mean(self) -> float:
        return float(np.mean(self.kept))

    @property
    def std_of_run(self) -> float:
        """Of one run with one set: which set, and noise."""
        return math.hypot(float(np.std(self.kept)), self.noise)

    @property
    def error(self) -> float:
        """The standard error of the mean over the sets that were drawn here."""
        own = float(np.std(self.kept)) / math.sqrt(max(1, len(self.kept) - 1))
        return math.hypot(own, self.drawn.macro_f1_se, _QUADRATURE)

    @property
    def std_of_mean(self) -> float:
        """Of the mean of as many runs as the paper has."""
        return self.std_of_run / math.sqrt(paper.RUNS)

    def row(self) -> dict[str, Any]:
        """The place with all that it depends on, in JSON's own types."""
        row: dict[str, Any] = provenance.plain(
            {
                "task": self.choir.task,
                "clients": self.choir.clients,
                "seeds": [bank.metadata.get("seed", "") for bank in self.choir.banks],
                "rule": self.line.rule.name,
                "epsilon": self.line.epsilon,
                "participation": self.participation,
                "macro_f1": self.drawn.macro_f1,
                "macro_f1_std": self.drawn.macro_f1_std,
                "one_set_macro_f1": self.mean,
                "one_set_macro_f1_std": self.std_of_run,
                "one_set_sets": len(self.kept),
                "paper": self.said,
                "sigma": self.drawn.sigma,
                "accountant": self.drawn.accountant,
                "scheme": provenance.describe(self.scheme),
            }
        )
        return row


def with_set(scheme: Scheme, bank: ScoreBank, members: NDArray[np.bool_]) -> Estimate:
    """The metrics where the same clients answer every query of the bank; the noise is integrated."""
    link = scheme.link(bank)
    std = math.sqrt(float(scheme.access.noise_variance(members[:, None], link)[0]))
    tally: DenseTally | None = None
    for block in bank.blocks():
        sums = scheme.rule.encode(bank.test_scores[link.roster[members], block]).sum(axis=0)
        rows = decision_probabilities(np.round(sums, 12), std)
        part = DenseTally.of(rows, np.asarray(bank.test_labels[block]))
        tally = part if tally is None else tally + part
    assert tally is not None  # a bank has queries
    return summarise(tally)


def draw_sets(clients: int, probability: float, sets: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(sets, clients): each client takes part by chance; where nobody does, one is drafted, as in the published figure."""
    drawn = rng.random((sets, clients)) < probability
    drafted = rng.integers(0, clients, sets)
    empty = ~drawn.any(axis=1)
    drawn[empty, drafted[empty]] = True
    return drawn


@dataclass(frozen=True)
class OneSet(Experiment):
    """Who takes part, drawn once for a whole test set instead of for every query: how the paper's figure 2 was made."""

    name: ClassVar[str] = "one_set"
    title: ClassVar[str] = "What one set of participants for a whole test set changes"

    participations: tuple[float, ...] = tuple(tenths / 10 for tenths in range(1, 10))
    epsilon: float = 1.0
    sets: int = 20
    """Drawn at each participation, the same for every line and bank."""
    seed: int = 0

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        sweep = Participation(self.participations, self.epsilon).sweep()
        grid = [(choir, line, p) for choir in choirs for line in sweep.lines for p in sweep.values]
        places: list[Place] = []
        for choir, line, p in grid:
            places.append(self._place(choir, line, p, sweep.scheme(line, p)))
            progress(len(places), len(grid))
        return Findings(
            name=self.name,
            title=self.title,
            summary=tuple(self._summary(choirs, places)),
            tables=(self._table(places),),
            figures=tuple(self._figure(choir, places, len(choirs)) for choir in choirs),
            rows=tuple(place.row() for place in places),
            notes=(
                f"At each p {self.sets} sets are drawn, the same for every line, and the noise is averaged exactly. One set "
                "for many queries is also far worse for privacy, which nothing here accounts for: do not deploy it.",
                *other_clients(list(dict.fromkeys(place.choir for place in places if place.said is not None))),
            ),
            source=source(),
        )

    def _place(self, choir: Choir, line: Line, p: float, scheme: Scheme) -> Place:
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, round(1e9 * p)]))
        found = [
            [with_set(scheme, bank, members) for bank in choir.banks]
            for members in draw_sets(choir.clients, p, self.sets, rng)
        ]
        kept = tuple(float(np.mean([own.macro_f1 for own in of_set])) for of_set in found)
        noise = math.sqrt(float(np.mean([own.macro_f1_std**2 for of_set in found for own in of_set])))
        said = paper.in_figure2("participation", line.rule.name, line.epsilon, choir.task)
        theirs = dict(zip(said.x, said.y, strict=True)).get(p) if said else None
        return Place(choir, line, p, scheme, measure(scheme, choir).pooled, kept, noise, theirs)

    def _figure(self, choir: Choir, places: Sequence[Place], tasks: int) -> Figure:
        """A panel for each rule."""
        own = [place for place in places if place.choir is choir]
        titles = dict.fromkeys(place.line.title for place in own)
        return Figure(
            self.name if tasks == 1 else f"{self.name}_{choir.word}",
            f"{choir.title}: participants drawn for every query, and once for a whole test set",
            tuple(self._panel(title, [place for place in own if place.line.title == title]) for title in titles),
        )

    def _panel(self, title: str, places: Sequence[Place]) -> Panel:
        curves = []
        for style, epsilon in ((0, math.inf), (2, self.epsilon)):
            line = [place for place in places if place.line.epsilon == epsilon]
            x = tuple(place.participation for place in line)
            said = [(place.participation, 100.0 * place.said) for place in line if place.said is not None]
            if said:
                published_x, published_y = (tuple(values) for values in zip(*said, strict=True))
                curves.append(Curve("the paper's (faint)", published_x, published_y, style=style + 1, published=True))
            drawn = tuple(100.0 * place.drawn.macro_f1 for place in line)
            curves.append(Curve(f"{DRAWN}, {promise(epsilon)}", x, drawn, style=style))
            mean = tuple(100.0 * place.mean for place in line)
            low, high = (
                tuple(100.0 * (place.mean + side * _NEAR * place.std_of_mean) for place in line) for side in (-1.0, 1.0)
            )
            curves.append(Curve(f"{KEPT}, {promise(epsilon)}", x, mean, low, high, style=style + 1))
        return Panel(title, "Participation p", "Macro-F1 (%)", tuple(curves))

    def _table(self, places: Sequence[Place]) -> Table:
        rows = []
        for place in places:
            said = ABSENT.text if place.said is None else f"{100 * place.said:.2f}"
            drawn, kept, mean = (100 * v for v in (place.drawn.macro_f1, place.mean, place.std_of_mean))
            cells = (place.choir.title, place.line.label, f"{place.participation:g}", f"{drawn:.2f}", f"{kept:.2f}")
            rows.append(tuple(map(Cell, (*cells, f"{100 * place.std_of_run:.2f}", f"{mean:.2f}", said))))
        return Table(
            name=self.name,
            caption="Macro-F1 in percent with a set for every query, and with one set for a whole test set",
            header=(
                *("Task", "Line", "p", "Set for every query", "One set", "Std. of a run"),
                *(f"Std. of {paper.RUNS} runs' mean", "Paper"),
            ),
            rows=tuple(rows),
            sections=tuple(range(len(self.participations), len(rows), len(self.participations))),
        )

    def _summary(self, choirs: Sequence[Choir], places: Sequence[Place]) -> list[str]:
        spreads, agreed, fives = [], [], []
        for choir in choirs:
            private = [place for place in places if place.choir is choir and place.line.epsilon == self.epsilon]
            widest = max(private, key=lambda place: place.std_of_run)
            spreads.append(
                f"{100 * widest.std_of_run:.1f} points instead of {100 * widest.drawn.macro_f1_std:.1f} "
                f"({widest.line.title}, p = {widest.participation:g})"
            )
            fives.append(f"{100 * widest.std_of_mean:.1f} points")
            own = [place for place in places if place.choir is choir]
            agreeing = sum(abs(place.mean - place.drawn.macro_f1) <= _NEAR * place.error for place in own)
            agreed.append(f"at {agreeing} of {len(own)} places")
        return [
            f"The largest standard deviation of one run with one set {under(self.epsilon)}: {by_task(choirs, spreads)}.",
            f"That of the mean of {paper.RUNS} such runs, as published, at the same place: {by_task(choirs, fives)}.",
            f"In the mean over the {self.sets} sets drawn both ways agree within {_NEAR:g} standard errors: "
            f"{by_task(choirs, agreed)}.",
            *self._beside(places),
        ]

    def _beside(self, places: Sequence[Place]) -> list[str]:
        """How many of the paper's points such means explain, and how many sets for every query would."""
        said = [place for place in places if place.said is not None]
        if not said:
            return []
        kept = sum(abs((place.said or 0.0) - place.mean) <= _NEAR * place.std_of_mean for place in said)
        alone = [place.drawn.macro_f1_std / math.sqrt(paper.RUNS) for place in said]
        drawn = sum(
            abs((place.said or 0.0) - place.drawn.macro_f1) <= _NEAR * std
            for place, std in zip(said, alone, strict=True)
        )
        return [
            f"Of the paper's {len(said)} points at these p, {kept} lie within {_NEAR:g} standard deviations of a mean of "
            f"{paper.RUNS} runs with one set each, {drawn} of one with a set for every query."
        ]
