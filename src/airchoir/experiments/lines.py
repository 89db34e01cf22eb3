"""The four lines of the paper's figure 2, both rules without privacy and with it, along any one parameter of the scheme."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from airchoir.experiments import Progress, paper
from airchoir.experiments.choirs import Choir, Measurement
from airchoir.experiments.conditions import Condition, Measured, measure_all
from airchoir.experiments.methods import other_clients
from airchoir.experiments.paper import PublishedCurve
from airchoir.experiments.wording import by_task, macro_f1, points, promise, ranges, rounded_up, share
from airchoir.report.findings import ABSENT, Cell, Curve, Figure, Panel, Table
from airchoir.rules import Rule
from airchoir.rules.belief import BeliefSum
from airchoir.rules.vote import MajorityVote
from airchoir.scheme import Scheme


@dataclass(frozen=True)
class Line:
    """A rule under a promise."""

    rule: Rule
    epsilon: float
    style: int

    @property
    def title(self) -> str:
        """The rule, in the paper's words."""
        return {"vote": "Majority Voting", "belief": "Belief Summation"}.get(self.rule.name, self.rule.name)

    @property
    def label(self) -> str:
        return f"{self.title} ({promise(self.epsilon)})"


@dataclass(frozen=True)
class Sweep:
    """A parameter, its values in ascending order, and the scheme of a line at each."""

    parameter: str
    """As rows call it: snr_db or participation."""
    say: str
    """A value in a sentence: "{} dB"."""
    x_label: str
    values: tuple[float, ...]
    scheme: Callable[[Line, float], Scheme]
    lines: tuple[Line, ...]
    published: str
    """Which of the paper's sweeps shows the same; empty where none does."""

    def words(self, x: float) -> str:
        """A value in a sentence."""
        return self.say.format(f"{x:g}".replace("-", "\N{MINUS SIGN}"))

    def measure(self, choirs: Sequence[Choir], progress: Progress) -> "Swept":
        """Every line at every value, on every choir."""
        conditions = [
            Condition({"rule": line.rule.name, "epsilon": line.epsilon, self.parameter: x}, choir, self.scheme(line, x))
            for choir in choirs
            for line in self.lines
            for x in self.values
        ]
        return Swept(self, tuple(choirs), measure_all(conditions, progress=progress))


def four_lines(epsilon: float) -> tuple[Line, ...]:
    """Votes and beliefs without privacy, then with it: the paper's order."""
    pairs = [(rule, promised) for promised in (math.inf, epsilon) for rule in (MajorityVote(), BeliefSum())]
    return tuple(Line(rule, promised, style) for style, (rule, promised) in enumerate(pairs))


