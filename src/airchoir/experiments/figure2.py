"""The paper's figure 2: macro-F1 against the SNR, and against the probability of taking part."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, check_any, source
from airchoir.experiments.lines import Swept
from airchoir.experiments.participation import PER_QUERY, Participation
from airchoir.experiments.snr import Snr
from airchoir.report.findings import Figure, Findings


@dataclass(frozen=True)
class Figure2(Experiment):
    """The paper's figure 2: macro-F1 against the SNR, and against the probability of taking part."""

    name: ClassVar[str] = "figure2"
    title: ClassVar[str] = "Figure 2: the SNR, and who takes part"

    snr: Snr = field(default_factory=Snr)
    participation: Participation = field(default_factory=Participation)

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        sweeps = self.snr.sweep(), self.participation.sweep()
        steps = [len(choirs) * len(sweep.lines) * len(sweep.values) for sweep in sweeps]
        left = sweeps[0].measure(choirs, lambda done, total: progress(done, sum(steps)))
        right = sweeps[1].measure(choirs, lambda done, total: progress(steps[0] + done, sum(steps)))
        captions = self.snr.caption, self.participation.caption
        tables = [
            swept.table(f"figure2_{swept.sweep.parameter}", caption)
            for swept, caption in zip((left, right), captions, strict=True)
        ]
        tables += [
            swept.paper_table(f"figure2_{swept.sweep.parameter}_paper") for swept in (left, right) if swept.compared
        ]
        return Findings(
            name=self.name,
            title=self.title,
            summary=(*self.snr.summary(left), *self.participation.summary(right)),
            tables=tuple(tables),
            figures=tuple(self._figures(left, right)),
            rows=(*left.rows(), *right.rows()),
            notes=(*right.notes(), *([PER_QUERY] if right.compared else [])),
            source=source(),
        )

    def _figures(self, left: Swept, right: Swept) -> list[Figure]:
        """One for each task; the paper's own task, or else the first, has the plain name."""
        plain = next(iter((*right.compared, *left.compared)), left.choirs[0])
        figures = []
        for choir in sorted(left.choirs, key=lambda choir: choir is not plain):
            panels = (left.panel(choir, self.snr.setting), right.panel(choir, self.participation.setting))
            name = "figure2" if choir is plain else f"figure2_{choir.word}"
            figures.append(
                Figure(name, f"{choir.title}: macro-F1 against the SNR and against the participation p", panels)
            )
        return figures
