"""Macro-F1 against the channel uses of a query: separate answers pay k for each client, the choir k for all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from airchoir.channels.awgn import Awgn
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, check_any, source
from airchoir.experiments.conditions import Condition, Measured, measure_all, percent_curve, steady_from
from airchoir.experiments.methods import APART, BEST, METHODS, SNR_DB, VOTE, methods_of, without_best_client
from airchoir.experiments.subsets import hands, sizes_within, smaller
from airchoir.experiments.wording import each, promise, share, under
from airchoir.privacy import Privacy
from airchoir.report.findings import Curve, Figure, Findings, Panel
from airchoir.scheme import Scheme


@dataclass(frozen=True)
class ChannelUses(Experiment):
    """Separate answers of m of n clients for k m uses; the choir of all n and the best client for k."""

    name: ClassVar[str] = "channel_uses"
    title: ClassVar[str] = "Macro-F1 against channel uses"
    sizes: tuple[int, ...] = (1, 2, 3, 5, 7, 10, 14)
    """m; all clients of a bank are added."""
    epsilon: float = 1.0
    delta: float = 1e-6
    snr_db: float = SNR_DB
    hands: int = 5
    """The least number of hands for each m."""
    close: float = 0.001
    """The macro-F1 that counts as no difference in the sentences."""

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        found = measure_all([one for choir in choirs for one in self._conditions(choir)], progress=progress)
        caption = (
            f"Macro-F1 against channel uses per query, {under(math.inf)} and {under(self.epsilon)} (delta {self.delta:g}, "
            f"p = 1, SNR {self.snr_db:g} dB): separate votes of m clients, the vote of all over the air, the best client."
        )
        return Findings(
            name=self.name,
            title=self.title,
            summary=self._summary(choirs, found),
            figures=(Figure(self.name, caption, tuple(self._panel(choir, found) for choir in choirs)),),
            rows=found.rows(),
            notes=(
                f"Separate answers of fewer than all are an average over {self.hands} or more hands of m clients, dealt at "
                "random with a fixed seed.",
                *without_best_client(choirs),
            ),
            source=source(),
        )

    @property
    def epsilons(self) -> tuple[float, float]:
        """No privacy, and the promise."""
        return math.inf, self.epsilon

    def _conditions(self, choir: Choir) -> list[Condition]:
        conditions = []
        for size in sizes_within(self.sizes, choir.clients):
            part = smaller(choir, hands(choir.clients, size, least=self.hands))
            conditions += [self._condition(part, APART, epsilon, size) for epsilon in self.epsilons]
        return conditions + [
            self._condition(choir, method, epsilon, choir.clients)
            for method in (VOTE, BEST)
            if method in methods_of(choir)
            for epsilon in self.epsilons
        ]

    def _condition(self, choir: Choir, method: str, epsilon: float, size: int) -> Condition:
        scheme = Scheme(*METHODS[method], Awgn(self.snr_db), Privacy(epsilon, self.delta))
        return Condition({"method": method, "epsilon": epsilon, "clients": size}, choir, scheme)

    def _panel(self, choir: Choir, found: Measured) -> Panel:
        curves: list[Curve] = []
        for place, epsilon in enumerate(self.epsilons):
            for order, method in enumerate((APART, VOTE, BEST)):
                if method not in methods_of(choir):
                    continue
                sizes = sizes_within(self.sizes, choir.clients) if method == APART else (choir.clients,)
                estimates = [found.pooled(choir, method=method, epsilon=epsilon, clients=size) for size in sizes]
                points = [(estimate.channel_uses, estimate.macro_f1) for estimate in estimates]
                label = f"{method}, {promise(epsilon)}"
                curves.append(percent_curve(label, points, style=3 * place + order, line=method == APART))
        uses = [choir.classes * size for size in (1, *sizes_within((2, 5, 10), choir.clients))]
        return Panel(
            choir.title,
            "Channel uses per query",
            "Macro-F1 (%)",
            tuple(curves),
            log_x=True,
            x_ticks=tuple(map(float, dict.fromkeys(uses))),
            x_tick_labels=tuple(map(str, dict.fromkeys(uses))),
        )

    def _summary(self, choirs: Sequence[Choir], found: Measured) -> tuple[str, ...]:
        def compared(place: int, epsilon: float) -> str:
            choir = choirs[place]
            together = found.pooled(choir, method=VOTE, epsilon=epsilon, clients=choir.clients)
            apart = [
                found.pooled(choir, method=APART, epsilon=epsilon, clients=size)
                for size in sizes_within(self.sizes, choir.clients)
            ]
            first = steady_from([one.macro_f1 >= together.macro_f1 - self.close for one in apart])
            shown = apart[-1 if first is None else first]
            reached = (
                f"at none up to {shown.channel_uses:.0f}" if first is None else f"from {shown.channel_uses:.0f} on"
            )
            return (
                f"{share(together.macro_f1)} for {together.channel_uses:.0f} uses; separate votes come within "
                f"{100.0 * self.close:g} points {reached}, where they have {share(shown.macro_f1)}"
            )

        judged = [choir for choir in choirs if BEST in methods_of(choir)]

        def best(place: int) -> str:
            choir = judged[place]
            alone = [found.pooled(choir, method=BEST, epsilon=e, clients=choir.clients) for e in self.epsilons]
            return f"{share(alone[0].macro_f1)} and {share(alone[1].macro_f1)} for {alone[0].channel_uses:.0f} uses"

        return (
            *(
                f"{under(epsilon).capitalize()} the choir's vote has {each(choirs, lambda i, e=epsilon: compared(i, e))}."  # type: ignore[misc]
                for epsilon in self.epsilons
            ),
            f"The best client, heard alone, has {each(judged, best)}, {under(math.inf)} and {under(self.epsilon)}."
            if judged
            else "No best client is known, for there are no validation scores.",
        )
