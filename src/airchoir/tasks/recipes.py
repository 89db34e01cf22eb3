"""Recipes: which model a client fits and how, as plain values. Who carries them out lives in `training/`."""

import math
from dataclasses import dataclass
from typing import ClassVar

LOSSES = ("published", "plain")


@dataclass(frozen=True)
class Recipe:
    """Every setting of one fit; a bank's metadata keep it."""

    revision: ClassVar[int] = 1
    """Counts the ways in which a recipe has been carried out: clients of different ones are never mixed."""


@dataclass(frozen=True)
class PerceptronRecipe(Recipe):
    """A perceptron with one hidden layer, by scikit-learn's MLPClassifier with Adam."""

    hidden_units: int = 32
    epochs: int = 9
    batch: int = 16
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        _check_counts(hidden_units=self.hidden_units, epochs=self.epochs, batch=self.batch)
        _check_rate(self.learning_rate)


@dataclass(frozen=True)
class ImageRecipe(Recipe):
    """Fine-tuning of an image classifier by SGD with momentum, cosine to 0, stepped once an epoch [METHOD, Setting].

    `model` is `torchvision:NAME` or `timm:NAME`, `weights` is `imagenet`, `none` or a `.safetensors` file, and `loss` is
    `published` (cross-entropy of the softmax output, softmax twice) or `plain`.
    """

    revision: ClassVar[int] = 2  # a new last layer is drawn as torch draws it
    model: str = "torchvision:mobilenet_v3_large"
    weights: str = "imagenet"
    loss: str = "published"
    epochs: int = 50
    batch: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    image_size: int = 224

    def __post_init__(self) -> None:
        _check_counts(epochs=self.epochs, batch=self.batch, image_size=self.image_size)
        _check_rate(self.learning_rate)
        _check_loss(self.loss)


@dataclass(frozen=True)
class TextRecipe(Recipe):
    """Fine-tuning of a text classifier by AdamW, linear decay per step, no warm-up [METHOD, Setting].

    `model` is `transformers:` and a hub name or a directory, `weights` is `pretrained`, `none` or a `.safetensors` file.
    """

    model: str = "transformers:distilbert-base-uncased"
    weights: str = "pretrained"
    loss: str = "plain"
    epochs: int = 3
    batch: int = 16
    learning_rate: float = 5e-5
    weight_decay: float = 0.0
    clip: float = 1.0
    max_tokens: int = 512

    def __post_init__(self) -> None:
        _check_counts(epochs=self.epochs, batch=self.batch, max_tokens=self.max_tokens)
        _check_rate(self.learning_rate)
        _check_loss(self.loss)


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def _check_rate(learning_rate: float) -> None:
    if not 0.0 < learning_rate < math.inf:
        raise ValueError(f"learning_rate must be positive and finite, got {learning_rate}")


def _check_loss(loss: str) -> None:
    if loss not in LOSSES:
        raise ValueError(f"loss must be {' or '.join(LOSSES)}, got {loss!r}")
