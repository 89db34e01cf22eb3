"""Image classifiers by name, with a new last layer for the task's classes, and the weights that the rest starts from."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from airchoir.registry import suggestion
from airchoir.training.compute import require_torch
from airchoir.training.weights import State, fetched, fingerprint, fitting, package, read_weights

_OFFLINE = "give --weights FILE.safetensors or none"
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class ImageLibrary(ABC):
    """A package of image classifiers."""

    @abstractmethod
    def blank(self, name: str, *, classes: int, image_size: int) -> Any:
        """The model `name`, freshly drawn from torch's random numbers, with a last layer for `classes`."""

    @abstractmethod
    def head(self, name: str, model: Any) -> tuple[str, ...]:
        """What the last layer's tensors are called: the part of their names before `.weight`."""

    @abstractmethod
    def imagenet(self, name: str) -> tuple[str, State]:
        """The ImageNet weights' own name, and the weights."""

    @abstractmethod
    def normalisation(self, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel that the ImageNet weights were trained with."""


class Torchvision(ImageLibrary):
    """torchvision.models."""

    def blank(self, name: str, *, classes: int, image_size: int) -> Any:
        models = package("torchvision.models")
        if name not in models.list_models(module=models):
            raise ValueError(
                f"torchvision has no model {name!r}; {suggestion(name, models.list_models(module=models))}"
            )
        return models.get_model(name, weights=None, num_classes=classes)

    def head(self, name: str, model: Any) -> tuple[str, ...]:
        import torch

        layers = [path for path, layer in model.named_modules() if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d)]
        return (layers[-1],)

    def imagenet(self, name: str) -> tuple[str, State]:
        weights = package("torchvision.models").get_model_weights(name).DEFAULT
        state = fetched(
            f"the weights of torchvision:{name}",
            _OFFLINE,
            lambda: weights.get_state_dict(progress=False, check_hash=True),
        )
        return str(weights), state

    def normalisation(self, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        transforms = package("torchvision.models").get_model_weights(name).DEFAULT.transforms()
        mean, std = getattr(transforms, "mean", IMAGENET_MEAN), getattr(transforms, "std", IMAGENET_STD)
        return tuple(mean), tuple(std)


class Timm(ImageLibrary):
    """timm: PyTorch Image Models."""

    def blank(self, name: str, *, classes: int, image_size: int) -> Any:
        timm = package("timm")
        if not timm.is_model(name):
            raise ValueError(f"timm has no model {name!r}; {suggestion(name, timm.list_models())}")
        fixed = {"img_size": image_size} if getattr(self._settings(name), "fixed_input_size", False) else {}
        return timm.create_model(name, pretrained=False, num_classes=classes, **fixed)

    def head(self, name: str, model: Any) -> tuple[str, ...]:
        named = getattr(self._settings(name), "classifier", None) or model.pretrained_cfg["classifier"]
        return (named,) if isinstance(named, str) else tuple(named)

    def imagenet(self, name: str) -> tuple[str, State]:
        timm = package("timm")
        model = fetched(f"the weights of timm:{name}", _OFFLINE, lambda: timm.create_model(name, pretrained=True))
        return f"timm {name}.{model.pretrained_cfg.get('tag', '')}", model.state_dict()

    def normalisation(self, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        settings = self._settings(name)
        return (IMAGENET_MEAN, IMAGENET_STD) if settings is None else (tuple(settings.mean), tuple(settings.std))

    @staticmethod
    def _settings(name: str) -> Any:
        return package("timm").get_pretrained_cfg(name)


LIBRARIES: dict[str, ImageLibrary] = {"torchvision": Torchvision(), "timm": Timm()}


@dataclass(frozen=True, eq=False)
class ImageModel:
    """A classifier by name, and where its weights come from."""

    library: ImageLibrary
    name: str
    classes: int
    image_size: int
    given: State
    """The weights of everything but the last layer; empty where everything is drawn."""
    source: str
    head: tuple[str, ...]
    """The last layer, by name."""

    def draw(self) -> Any:
        """A model on the CPU: the given weights, and a last layer drawn as torch draws any new layer.

        Without given weights all is drawn as the library does.
        """
        model = self.library.blank(self.name, classes=self.classes, image_size=self.image_size)
        model.load_state_dict({**model.state_dict(), **self.given})
        if self.given:
            for layer in self.head:  # some libraries draw it so large that the softmax starts saturated
                model.get_submodule(layer).reset_parameters()
        return model.float()

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the given weights."""
        return fingerprint(self.given)


def image_model(model: str, weights: str, *, classes: int, image_size: int) -> ImageModel:
    """The classifier called `LIBRARY:NAME`, with weights `imagenet`, `none` or from a `.safetensors` file."""
    torch = require_torch()
    kind, _, name = model.partition(":")
    if kind not in LIBRARIES or not name:
        raise ValueError(f"an image model is called torchvision:NAME or timm:NAME, got {model!r}")
    library = LIBRARIES[kind]
    with torch.random.fork_rng(devices=[]):
        blank = library.blank(name, classes=classes, image_size=image_size)
        head = library.head(name, blank)
        if weights == "none":
            return ImageModel(library, name, classes, image_size, {}, "none", head)
        source, state = library.imagenet(name) if weights == "imagenet" else read_weights(weights, "imagenet")
    new = tuple(f"{layer}." for layer in head)
    given = fitting(
        state, blank.state_dict(), f"weights {weights}", model, is_new=lambda tensor: tensor.startswith(new)
    )
    return ImageModel(library, name, classes, image_size, given, source, head)
