"""Findings: what an experiment found, as values that can be drawn, kept as JSON and read again."""

import dataclasses
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from airchoir.provenance import plain

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

    def __post_init__(self) -> None:
        lengths = {len(self.x), len(self.y), *(len(band) for band in (self.low, self.high) if band)}
        if len(lengths) > 1 or bool(self.low) != bool(self.high):
            raise ValueError(
                f"curve {self.label!r} has {len(self.x)} x, {len(self.y)} y, {len(self.low)} low and {len(self.high)} high; "
                "give as many of each (a band may be left out)"
            )


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
    y_limits: tuple[float, ...] = ()
    """Where the axis begins and ends; empty: wherever it looks well."""

    def __post_init__(self) -> None:
        if self.x_tick_labels and len(self.x_tick_labels) != len(self.x_ticks):
            raise ValueError(
                f"panel {self.title!r} has {len(self.x_ticks)} ticks but {len(self.x_tick_labels)} labels; give one for each"
            )
        if len(self.y_limits) not in (0, 2):
            raise ValueError(
                f"panel {self.title!r} has y_limits {self.y_limits}; give the lowest and the highest, or none"
            )


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


ABSENT = Cell("\N{EN DASH}")
"""Of a place with no number."""


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

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.header):
                raise ValueError(
                    f"row {index} of table {self.name!r} has {len(row)} cells under {len(self.header)} headings; "
                    "give one for each"
                )


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
        """As one JSON object, in JSON's own types; infinity is the string "inf"."""
        values: dict[str, Any] = plain({"format": FORMAT, **dataclasses.asdict(self)})
        return values

    @classmethod
    def of_record(cls, record: object, where: Path) -> "Findings":
        """The findings in a JSON object that `record` made; a ValueError that names `where` otherwise."""
        given = record.get("format") if isinstance(record, Mapping) else None
        if not isinstance(record, Mapping) or given != FORMAT:
            raise ValueError(f"{where} holds no {FORMAT!r} but {given!r}; upgrade airchoir or make it again")
        try:
            findings: Findings = _read(cls, {name: value for name, value in record.items() if name != "format"}, "")
        except ValueError as error:
            raise ValueError(f"{where} is no whole {FORMAT!r}: {error}; make it again") from None
        return findings


def _read(kind: Any, value: Any, place: str) -> Any:
    """What JSON holds, as a value of a type; a ValueError that names the place where it is none."""
    if dataclasses.is_dataclass(kind):
        return _read_fields(kind, value, place)
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_read(get_args(kind)[0], item, f"{place}[{index}]") for index, item in enumerate(value))
    if kind is float and value in ("inf", "-inf", "nan"):
        return float(value)
    wanted = {float: (int, float), tuple: ()}.get(get_origin(kind) or kind, get_origin(kind) or kind)
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{place} cannot be {reprlib.repr(value)}")
    return float(value) if kind is float else value


def _read_fields(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"{place} cannot be {reprlib.repr(value)}")
    types = get_type_hints(kind)
    needed = {each.name for each in dataclasses.fields(kind) if {each.default, each.default_factory} == {MISSING}}
    for names, complaint in ((needed - set(value), "lacks"), (set(value) - set(types), "has an unknown")):
        if names:
            raise ValueError(f"{place or 'it'} {complaint} {min(names)!r}")
    fields = {name: _read(types[name], item, f"{place}.{name}".lstrip(".")) for name, item in value.items()}
    try:
        return kind(**fields)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
