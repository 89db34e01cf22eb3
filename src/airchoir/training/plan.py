"""What is to be trained: a task, its recipe, who holds what, and how often."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from airchoir.registry import lookup
from airchoir.tasks import Task
from airchoir.tasks.recipes import Recipe
from airchoir.training.shards import check_skew


@dataclass(frozen=True)
class Plan:
    """`clients` x `seeds` independent fits. `split_seed` decides who holds what, a seed everything random in its fits."""

    task: Task
    recipe: Recipe
    clients: int = 20
    seeds: tuple[int, ...] = (0,)
    split_seed: int = 0
    skew: float | None = None
    data: Path | None = None
    device: str = "auto"

    def __post_init__(self) -> None:
        if not self.seeds:
            raise ValueError("a plan needs at least one seed, got none; seeds=(0,) is one run")
        for name, seed in (("first seed", min(self.seeds)), ("split seed", self.split_seed)):
            if seed < 0:
                raise ValueError(f"the {name} must be >= 0, got {seed}; any whole number names a reproducible run")
        if self.skew is not None:
            check_skew(self.skew)
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device):
            raise ValueError(f"device must be auto, cpu, cuda or cuda:N, got {self.device!r}; auto takes what there is")


def make_plan(
    task: str, *, clients: int, seeds: int, first_seed: int, changes: Mapping[str, str | None], **options: Any
) -> Plan:
    """The plan for the task called `task`: `seeds` runs from `first_seed` on, its recipe changed where `changes` says so."""
    for name, count, papers in (("clients", clients, 20), ("seeds", seeds, 5)):
        if count < 1:  # a look at the data would tell as well, but that may take minutes
            raise ValueError(f"{name} must be at least 1, got {count}; the paper has {papers}")
    found: Task = lookup(Task, task)()
    recipe = _changed(found, {name: value for name, value in changes.items() if value is not None})
    return Plan(found, recipe, clients, seeds=tuple(range(first_seed, first_seed + seeds)), **options)


def _changed(task: Task, changes: Mapping[str, str]) -> Recipe:
    recipe = task.recipe()
    known = {field.name for field in fields(recipe)}
    for name, value in changes.items():
        if name not in known:
            raise ValueError(f"the {task.name} task has no {name} to choose, got {value!r}; leave --{name} out")
    return replace(recipe, **changes)


def portable(recipe: Recipe) -> dict[str, Any]:
    """The recipe's values, files and folders by their names alone, wherever they lie on this machine."""
    named = {field: f"{prefix}{place.resolve().name}" for field, prefix, place in _places(recipe)}
    return {**asdict(recipe), **named}


def identity(recipe: Recipe) -> dict[str, Any]:
    """The recipe's values, files and folders by their content (SHA-256)."""
    digests = {field: f"{prefix}sha256:{_digest(place)}" for field, prefix, place in _places(recipe)}
    later = {"revision": recipe.revision} if recipe.revision > 1 else {}
    return {"recipe": type(recipe).__name__, **later, **asdict(recipe), **digests}


def _places(recipe: Recipe) -> list[tuple[str, str, Path]]:
    """The fields that name a file or a folder on this machine, what stands before the name, and the place."""
    values, places = asdict(recipe), []
    library, colon, name = str(values.get("model", "")).partition(":")
    if library == "transformers" and Path(name).is_dir():
        places.append(("model", f"{library}{colon}", Path(name)))
    weights = str(values.get("weights", ""))
    if weights.endswith(".safetensors"):
        if not Path(weights).is_file():
            raise ValueError(f"weights {weights} do not exist; check the name")
        places.append(("weights", "", Path(weights)))
    return places


def _digest(place: Path) -> str:
    """The SHA-256 of a file's content, or of the names and contents of all files in a folder."""
    if place.is_dir():
        listed = [f"{_digest(path)} {path.name}" for path in sorted(place.iterdir()) if path.is_file()]
        return hashlib.sha256("\n".join(listed).encode()).hexdigest()
    with open(place, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