@dataclass(frozen=True, eq=False)
class Swept:
    """What the four lines reach."""

    sweep: Sweep
    choirs: tuple[Choir, ...]
    measured: Measured

    def curve(self, choir: Choir, line: Line) -> list[float]:
        """Macro-F1 at every value."""
        return [self.at(choir, line, x).pooled.macro_f1 for x in self.sweep.values]

    def at(self, choir: Choir, line: Line, x: float) -> Measurement:
        """What was measured at one place."""
        return self.measured.at(choir, rule=line.rule.name, epsilon=line.epsilon, **{self.sweep.parameter: x})

    def said(self, choir: Choir, line: Line) -> PublishedCurve | None:
        """The paper's curve of the same."""
        if not self.sweep.published:
            return None
        return paper.in_figure2(self.sweep.published, line.rule.name, line.epsilon, choir.task)

    def off(self, choir: Choir, line: Line) -> dict[float, float]:
        """Ours less the paper's, wherever both have a value."""
        said = self.said(choir, line)
        theirs = dict(zip(said.x, said.y, strict=True)) if said else {}
        ours = dict(zip(self.sweep.values, self.curve(choir, line), strict=True))
        return {x: ours[x] - theirs[x] for x in ours if x in theirs}

    @property
    def compared(self) -> tuple[Choir, ...]:
        """The choirs whose task the paper's figure shows."""
        return tuple(c for c in self.choirs if any(self.off(c, line) for line in self.sweep.lines))

    def panel(self, choir: Choir, title: str) -> Panel:
        """Our lines, and behind them the paper's."""
        curves = []
        for line in self.sweep.lines:
            said = self.said(choir, line)
            if said is not None:
                y = tuple(100.0 * value for value in said.y)
                curves.append(Curve("the paper's (faint)", said.x, y, style=line.style, published=True))
        for line in self.sweep.lines:
            y = tuple(100.0 * value for value in self.curve(choir, line))
            curves.append(Curve(line.label, self.sweep.values, y, style=line.style))
        return Panel(title, self.sweep.x_label, "Macro-F1 (%)", tuple(curves))

    def figure(self, name: str, caption: str) -> Figure:
        """A panel for every choir."""
        return Figure(name, caption, tuple(self.panel(choir, choir.title) for choir in self.choirs))

    def table(self, name: str, caption: str) -> Table:
        """Macro-F1 of every line at every value."""
        rows = [
            (*self._place(choir, x), *(Cell(macro_f1(self.at(choir, line, x).pooled)) for line in self.sweep.lines))
            for choir in self.choirs
            for x in self.sweep.values
        ]
        notes = (
            "Macro-F1 in percent; ± is the standard deviation of one noisy run (of several banks: of any of them).",
        )
        return self._table(name, caption, rows, notes)

    def paper_table(self, name: str) -> Table:
        """Ours less the paper's, wherever its figure has a point."""
        offs = {(choir.task, line): self.off(choir, line) for choir in self.compared for line in self.sweep.lines}
        rows = []
        for choir in self.compared:
            for x in self.sweep.values:
                own = [offs[choir.task, line].get(x) for line in self.sweep.lines]
                cells = [ABSENT if value is None else Cell(points(value)) for value in own]
                rows.append((*self._place(choir, x), *cells))
        notes = (f"Macro-F1, ours less the paper's, in percentage points [{paper.source('figure2')}].",)
        return self._table(name, "Ours less the paper's figure 2", rows, notes)

    def _place(self, choir: Choir, x: float) -> tuple[Cell, ...]:
        value = Cell(f"{x:g}".replace("-", "\N{MINUS SIGN}"))
        return (Cell(choir.title), value) if len(self.choirs) > 1 else (value,)

    def _table(self, name: str, caption: str, rows: list[tuple[Cell, ...]], notes: tuple[str, ...]) -> Table:
        task = ("Task",) if len(self.choirs) > 1 else ()
        return Table(
            name=name,
            caption=caption,
            header=(*task, self.sweep.x_label, *(line.label for line in self.sweep.lines)),
            rows=tuple(rows),
            sections=tuple(range(len(self.sweep.values), len(rows), len(self.sweep.values))),
            notes=notes,
        )

    def rows(self) -> tuple[dict[str, Any], ...]:
        """Every number, with the paper's beside it."""
        rows = []
        for condition, row in zip(self.measured.conditions, self.measured.rows(), strict=True):
            line = self.line(condition.words["rule"], condition.words["epsilon"])
            said = self.said(condition.choir, line)
            x = condition.words[self.sweep.parameter]
            rows.append({**row, "paper": said.y[said.x.index(x)]} if said is not None and x in said.x else row)
        return tuple(rows)

    def notes(self) -> tuple[str, ...]:
        """What was drawn, and what is compared with the paper but is not alike."""
        return self._drawn(), *other_clients(self.compared)

    def _drawn(self) -> str:
        errors = [m.pooled.macro_f1_se for m in self.measured.measurements if m.pooled.draws]
        if not errors:
            return "No number here was drawn: participation and noise are averaged exactly."
        return (
            f"{len(errors)} of {len(self.measured.measurements)} values average drawn participant sets (beliefs at p < 1); "
            f"their standard error is at most {rounded_up(100 * max(errors), 2)} points. The others are exact."
        )

    # --- sentences

    def ends(self, line: Line) -> str:
        """Where a line begins and ends."""
        first, last = self.sweep.values[0], self.sweep.values[-1]
        phrases = []
        for choir in self.choirs:
            y = self.curve(choir, line)
            phrases.append(f"{share(y[0])} at {self.sweep.words(first)} and {share(y[-1])} at {self.sweep.words(last)}")
        return by_task(self.choirs, phrases)

    def ahead(self, epsilon: float) -> str:
        """Where votes beat beliefs under a promise."""
        vote, belief = (self.line(rule, epsilon) for rule in ("vote", "belief"))
        phrases = []
        for choir in self.choirs:
            pairs = zip(self.curve(choir, vote), self.curve(choir, belief), strict=True)
            won = [one > other for one, other in pairs]
            where = "everywhere" if all(won) else ranges(self.sweep.values, won)
            phrases.append("nowhere" if not any(won) else where)
        return by_task(self.choirs, phrases)

    def beside(self) -> list[str]:
        """A sentence for every task of the paper's figure: how far ours lies from it, line by line."""
        sentences = []
        for choir in self.compared:
            offs = {line: list(self.off(choir, line).values()) for line in self.sweep.lines}
            parts = [f"{line.label} {points(min(off))} to {points(max(off))}" for line, off in offs.items() if off]
            sentences.append(
                f"Ours less the paper's along {self.sweep.x_label}, {choir.title}, in points: {', '.join(parts)}."
            )
        return sentences

    def line(self, rule: str, epsilon: float) -> Line:
        """The line of a rule under a promise."""
        return next(line for line in self.sweep.lines if (line.rule.name, line.epsilon) == (rule, epsilon))
