"""Macro-F1 against the SNR, everyone taking part: the left panel of the paper's figure 2."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from airchoir.access.over_the_air import OverTheAir
from airchoir.channels.awgn import Awgn
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, check_any, source
from airchoir.experiments.lines import Line, Sweep, Swept, four_lines
from airchoir.experiments.methods import DELTA, SNR_DB
from airchoir.experiments.wording import by_task, points, share, under
from airchoir.privacy import Privacy
from airchoir.report.findings import Findings
from airchoir.scheme import Scheme


@dataclass(frozen=True)
class Snr(Experiment):
    """Macro-F1 against the SNR, everyone taking part: the left panel of the paper's figure 2."""

    name: ClassVar[str] = "snr"
    title: ClassVar[str] = "What the SNR costs"

    snrs_db: tuple[float, ...] = tuple(float(snr) for snr in range(-2, 21, 2))
    epsilon: float = 1.0
    delta: float = DELTA
    participation: float = 1.0
    accountant: str = "paper"

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        swept = self.sweep().measure(choirs, progress)
        return Findings(
            name=self.name,
            title=self.title,
            summary=self.summary(swept),
            tables=(
                swept.table("snr", self.caption),
                *([swept.paper_table("snr_paper")] if swept.compared else []),
            ),
            figures=(swept.figure("snr", self.caption),),
            rows=swept.rows(),
            notes=swept.notes(),
            source=source(),
        )

    @property
    def setting(self) -> str:
        """What does not vary."""
        return f"p = {self.participation:g}"

    @property
    def caption(self) -> str:
        """What its table and figure show."""
        return f"Macro-F1 against the SNR, {self.setting}"

    def sweep(self) -> Sweep:
        """Its grid."""
        published = "snr" if (self.participation, self.delta) == (1.0, DELTA) else ""
        return Sweep(
            parameter="snr_db",
            say="{} dB",
            x_label="SNR (dB)",
            values=tuple(sorted(self.snrs_db)),
            scheme=self._scheme,
            lines=four_lines(self.epsilon),
            published=published,
        )

    def _scheme(self, line: Line, snr_db: float) -> Scheme:
        privacy = Privacy(line.epsilon, self.delta, accountant=self.accountant)
        return Scheme(line.rule, OverTheAir(), Awgn(snr_db), privacy, self.participation)

    def summary(self, swept: Swept) -> tuple[str, ...]:
        """What it shows."""
        private = [swept.line(rule, self.epsilon) for rule in ("vote", "belief")]
        return (
            *(f"{line.title} {under(self.epsilon)}: {swept.ends(line)}." for line in private),
            self._range(swept),
            self._price(swept),
            f"Where votes have the higher macro-F1 {under(self.epsilon)}, by SNR in dB: {swept.ahead(self.epsilon)}.",
            self._reason(swept),
            *swept.beside(),
        )

    def _range(self, swept: Swept) -> str:
        phrases = []
        for choir in swept.choirs:
            spans = []
            for line in swept.sweep.lines:
                y = swept.curve(choir, line)
                spans.append(f"{line.label} {100 * (max(y) - min(y)):.2f}")
            phrases.append(", ".join(spans))
        return f"Between the best and the worst SNR lie, in points of macro-F1: {by_task(swept.choirs, phrases)}."

    def _price(self, swept: Swept) -> str:
        usual = min(swept.sweep.values, key=lambda snr: abs(snr - SNR_DB))
        phrases = []
        for choir in swept.choirs:
            lost = []
            for rule, who in (("vote", "votes"), ("belief", "beliefs")):
                private, public = (
                    swept.at(choir, swept.line(rule, e), usual).pooled.macro_f1 for e in (self.epsilon, float("inf"))
                )
                lost.append(f"{points(private - public)} for {who}")
            phrases.append(" and ".join(lost))
        return f"What ε = {self.epsilon:g} changes at {swept.sweep.words(usual)}, in points: {by_task(swept.choirs, phrases)}."

    def _reason(self, swept: Swept) -> str:
        line = swept.line("vote", self.epsilon)
        phrases = []
        for choir in swept.choirs:
            shares = []
            for snr_db in (swept.sweep.values[0], swept.sweep.values[-1]):
                found = swept.at(choir, line, snr_db).pooled
                total = found.sigma**2 + found.channel_noise_variance
                shares.append(f"{share(found.channel_noise_variance / total)} at {swept.sweep.words(snr_db)}")
            phrases.append(" and ".join(shares))
        return (
            f"The receiver's share of all noise in the decision, votes {under(self.epsilon)} (the rest buys privacy): "
            f"{by_task(swept.choirs, phrases)}."
        )
