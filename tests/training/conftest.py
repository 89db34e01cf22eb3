"""A task so small that a fit takes milliseconds, and its runs of the queue."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from airchoir.tasks import Data, Task
from airchoir.tasks.recipes import PerceptronRecipe, Recipe
from airchoir.training.plan import Plan
from airchoir.training.queue import Event, Outcome, run_queue


@dataclass(frozen=True)
class Tiny(Task):
    """Eighty points in three heaps."""

    name: ClassVar[str] = "tiny"
    title: ClassVar[str] = "Tiny"
    classes: ClassVar[int] = 3
    packages: ClassVar[tuple[str, ...]] = ("numpy", "scikit-learn")
    seed: int = 0

    def load(self, data: Path | None = None) -> Data:
        rng = np.random.default_rng(self.seed)
        labels = np.arange(80, dtype=np.int64) % 3
        inputs = rng.normal(0.0, 1.0, (80, 2)) + 2.0 * np.eye(3)[labels][:, :2]
        return Data(inputs[:60], labels[:60], inputs[60:], labels[60:], self.classes)

    def recipe(self) -> Recipe:
        return PerceptronRecipe(hidden_units=4, epochs=2)


@dataclass(frozen=True)
class Ran:
    """A run of the queue: what it came to, what it said, and how many fits it began."""

    outcome: Outcome
    events: list[Event]
    fits: int

    def said(self, what: str) -> list[tuple[int, int | None]]:
        return [(event.seed, event.client) for event in self.events if event.what == what]


@pytest.fixture
def tiny() -> type[Tiny]:
    return Tiny


@pytest.fixture
def plan() -> Callable[..., Plan]:
    """A function that makes a plan for the tiny task: two runs of three clients, where nothing else is said."""

    def make(**changes: Any) -> Plan:
        task = changes.pop("task", Tiny())
        return Plan(**{"task": task, "recipe": task.recipe(), "clients": 3, "seeds": (0, 1), **changes})

    return make


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of all fits that were begun."""
    from airchoir.training.perceptron import PerceptronFitter

    begun: list[int] = []
    fit = PerceptronFitter.fit

    def counted(self: PerceptronFitter, *arguments: Any, **options: Any) -> Any:
        begun.append(options["seed"])
        return fit(self, *arguments, **options)

    monkeypatch.setattr(PerceptronFitter, "fit", counted)
    return begun


@pytest.fixture
def queue(fits: list[int]) -> Callable[..., Ran]:
    """A function that runs the queue of a plan below a folder."""

    def execute(plan: Plan, out: Path, **options: Any) -> Ran:
        events: list[Event] = []
        before = len(fits)
        outcome = run_queue(plan, out, report=events.append, **options)
        return Ran(outcome, events, len(fits) - before)

    return execute
