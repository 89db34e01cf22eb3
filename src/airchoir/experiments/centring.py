"""What sending x - 1/k instead of x gains: the argmax is the same, so all of it is power, and less noise at p < 1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from airchoir.channels.awgn import Awgn
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, check_any, source
from airchoir.experiments.conditions import Condition, Measured, check_ascending, measure_all, percent_curve
from airchoir.experiments.wording import each, listing, number, points, promise
from airchoir.metrics import Estimate
from airchoir.privacy import Privacy
from airchoir.report.findings import Curve, Figure, Findings, Panel
from airchoir.rules import Rule
from airchoir.rules.centred import CentredVote
from airchoir.rules.vote import MajorityVote
from airchoir.scheme import Scheme

RULES: dict[str, Rule] = {"vote": MajorityVote(), "centred vote": CentredVote()}


@dataclass(frozen=True)
class Setting:
    """A promise and a participation."""

    epsilon: float
    participation: float
    accountant: str = "tight"

    @property
    def label(self) -> str:
        if self.participation == 1.0 or self.epsilon == math.inf:
            return f"{promise(self.epsilon)}, p = {self.participation:g}"
        return f"{promise(self.epsilon)}, p = {self.participation:g}, {self.accountant}"


@dataclass(frozen=True)
class Centring(Experiment):
    """The vote and the centred vote over SNR."""

    name: ClassVar[str] = "centring"
    title: ClassVar[str] = "What centring gains"
    settings: tuple[Setting, ...] = (Setting(math.inf, 1.0), Setting(1.0, 1.0), Setting(1.0, 0.5))
    snrs_db: tuple[float, ...] = tuple(map(float, range(-30, 11, 2)))
    """Ascending."""
    delta: float = 1e-6

    def __post_init__(self) -> None:
        check_ascending("snrs_db", self.snrs_db)

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        conditions = [
            Condition(
                {"rule": rule, "setting": setting.label, "snr_db": snr_db}, choir, self._scheme(rule, setting, snr_db)
            )
            for choir in choirs
            for setting in self.settings
            for rule in RULES
            for snr_db in self.snrs_db
        ]
        found = measure_all(conditions, progress=progress)
        panels = (
            *(self._accuracy_panel(choir, found) for choir in choirs),
            *(self._gain_panel(choir, found) for choir in choirs),
        )
        caption = (
            "Accuracy of the vote and of the centred vote over the air against SNR, and what centring gains (delta "
            f"{self.delta:g})."
        )
        return Findings(
            name=self.name,
            title=self.title,
            summary=self._summary(choirs, found),
            figures=(Figure(self.name, caption, panels),),
            rows=found.rows(),
            notes=(
                "Both rules decide alike; the centred one spends no power on a constant that tells nothing, and at p < 1 the "
                "tight accountant asks less noise of it.",
            ),
            source=source(),
        )

    def _scheme(self, rule: str, setting: Setting, snr_db: float) -> Scheme:
        privacy = Privacy(setting.epsilon, self.delta, accountant=setting.accountant)
        return Scheme(RULES[rule], channel=Awgn(snr_db), privacy=privacy, participation=setting.participation)

    def _estimates(self, choir: Choir, found: Measured, rule: str, setting: Setting) -> list[Estimate]:
        """At every SNR."""
        return [found.pooled(choir, rule=rule, setting=setting.label, snr_db=snr_db) for snr_db in self.snrs_db]

    def _pairs(self, choir: Choir, found: Measured, setting: Setting) -> list[tuple[Estimate, Estimate]]:
        """The vote and the centred vote at every SNR."""
        plain, centred = (self._estimates(choir, found, rule, setting) for rule in RULES)
        return list(zip(plain, centred, strict=True))

    def _accuracy_panel(self, choir: Choir, found: Measured) -> Panel:
        curves: list[Curve] = []
        for order, setting in enumerate(self.settings):
            for place, rule in enumerate(RULES):
                accuracies = [estimate.accuracy for estimate in self._estimates(choir, found, rule, setting)]
                curves.append(
                    percent_curve(
                        f"{rule}, {setting.label}",
                        zip(self.snrs_db, accuracies, strict=True),
                        style=place * len(self.settings) + order,
                    )
                )
        return Panel(f"{choir.title}, k = {choir.classes}", "SNR (dB)", "Accuracy (%)", tuple(curves))

    def _gain_panel(self, choir: Choir, found: Measured) -> Panel:
        curves = []
        for order, setting in enumerate(self.settings):
            gains = [centred.accuracy - plain.accuracy for plain, centred in self._pairs(choir, found, setting)]
            label = f"{list(RULES)[1]}, {setting.label}"
            curves.append(percent_curve(label, zip(self.snrs_db, gains, strict=True), style=len(self.settings) + order))
        return Panel(f"{choir.title}, k = {choir.classes}", "SNR (dB)", "Gain (points)", tuple(curves))

    def _summary(self, choirs: Sequence[Choir], found: Measured) -> tuple[str, ...]:
        def largest(place: int, setting: Setting) -> str:
            pairs = self._pairs(choirs[place], found, setting)
            gain, index = max((pair[1].accuracy - pair[0].accuracy, -i) for i, pair in enumerate(pairs))
            return f"{points(gain)} points at {number(self.snrs_db[-index])} dB"

        def weaker(place: int, setting: Setting) -> str:
            plain, centred = self._pairs(choirs[place], found, setting)[0]
            return f"{10.0 * math.log10(plain.channel_noise_variance / centred.channel_noise_variance):.2f} dB"

        def noise(setting: Setting) -> str:
            plain, centred = self._pairs(choirs[0], found, setting)[0]
            return f"{plain.sigma:.2f} and {centred.sigma:.2f} ({setting.label})"

        by_setting = {
            setting.label: (
                each(choirs, lambda place, setting=setting: largest(place, setting)),  # type: ignore[misc]
                each(choirs, lambda place, setting=setting: weaker(place, setting)),  # type: ignore[misc]
            )
            for setting in self.settings
        }
        return (
            "Centring gains most: " + "; ".join(f"{label}: {gains}" for label, (gains, _) in by_setting.items()) + ".",
            "By so much weaker it makes the receiver's noise in the sum: "
            + "; ".join(f"{label}: {falls}" for label, (_, falls) in by_setting.items())
            + ".",
            f"The noise that privacy asks of the vote and of the centred vote, with k = {choirs[0].classes}: "
            f"{listing(noise(setting) for setting in self.settings)}.",
        )
