"""[open] What the clients learn: a data set, a model and the recipe to fit it.

To add a task, add a file here with one frozen dataclass that derives from `Task`. Heavy libraries are imported inside its
methods, so that a plain install can list every task.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from airchoir._types import Labels

Inputs = NDArray[Any]
"""Examples along the first axis."""
Classifier = Callable[[Inputs], NDArray[Any]]
"""Examples -> class probabilities (examples, classes)."""


@dataclass(frozen=True, eq=False)
class Data:
    """The official split of a data set."""

    train_inputs: Inputs
    train_labels: Labels
    test_inputs: Inputs
    test_labels: Labels


class Task(ABC):
    """A data set, and how one client learns from its shard of it."""

    name: ClassVar[str]
    title: ClassVar[str]
    """As tables print it."""
    classes: ClassVar[int]
    packages: ClassVar[tuple[str, ...]]
    """The packages whose versions decide the outcome."""

    @abstractmethod
    def load(self) -> Data:
        """The data set."""

    @abstractmethod
    def fit(self, inputs: Inputs, labels: Labels, *, seed: int) -> Classifier:
        """One client's model. A shard may lack classes; `seed` decides initialisation and batch order alone."""

    @abstractmethod
    def recipe(self) -> dict[str, Any]:
        """The model and every setting of the fit, for the bank's metadata."""
