"""Choirs: the banks of one task each, and what a scheme achieves on them."""

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from airchoir import provenance
from airchoir.bank import ScoreBank
from airchoir.exact import evaluate
from airchoir.metrics import Estimate, pool
from airchoir.registry import plugins
from airchoir.scheme import Scheme
from airchoir.tasks import Task

_MOST_CHARACTERS = 60
_WORD = re.compile(rf"[A-Za-z0-9_-]{{1,{_MOST_CHARACTERS}}}")


@dataclass(frozen=True, eq=False)
class Choir:
    """All banks of one task: same clients and classes, different seeds."""

    task: str
    paths: tuple[Path, ...]
    banks: tuple[ScoreBank, ...]

    @property
    def title(self) -> str:
        """What the task is called in tables and figures."""
        known = plugins(Task).get(self.task)
        return str(getattr(known, "title", self.task))

    @property
    def word(self) -> str:
        """The task as part of a file's name: as it is where it can be one, else as much of it and a checksum."""
        if _WORD.fullmatch(self.task):
            return self.task
        checksum = hashlib.sha256(self.task.encode()).hexdigest()[:8]
        return f"{re.sub('[^A-Za-z0-9_-]+', '-', self.task)[:_MOST_CHARACTERS]}-{checksum}"

    @property
    def clients(self) -> int:
        return self.banks[0].clients

    @property
    def classes(self) -> int:
        return self.banks[0].classes


def load_choirs(paths: Sequence[Path]) -> list[Choir]:
    """The banks in `paths`, one choir per task in the order of first appearance.

    A bank belongs to its header's task, or to the folder that holds it where it has none.
    """
    _check_once(paths)
    groups: dict[str, list[tuple[Path, ScoreBank]]] = {}
    for path in paths:
        bank = ScoreBank.load(path)
        groups.setdefault(bank.metadata.get("task") or path.resolve().parent.name, []).append((path, bank))
    for members in groups.values():
        _check_shapes([path for path, _ in members], [bank for _, bank in members])
    return [Choir(task, *map(tuple, zip(*members, strict=True))) for task, members in groups.items()]


def _check_once(paths: Sequence[Path]) -> None:
    known: set[Path] = set()
    for path in paths:
        if path.resolve() in known:
            raise ValueError(f"{path} is given twice; give it once, or its numbers count twice")
        known.add(path.resolve())


def check_alike(paths: Sequence[Path], banks: Sequence[ScoreBank]) -> None:
    """A ValueError unless all banks are of one task and one shape."""
    _check_same("task", paths, [bank.metadata.get("task", "") for bank in banks])
    _check_shapes(paths, banks)


def _check_shapes(paths: Sequence[Path], banks: Sequence[ScoreBank]) -> None:
    _check_same("clients", paths, [bank.clients for bank in banks])
    _check_same("classes", paths, [bank.classes for bank in banks])


def _check_same(what: str, paths: Sequence[Path], values: Sequence[object]) -> None:
    for path, value in zip(paths, values, strict=True):
        if value != values[0]:
            raise ValueError(f"{path} has {what} {value!r}, but {paths[0]} {values[0]!r}; evaluate them one by one")


def check_any(choirs: Sequence[Choir], name: str) -> None:
    """A ValueError where there is no choir to try the experiment `name` on."""
    if not choirs:
        raise ValueError(f"{name} needs at least one score bank, got none; airchoir demo makes one")


def own_seeds(seed: int, banks: int) -> list[int]:
    """A seed per bank, the first as given: what is drawn for one must not recur in the next, or errors would add up."""
    return [seed, *map(int, np.random.SeedSequence(seed).generate_state(banks - 1, np.uint64))]


@dataclass(frozen=True, eq=False)
class Measurement:
    """What a scheme achieves on a choir."""

    choir: Choir
    scheme: Scheme
    estimates: tuple[Estimate, ...]
    """One for each bank."""

    @cached_property
    def pooled(self) -> Estimate:
        """Over all banks."""
        return pool(list(self.estimates))

    def row(self, **words: Any) -> dict[str, Any]:
        """The numbers and all that they depend on, in JSON's own types; `words` tell the row apart from others."""
        names = (
            "macro_f1",
            "macro_f1_std",
            "macro_f1_se",
            "accuracy",
            "accuracy_std",
            "sigma",
            "channel_noise_variance",
            "channel_uses",
            "accountant",
            "draws",
        )
        row = {
            **words,
            "task": self.choir.task,
            "clients": self.choir.clients,
            "classes": self.choir.classes,
            "seeds": [bank.metadata.get("seed", "") for bank in self.choir.banks],
            "banks": [bank.metadata.get("checksum") or bank.metadata.get("subset_of", "") for bank in self.choir.banks],
            **{name: getattr(self.pooled, name) for name in names},
            "scheme": provenance.describe(self.scheme),
        }
        plain: dict[str, Any] = provenance.plain(row)
        return plain


def tolerance_for(bank: ScoreBank) -> float:
    """The largest standard error of macro-F1 wanted where participant sets are drawn: `evaluate`'s at 10,000 queries.

    A smaller test set is itself less certain, by the square root, so it gets as much work and not more.
    """
    return 5e-4 * math.sqrt(max(1.0, 10_000 / bank.queries))


def measure(scheme: Scheme, choir: Choir, *, tolerance: float | None = None, seed: int = 0) -> Measurement:
    """The scheme evaluated exactly on every bank of the choir, to a tolerance or as well as each test set deserves."""
    seeds = own_seeds(seed, len(choir.banks))
    estimates = [
        evaluate(scheme, bank, tolerance=tolerance_for(bank) if tolerance is None else tolerance, seed=own)
        for bank, own in zip(choir.banks, seeds, strict=True)
    ]
    return Measurement(choir, scheme, tuple(estimates))


def source() -> dict[str, Any]:
    """What an experiment's numbers were made with."""
    return {
        "commit": provenance.commit(),
        "versions": provenance.versions("numpy", "scipy"),
        "machine": provenance.machine(),
    }
