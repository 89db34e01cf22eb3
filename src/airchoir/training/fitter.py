"""What fits a client: built once for a recipe and its data, then used for many clients."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from airchoir._types import Indices
from airchoir.tasks import Data
from airchoir.tasks.recipes import ImageRecipe, PerceptronRecipe, Recipe, TextRecipe
from airchoir.training.compute import require_torch

ClassScores = NDArray[np.float32]
"""Class probabilities (examples, classes)."""


@dataclass(frozen=True)
class Epoch:
    """How one pass over a client's shard went."""

    epoch: int
    """Counted from 1."""
    epochs: int
    loss: float
    """The mean over the examples, while training."""
    examples_per_second: float


Report = Callable[[Epoch], None]


class Fitter(ABC):
    """Fits one client after another on the same machine; what one client leaves behind never reaches the next."""

    @abstractmethod
    def fit(self, shard: Indices, *, seed: int, report: Report) -> tuple[ClassScores, ClassScores]:
        """The scores of one client's model on the test and the validation set.

        `shard` are its examples of the training set; it may lack classes. `seed` alone decides initialisation and batch order.
        """

    @abstractmethod
    def provenance(self) -> dict[str, str]:
        """Model, weights, data, device and package versions, as a bank's metadata keep them."""


@singledispatch
def check_installed(recipe: Recipe) -> None:
    """A ValueError where a package that fits `recipe` is missing: to be asked before the data, which take longer."""


@check_installed.register
def _(recipe: ImageRecipe | TextRecipe) -> None:
    require_torch()


@singledispatch
def fitter(recipe: Recipe, data: Data, validation: Indices, *, device: str = "auto") -> Fitter:
    """Who carries out `recipe` on `data`; `validation` are the training examples that no client trains on.

    `device` is `auto`, `cpu`, `cuda` or `cuda:N`. Another recipe joins with `fitter.register`.
    """
    raise TypeError(f"nothing fits a {type(recipe).__name__}; register a fitter for it with fitter.register")


@fitter.register
def _(recipe: PerceptronRecipe, data: Data, validation: Indices, *, device: str = "auto") -> Fitter:
    from airchoir.training.perceptron import PerceptronFitter

    return PerceptronFitter(recipe, data, validation, device=device)


@fitter.register
def _(recipe: ImageRecipe, data: Data, validation: Indices, *, device: str = "auto") -> Fitter:
    from airchoir.training.images import ImageFitter

    return ImageFitter(recipe, data, validation, device=device)


@fitter.register
def _(recipe: TextRecipe, data: Data, validation: Indices, *, device: str = "auto") -> Fitter:
    from airchoir.training.texts import TextFitter

    return TextFitter(recipe, data, validation, device=device)
