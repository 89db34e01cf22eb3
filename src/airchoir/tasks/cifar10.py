"""CIFAR-10: 60,000 photographs of 32 x 32 pixels in 10 classes, and an ImageNet model fine-tuned by each client."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from airchoir.tasks import Data, Task
from airchoir.tasks.hub import HubData, images
from airchoir.tasks.recipes import ImageRecipe


@dataclass(frozen=True)
class Cifar10(Task):
    """50,000 training and 10,000 test images."""

    name: ClassVar[str] = "cifar10"
    title: ClassVar[str] = "CIFAR-10"
    classes: ClassVar[int] = 10
    packages: ClassVar[tuple[str, ...]] = ("numpy", "torch", "torchvision", "timm", "datasets", "pillow")

    def load(self, data: Path | None = None) -> Data:
        return HubData("cifar10", "uoft-cs/cifar10", "img", "label", self.classes, images).load(data)

    def recipe(self) -> ImageRecipe:
        return ImageRecipe()
