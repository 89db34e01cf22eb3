"""The numbers that the paper published, as data: its table 1 and its figure 2."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

RUNS = 5
"""Seeds behind every number."""


@dataclass(frozen=True)
class Published:
    """A number of table 1: macro-F1 in percent over the paper's seeds."""

    mean: float
    std: float
    """Of one seed: the population standard deviation."""


@dataclass(frozen=True)
class PublishedCurve:
    """A line of figure 2: macro-F1 as a fraction."""

    x: tuple[float, ...]
    y: tuple[float, ...]


def in_table1(method: str, epsilon: float, task: str) -> Published | None:
    """What the paper's table 1 says, None where it says nothing.

    >>> in_table1("Majority Voting with OAC", 1.0, "cifar10")
    Published(mean=81.27, std=0.1)
    """
    for row in _read("table1")["rows"]:
        if row["method"] == method and float(row["epsilon"]) == epsilon and task in row:
            return Published(**row[task])
    return None


def in_figure2(sweep: str, rule: str, epsilon: float, task: str) -> PublishedCurve | None:
    """The paper's line of figure 2, None where it has none: `sweep` is "snr" or "participation", `rule` "vote" or "belief".

    >>> in_figure2("snr", "vote", 1.0, "cifar10").y[:2]
    (0.8003, 0.8049)
    """
    document = _read("figure2")
    line = f"{_LINES.get(rule, rule)}, eps={epsilon:g}"
    points = document[f"{sweep}_sweep"]["curves"].get(line) if task == document["dataset"] else None
    return None if points is None else PublishedCurve(*map(tuple, zip(*points, strict=True)))


def source(name: str) -> str:
    """Where the numbers of "table1" or "figure2" were published."""
    return str(_read(name)["source"])


_LINES = {"vote": "majority vote", "belief": "belief sum"}


@cache
def _read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((files(__name__) / f"{name}.json").read_text(encoding="utf-8"))
    return document
