"""Macro-F1 against epsilon, for the five methods of table 1: where privacy begins to cost, by method."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from airchoir.channels.awgn import Awgn
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, check_any, source
from airchoir.experiments.conditions import (
    Condition,
    Measured,
    check_ascending,
    measure_all,
    percent_curve,
    set_off,
    steady_from,
)
from airchoir.experiments.methods import APART, METHODS, SNR_DB, VOTE, methods_of, style_of, without_best_client
from airchoir.experiments.wording import each, listing, share
from airchoir.privacy import Privacy
from airchoir.report.findings import Curve, Figure, Findings, Panel
from airchoir.scheme import Scheme


@dataclass(frozen=True)
class Epsilon(Experiment):
    """All five methods from a strict promise to none."""

    name: ClassVar[str] = "epsilon"
    title: ClassVar[str] = "Macro-F1 against epsilon"
    epsilons: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, math.inf)
    """Ascending."""
    delta: float = 1e-6
    snr_db: float = SNR_DB
    close: float = 0.01
    """The macro-F1 that counts as no loss in the sentences."""

    def __post_init__(self) -> None:
        check_ascending("epsilons", self.epsilons)

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        conditions = [
            Condition({"method": method, "epsilon": epsilon}, choir, self._scheme(method, epsilon))
            for choir in choirs
            for method in methods_of(choir)
            for epsilon in self.epsilons
        ]
        found = measure_all(conditions, progress=progress)
        caption = (
            f"Macro-F1 against the epsilon of one query (delta {self.delta:g}, p = 1, SNR {self.snr_db:g} dB); "
            "∞, set off on the right, is no privacy."
        )
        return Findings(
            name=self.name,
            title=self.title,
            summary=self._summary(choirs, found),
            figures=(Figure(self.name, caption, tuple(self._panel(choir, found) for choir in choirs)),),
            rows=found.rows(),
            notes=without_best_client(choirs),
            source=source(),
        )

    def _scheme(self, method: str, epsilon: float) -> Scheme:
        return Scheme(*METHODS[method], Awgn(self.snr_db), Privacy(epsilon, self.delta))

    def _panel(self, choir: Choir, found: Measured) -> Panel:
        curves: list[Curve] = []
        for method in methods_of(choir):
            points = [
                (at, found.f1(choir, method=method, epsilon=epsilon))
                for at, epsilon in zip(set_off(self.epsilons), self.epsilons, strict=True)
            ]
            finite = sum(map(math.isfinite, self.epsilons))
            pieces = [
                piece for piece in (points[:finite], points[finite:]) if piece
            ]  # nothing joins the finite to none
            curves += [percent_curve(method, piece, style=style_of(method)) for piece in pieces]
        ticks = [
            (at, label) for at, label in zip(set_off(self.epsilons), map(_tick, self.epsilons), strict=True) if label
        ]
        return Panel(
            choir.title,
            "Epsilon per query",
            "Macro-F1 (%)",
            tuple(curves),
            log_x=True,
            x_ticks=tuple(at for at, _ in ticks),
            x_tick_labels=tuple(label for _, label in ticks),
        )

    def _summary(self, choirs: Sequence[Choir], found: Measured) -> tuple[str, ...]:
        loosest, strictest = self.epsilons[-1], self.epsilons[0]

        def f1(place: int, method: str, epsilon: float) -> float:
            return found.f1(choirs[place], method=method, epsilon=epsilon)

        def enough(place: int, method: str, wanted: float) -> float | None:
            first = steady_from([f1(place, method, epsilon) >= wanted for epsilon in self.epsilons])
            return None if first is None else self.epsilons[first]

        def unharmed(place: int) -> str:
            return listing(
                f"{enough(place, method, f1(place, method, loosest) - self.close):g} for {words}"
                for method, words in ((VOTE, "the choir's vote"), (APART, "separate votes"))
            )

        def same(place: int) -> str:
            wanted = f1(place, VOTE, self._reference)
            reached = enough(place, APART, wanted)
            where = "at no epsilon here" if reached is None else f"from epsilon {reached:g} on"
            return f"{share(wanted)}, which separate votes have {where}"

        def at_the_ends(place: int) -> str:
            best = max(methods_of(choirs[place]), key=lambda method: f1(place, method, strictest))
            return f"{best} with {share(f1(place, best, strictest))}"

        return (
            f"The epsilon here from which on privacy costs at most {100 * self.close:g} point of macro-F1: "
            f"{each(choirs, unharmed)}.",
            f"At epsilon {self._reference:g} the choir's vote has a macro-F1 of {each(choirs, same)}.",
            f"At the strictest promise, epsilon {strictest:g}, the best method is {each(choirs, at_the_ends)}.",
        )

    @property
    def _reference(self) -> float:
        """The epsilon nearest to the paper's 1."""
        return min(self.epsilons, key=lambda epsilon: abs(math.log(epsilon)))


def _tick(epsilon: float) -> str:
    """What is written at an epsilon of the axis: powers of ten and infinity.

    >>> [_tick(epsilon) for epsilon in (0.1, 0.7, 10.0, math.inf)]
    ['0.1', '', '10', '∞']
    """
    if epsilon == math.inf:
        return "∞"
    return f"{epsilon:g}" if math.log10(epsilon) % 1.0 == 0.0 else ""
