"""Macro-F1 against the number of clients: the same promise costs each of many less than each of few."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from airchoir.channels.awgn import Awgn
from airchoir.experiments import Experiment, Progress, silent
from airchoir.experiments.choirs import Choir, Measurement, check_any, source
from airchoir.experiments.conditions import Condition, Measured, measure_all, percent_curve
from airchoir.experiments.methods import APART, BELIEF, METHODS, SNR_DB, VOTE
from airchoir.experiments.subsets import hands, sizes_within, smaller
from airchoir.experiments.wording import each, listing, promise, share, under
from airchoir.privacy import Privacy
from airchoir.report.findings import Curve, Figure, Findings, Panel
from airchoir.scheme import Scheme

COMPARED = (VOTE, BELIEF, APART)


@dataclass(frozen=True)
class Clients(Experiment):
    """Ensembles of n of a bank's clients, each n over several random hands of them, without privacy and with it."""

    name: ClassVar[str] = "clients"
    title: ClassVar[str] = "Macro-F1 against the number of clients"
    sizes: tuple[int, ...] = (1, 2, 3, 5, 7, 10, 14)
    """n; all clients of a bank are added."""
    epsilon: float = 1.0
    delta: float = 1e-6
    snr_db: float = SNR_DB
    hands: int = 5
    """The least number of hands for each n."""

    def run(self, choirs: Sequence[Choir], *, progress: Progress = silent) -> Findings:
        check_any(choirs, self.name)
        found = measure_all([each_one for choir in choirs for each_one in self._conditions(choir)], progress=progress)
        panels = tuple(self._panel(choir, found) for choir in choirs)
        caption = (
            f"Macro-F1 against the number of clients n, {under(math.inf)} and {under(self.epsilon)} "
            f"(delta {self.delta:g}, p = 1, SNR {self.snr_db:g} dB); bands: lowest and highest hand of n clients."
        )
        return Findings(
            name=self.name,
            title=self.title,
            summary=self._summary(choirs, found),
            figures=(Figure(self.name, caption, panels),),
            rows=found.rows(),
            notes=(
                f"An n below all is an average over {self.hands} or more hands of n clients, dealt at random with a fixed "
                "seed, the same for all methods: one nested order would show that order's luck.",
                "Every client was trained on its share of the data as all of them cut it: a smaller choir has seen less data.",
            ),
            source=source(),
        )

    def _conditions(self, choir: Choir) -> list[Condition]:
        conditions = []
        for size in sizes_within(self.sizes, choir.clients):
            part = smaller(choir, hands(choir.clients, size, least=self.hands))
            for method in COMPARED:
                for epsilon in (math.inf, self.epsilon):
                    scheme = Scheme(*METHODS[method], Awgn(self.snr_db), Privacy(epsilon, self.delta))
                    words = {"method": method, "epsilon": epsilon, "clients": size}
                    conditions.append(Condition(words, part, scheme))
        return conditions

    def _panel(self, choir: Choir, found: Measured) -> Panel:
        curves = [
            self._curve(choir, found, method, epsilon) for epsilon in (math.inf, self.epsilon) for method in COMPARED
        ]
        ticks = spaced(sizes_within(self.sizes, choir.clients))
        return Panel(
            choir.title,
            "Clients n",
            "Macro-F1 (%)",
            tuple(curves),
            x_ticks=tuple(map(float, ticks)),
            x_tick_labels=tuple(map(str, ticks)),
        )

    def _curve(self, choir: Choir, found: Measured, method: str, epsilon: float) -> Curve:
        sizes = sizes_within(self.sizes, choir.clients)
        measured = [found.at(choir, method=method, epsilon=epsilon, clients=size) for size in sizes]
        style = COMPARED.index(method) + (len(COMPARED) if epsilon == self.epsilon else 0)
        curve = percent_curve(
            f"{method}, {promise(epsilon)}",
            [(size, each_one.pooled.macro_f1) for size, each_one in zip(sizes, measured, strict=True)],
            style=style,
        )
        spans = [over_hands(each_one, len(choir.banks)) for each_one in measured]
        low, high = (tuple(100.0 * pick(values) for values in spans) for pick in (min, max))
        return Curve(curve.label, curve.x, curve.y, low, high, style)

    def _summary(self, choirs: Sequence[Choir], found: Measured) -> tuple[str, ...]:
        def f1(place: int, method: str, epsilon: float, size: int) -> float:
            return found.f1(choirs[place], method=method, epsilon=epsilon, clients=size)

        def ends(place: int) -> tuple[int, int]:
            sizes = sizes_within(self.sizes, choirs[place].clients)
            return sizes[0], sizes[-1]

        def price(place: int, size: int) -> float:
            return 100.0 * (f1(place, VOTE, math.inf, size) - f1(place, VOTE, self.epsilon, size))

        def prices(place: int) -> str:
            few, all_of_them = ends(place)
            return (
                f"{price(place, few):.1f} points with n = {few}, {price(place, all_of_them):.1f} with n = {all_of_them}"
            )

        def grows(place: int) -> str:
            sizes = sizes_within(self.sizes, choirs[place].clients)
            shown = dict.fromkeys((sizes[0], sizes[len(sizes) // 2], sizes[-1]))
            return listing(f"{share(f1(place, VOTE, self.epsilon, size))} at n = {size}" for size in shown)

        def apart(place: int) -> str:
            few, all_of_them = ends(place)
            return (
                f"{share(f1(place, APART, self.epsilon, few))} at n = {few}, "
                f"{share(f1(place, APART, self.epsilon, all_of_them))} at n = {all_of_them}"
            )

        return (
            f"The choir's vote over the air has a macro-F1 of {each(choirs, grows)} {under(self.epsilon)}.",
            f"Privacy's price, what {promise(self.epsilon)} takes from that vote's macro-F1: {each(choirs, prices)}.",
            f"Separate answers do not share their noise: {each(choirs, apart)} {under(self.epsilon)}.",
            self._reason(choirs, found),
        )

    def _reason(self, choirs: Sequence[Choir], found: Measured) -> str:
        sizes = sorted({size for choir in choirs for size in sizes_within(self.sizes, choir.clients)})
        sigma = found.pooled(choirs[0], method=VOTE, epsilon=self.epsilon, clients=choirs[0].clients).sigma
        shares = listing(f"{sigma / math.sqrt(size):.2f} of {size}" for size in dict.fromkeys((sizes[0], sizes[-1])))
        return (
            f"The reason: {under(self.epsilon)} the sum needs noise of {sigma:.2f} whatever n is, to which each client adds "
            f"that over the square root of n: {shares}."
        )


def spaced(sizes: Sequence[int]) -> tuple[int, ...]:
    """Those of the ascending sizes that have room for a label each on a linear axis; the last is among them.

    >>> spaced((1, 2, 3, 5, 19, 20))
    (1, 5, 20)
    """
    room = sizes[-1] / 8
    kept = [sizes[0]]
    for size in sizes[1:-1]:
        if size - kept[-1] >= room and sizes[-1] - size >= room:
            kept.append(size)
    return tuple(dict.fromkeys((*kept, sizes[-1])))


def over_hands(measurement: Measurement, banks: int) -> list[float]:
    """Macro-F1 of every hand, the mean over its banks."""
    values = [estimate.macro_f1 for estimate in measurement.estimates]
    return [math.fsum(values[a : a + banks]) / banks for a in range(0, len(values), banks)]
