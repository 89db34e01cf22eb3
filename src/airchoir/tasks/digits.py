"""Handwritten digits, 1,797 images of 8 x 8 pixels that ship with scikit-learn, and a small network for each client."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from airchoir.tasks import Data, Task
from airchoir.tasks.recipes import PerceptronRecipe


@dataclass(frozen=True)
class Digits(Task):
    """A client sees some 57 images and fits a perceptron with one hidden layer: weak alone, good in a choir.

    There is no official test split: 30 % are held out, stratified, with seed 0.
    """

    name: ClassVar[str] = "digits"
    title: ClassVar[str] = "Digits"
    classes: ClassVar[int] = 10
    packages: ClassVar[tuple[str, ...]] = ("numpy", "scikit-learn")

    def load(self, data: Path | None = None) -> Data:
        if data is not None:
            raise ValueError(f"the digits ship with scikit-learn and cannot come from {data}; leave --data out")
        try:
            from sklearn.datasets import load_digits
            from sklearn.model_selection import train_test_split
        except ImportError:
            raise ValueError(
                "the digits task needs scikit-learn, which is not installed; run: pip install 'airchoir[demo]'"
            ) from None

        images, labels = load_digits(return_X_y=True)
        train_x, test_x, train_y, test_y = train_test_split(
            images / 16.0, labels, test_size=0.3, stratify=labels, random_state=0
        )
        return Data(train_x, train_y.astype(np.int64), test_x, test_y.astype(np.int64), self.classes)

    def recipe(self) -> PerceptronRecipe:
        return PerceptronRecipe()
