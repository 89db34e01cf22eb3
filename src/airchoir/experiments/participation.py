"""Macro-F1 against the probability of taking part: the right panel of the paper's figure 2."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from airchoir.access.over_the_air import OverTheAir
from airchoir.channels.awgn import Awgn
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, check_any, source
from airchoir.experiments.lines import Line, Sweep, Swept, four_lines
from airchoir.experiments.methods import DELTA, SNR_DB
from airchoir.experiments.wording import by_task, listing, under
from airchoir.participation import Participation as Law
from airchoir.privacy import Privacy
from airchoir.report.findings import Findings
from airchoir.scheme import Scheme

PER_QUERY = (
    "Ours draws who takes part afresh for every query, as the paper's Algorithm 1 says. The published figure draws it once "
    "for a whole test set and seed (five draws a point) and drafts one client where nobody took part: its points scatter with "
    "the sets that were drawn (airchoir experiment one_set)."
)


@dataclass(frozen=True)
class Participation(Experiment):
    """Macro-F1 against the probability of taking part: the right panel of the paper's figure 2."""

    name: ClassVar[str] = "participation"
    title: ClassVar[str] = "What taking part is worth"

    participations: tuple[float, ...] = tuple(tenths / 10 for tenths in range(1, 11))
    epsilon: float = 1.0
    delta: float = DELTA
    snr_db: float = SNR_DB
    accountant: str = "paper"

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        swept = self.sweep().measure(choirs, progress)
        return Findings(
            name=self.name,
            title=self.title,
            summary=self.summary(swept),
            tables=(
                swept.table("participation", self.caption),
                *([swept.paper_table("participation_paper")] if swept.compared else []),
            ),
            figures=(swept.figure("participation", self.caption),),
            rows=swept.rows(),
            notes=(*swept.notes(), *([PER_QUERY] if swept.compared else [])),
            source=source(),
        )

    @property
    def setting(self) -> str:
        """What does not vary."""
        return f"SNR {self.snr_db:g} dB"

    @property
    def caption(self) -> str:
        """What its table and figure show."""
        return f"Macro-F1 against the participation p, {self.setting}"

    def sweep(self) -> Sweep:
        """Its grid."""
        ours = (self.snr_db, self.delta, self.accountant)
        return Sweep(
            parameter="participation",
            say="p = {}",
            x_label="Participation p",
            values=tuple(sorted(self.participations)),
            scheme=self._scheme,
            lines=four_lines(self.epsilon),
            published="participation" if ours == (SNR_DB, DELTA, "paper") else "",
        )

    def _scheme(self, line: Line, participation: float) -> Scheme:
        privacy = Privacy(line.epsilon, self.delta, accountant=self.accountant)
        return Scheme(line.rule, OverTheAir(), Awgn(self.snr_db), privacy, participation)

    def summary(self, swept: Swept) -> tuple[str, ...]:
        """What it shows."""
        return (
            *(
                f"{line.title} {under(line.epsilon)}: {swept.ends(line)}."
                for line in (*swept.sweep.lines[2:], *swept.sweep.lines[:2])
            ),
            self._best(swept),
            f"Where votes have the higher macro-F1 {under(self.epsilon)}, by p: {swept.ahead(self.epsilon)}.",
            self._reason(swept),
            *swept.beside(),
        )

    def _best(self, swept: Swept) -> str:
        phrases = []
        for choir in swept.choirs:
            labels: dict[float, list[str]] = {}
            for line in swept.sweep.lines:
                y = swept.curve(choir, line)
                labels.setdefault(swept.sweep.values[y.index(max(y))], []).append(line.label)
            phrases.append(", ".join(f"{p:g} for {listing(those)}" for p, those in labels.items()))
        return f"The best p of the grid: {by_task(swept.choirs, phrases)}."

    def _reason(self, swept: Swept) -> str:
        """Fewer voices against less noise."""
        line, choir = swept.line("vote", self.epsilon), swept.choirs[0]
        parts = []
        for p in (swept.sweep.values[0], swept.sweep.values[-1]):
            sigma = swept.at(choir, line, p).pooled.sigma
            voices = Law(choir.clients, p).mean_size
            ratio = f", {voices / sigma:.2f} voices for each unit of noise" if 0.0 < sigma < math.inf else ""
            parts.append(f"sigma {sigma:.2f} for {voices:.1f} voices on average at {swept.sweep.words(p)}{ratio}")
        return (
            f"Voices against noise, {choir.clients} clients {under(self.epsilon)} (accountant {self.accountant}): "
            f"{'; '.join(parts)}."
        )
