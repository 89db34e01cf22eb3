"""Findings: what an experiment found, as values that can be drawn, kept as JSON and read again."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = "airchoir findings 1"


@dataclass(frozen=True)
class Curve:
    """One line of a panel; `low` and `high` are a band around it."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    style: int = 0
    """Which colour, dash and marker: the same number means the same thing in every panel of a figure."""
    published: bool = False
    """The paper's own: drawn faintly behind ours."""
    line: bool = True
    """Whether the points are joined."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    log_y: bool = False
    x_ticks: tuple[float, ...] = ()
    """Where the axis is marked; empty: wherever it looks well."""
    x_tick_labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """Panels side by side under one caption, in files called after `name`."""

    name: str
    caption: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Cell:
    """What one place of a table says."""

    text: str
    """Plain text: "81.27 ± 0.10"."""
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under a header, in files called after `name`."""

    name: str
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sections: tuple[int, ...] = ()
    """Rows before which a rule is drawn."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What an experiment found and where it comes from. Every sentence is computed from the numbers."""

    name: str
    title: str
    summary: tuple[str, ...]
    """What it shows, in sentences."""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    rows: tuple[Mapping[str, Any], ...] = ()
    """Every number behind the tables and figures, with its scheme, banks and accountant; JSON's own types."""
    notes: tuple[str, ...] = ()
    """What a careful reader should know: where ours and the paper's differ, what was drawn."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """Commit, versions, machine."""

    def record(self) -> dict[str, Any]:
        """As one JSON object."""
        return {"format": FORMAT, **dataclasses.asdict(self)}

    @classmethod
    def of_record(cls, record: Mapping[str, Any], where: Path) -> "Findings":
        """The findings in a JSON object that `record` made; a ValueError that names `where` otherwise."""
        if record.get("format") != FORMAT:
            raise ValueError(
                f"{where} holds no {FORMAT!r} but {record.get('format')!r}; upgrade airchoir or make it again"
            )
        values = {name: value for name, value in record.items() if name != "format"}
        try:
            tables = tuple(_table(table) for table in values.pop("tables"))
            figures = tuple(_figure(figure) for figure in values.pop("figures"))
            return cls(**{name: _frozen(value) for name, value in values.items()}, tables=tables, figures=figures)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{where} is no whole {FORMAT!r} ({error}); make it again") from None


def _table(values: dict[str, Any]) -> Table:
    rows = tuple(tuple(Cell(**cell) for cell in row) for row in values["rows"])
    return Table(**{**_frozen_values(values), "rows": rows})


def _figure(values: dict[str, Any]) -> Figure:
    panels = tuple(_panel(panel) for panel in values["panels"])
    return Figure(**{**values, "panels": panels})


def _panel(values: dict[str, Any]) -> Panel:
    curves = tuple(Curve(**_frozen_values(curve)) for curve in values["curves"])
    return Panel(**{**_frozen_values(values), "curves": curves})


def _frozen_values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _frozen(value) for name, value in values.items()}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
