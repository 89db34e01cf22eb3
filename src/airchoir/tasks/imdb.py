"""IMDB: 50,000 film reviews, good or bad, and a pretrained language model fine-tuned by each client."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from airchoir.tasks import Data, Task
from airchoir.tasks.hub import HubData, texts
from airchoir.tasks.recipes import TextRecipe


@dataclass(frozen=True)
class Imdb(Task):
    """25,000 training and 25,000 test reviews."""

    name: ClassVar[str] = "imdb"
    title: ClassVar[str] = "IMDB"
    classes: ClassVar[int] = 2
    packages: ClassVar[tuple[str, ...]] = ("numpy", "torch", "transformers", "tokenizers", "datasets")

    def load(self, data: Path | None = None) -> Data:
        return HubData("imdb", "stanfordnlp/imdb", "text", "label", self.classes, texts).load(data)

    def recipe(self) -> TextRecipe:
        return TextRecipe()
