"""[open] What the clients learn: a data set, a model and the recipe to fit it.

To add a task, add a file here with one frozen dataclass that derives from `Task`. Heavy libraries are imported inside its
methods, so that a plain install can list every task.
"""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from airchoir._types import Labels
from airchoir.tasks.recipes import Recipe

Inputs = NDArray[Any]
"""Examples along the first axis: images uint8 (examples, height, width, 3), texts str objects, or real features."""


@dataclass(frozen=True, eq=False)
class Data:
    """The official split of a data set."""

    train_inputs: Inputs
    train_labels: Labels
    test_inputs: Inputs
    test_labels: Labels
    classes: int

    def __post_init__(self) -> None:
        for split, inputs, labels in (
            ("training", self.train_inputs, self.train_labels),
            ("test", self.test_inputs, self.test_labels),
        ):
            if len(inputs) != len(labels) or len(labels) == 0:
                raise ValueError(
                    f"the {split} split has {len(inputs)} examples and {len(labels)} labels; give one each"
                )
            bad = np.flatnonzero((labels < 0) | (labels >= self.classes))
            if len(bad):
                place = f"{split} label {labels[bad[0]]} of example {bad[0]}"
                raise ValueError(f"{place} is outside 0..{self.classes - 1}; the labels of this copy are not usable")

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of every example and label, in order: the same data give the same fingerprint, however they came."""
        digest = hashlib.sha256()
        for array in (self.train_inputs, self.train_labels, self.test_inputs, self.test_labels):
            digest.update(f"{array.dtype.kind}{array.shape}".encode())
            for part in _bytes_of(array):
                digest.update(part)
        return digest.hexdigest()


def _bytes_of(array: Inputs) -> Any:
    if array.dtype != object:
        return (np.ascontiguousarray(array).data,)
    encoded = (text.encode() for text in array)
    return (len(text).to_bytes(8, "little") + text for text in encoded)


class Task(ABC):
    """A data set, and how one client learns from its shard of it."""

    name: ClassVar[str]
    title: ClassVar[str]
    """As tables print it."""
    classes: ClassVar[int]
    packages: ClassVar[tuple[str, ...]]
    """The packages whose versions decide the outcome."""

    @abstractmethod
    def load(self, data: Path | None = None) -> Data:
        """The data set, from its home or from what lies at `data`."""

    @abstractmethod
    def recipe(self) -> Recipe:
        """The model and every setting of the fit; `dataclasses.replace` changes some."""
