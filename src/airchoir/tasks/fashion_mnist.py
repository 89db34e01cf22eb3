"""Fashion-MNIST: 70,000 grey images of clothes, 28 x 28 pixels, and an ImageNet model fine-tuned by each client."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from airchoir.tasks import Data, Task
from airchoir.tasks.hub import HubData, images
from airchoir.tasks.recipes import ImageRecipe


@dataclass(frozen=True)
class FashionMnist(Task):
    """60,000 training and 10,000 test images; grey is copied to three channels."""

    name: ClassVar[str] = "fashion_mnist"
    title: ClassVar[str] = "Fashion-MNIST"
    classes: ClassVar[int] = 10
    packages: ClassVar[tuple[str, ...]] = ("numpy", "torch", "torchvision", "timm", "datasets", "pillow")

    def load(self, data: Path | None = None) -> Data:
        source = HubData("fashion_mnist", "zalando-datasets/fashion_mnist", "image", "label", self.classes, images)
        return source.load(data)

    def recipe(self) -> ImageRecipe:
        return ImageRecipe()
