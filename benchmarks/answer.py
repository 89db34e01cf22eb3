"""One line of the table: what was measured, beside what, and what was wanted."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True)
class Sample:
    """Repeated measurements of one quantity; the smallest is the one least disturbed by others on the machine."""

    values: tuple[float, ...]
    unit: str

    @property
    def best(self) -> float:
        return min(self.values)

    @property
    def spread(self) -> float:
        """(largest - smallest) / median."""
        return (max(self.values) - self.best) / median(self.values)

    def __str__(self) -> str:
        repeated = f" ({median(self.values):.4g}, {self.spread:.0%})" if len(self.values) > 1 else ""
        return f"{self.best:.4g} {self.unit}{repeated}"


@dataclass(frozen=True)
class Answer:
    """Ours, and the rival or the limit it is held against."""

    question: str
    ours: Sample
    rival: Sample | None = None
    ratio_wanted: float | None = None
    """How many times our best the rival's best should be."""
    limit: float | None = None
    """What our best should stay below, in its unit."""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.rival is None else self.rival.best / self.ours.best

    @property
    def met(self) -> bool | None:
        if self.limit is not None:
            return self.ours.best < self.limit
        return None if self.ratio is None or self.ratio_wanted is None else self.ratio >= self.ratio_wanted

    def cells(self) -> list[str]:
        """The line, column by column."""
        wanted = f"< {self.limit:g} {self.ours.unit}" if self.limit is not None else ""
        if self.ratio_wanted is not None:
            wanted = f">= {self.ratio_wanted:g}"
        return [
            self.question,
            str(self.ours),
            "" if self.rival is None else str(self.rival),
            "" if self.ratio is None else f"{self.ratio:.3g}",
            wanted,
            {True: "met", False: "NOT MET", None: ""}[self.met],
        ]

    def record(self) -> dict[str, Any]:
        """The line as JSON."""
        return {
            "question": self.question,
            "ours": list(self.ours.values),
            "rival": None if self.rival is None else list(self.rival.values),
            "unit": self.ours.unit,
            "ratio": self.ratio,
            "ratio_wanted": self.ratio_wanted,
            "limit": self.limit,
            "met": self.met,
            "note": self.note,
        }


def table(answers: Sequence[Answer]) -> str:
    """All lines, aligned, with their notes below."""
    rows = [["question", "ours: best (median, spread)", "rival", "ratio", "wanted", ""], *(a.cells() for a in answers)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths).rstrip())
    return "\n".join(lines + [f"* {a.question}: {a.note}" for a in answers if a.note])
