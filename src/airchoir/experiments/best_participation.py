"""Which participation is best, by access and accountant: noise falls with p, and so does the number of voices."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from airchoir.access import Access
from airchoir.access.always_on import AlwaysOn
from airchoir.access.over_the_air import OverTheAir
from airchoir.bank import ScoreBank
from airchoir.exact import evaluate
from airchoir.metrics import Estimate, pool
from airchoir.privacy import Privacy
from airchoir.scheme import Scheme

CONTENDERS: dict[str, tuple[Access, str]] = {
    "over the air, paper": (OverTheAir(), "paper"),
    "over the air, tight": (OverTheAir(), "tight"),
    "over the air, counted": (OverTheAir(), "counted"),
    "always-on, tight": (AlwaysOn(), "tight"),
}
PARTICIPATIONS = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2).tolist())


@dataclass(frozen=True, eq=False)
class Point:
    """One contender at one participation."""

    contender: str
    scheme: Scheme
    estimate: Estimate

    @property
    def participation(self) -> float:
        return self.scheme.participation


def best_participation(
    banks: Sequence[ScoreBank],
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    participations: Sequence[float] = PARTICIPATIONS,
    progress: Callable[[int, int], None] | None = None,
) -> list[Point]:
    """Majority voting at every participation, for every contender, exactly."""
    report = progress or (lambda done, total: None)
    points: list[Point] = []
    for contender, (access, accountant) in CONTENDERS.items():
        for participation in participations:
            privacy = Privacy(epsilon, delta, accountant=accountant)
            scheme = Scheme(access=access, privacy=privacy, participation=participation)
            points.append(Point(contender, scheme, pool([evaluate(scheme, bank) for bank in banks])))
            report(len(points), len(CONTENDERS) * len(participations))
    return points


def best(points: Sequence[Point]) -> dict[str, Point]:
    """The point of highest accuracy of each contender."""
    contenders = dict.fromkeys(point.contender for point in points)
    return {
        name: max((point for point in points if point.contender == name), key=lambda point: point.estimate.accuracy)
        for name in contenders
    }
