"""Image classifiers by name, with a new last layer for the task's classes, and the weights that the rest starts from."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airchoir.registry import suggestion
from airchoir.training.compute import require_torch

if TYPE_CHECKING:
    import torch

State = Mapping[str, "torch.Tensor"]
"""Tensors by name, as a model's `state_dict` has them."""

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
        models = _package("torchvision.models")
        if name not in models.list_models(module=models):
            raise ValueError(f"torchvision has no model {name!r}; {suggestion(name, models.list_models(module=models))}")
        return models.get_model(name, weights=None, num_classes=classes)

    def head(self, name: str, model: Any) -> tuple[str, ...]:
        import torch

        layers = [path for path, layer in model.named_modules() if isinstance(layer, torch.nn.Linear | torch.nn.Conv2d)]
        return (layers[-1],)

    def imagenet(self, name: str) -> tuple[str, State]:
        weights = _package("torchvision.models").get_model_weights(name).DEFAULT
        state = _fetched(f"torchvision:{name}", lambda: weights.get_state_dict(progress=False, check_hash=True))
        return str(weights), state

    def normalisation(self, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        transforms = _package("torchvision.models").get_model_weights(name).DEFAULT.transforms()
        mean, std = getattr(transforms, "mean", IMAGENET_MEAN), getattr(transforms, "std", IMAGENET_STD)
        return tuple(mean), tuple(std)


class Timm(ImageLibrary):
    """timm: PyTorch Image Models."""

    def blank(self, name: str, *, classes: int, image_size: int) -> Any:
        timm = _package("timm")
        if not timm.is_model(name):
            raise ValueError(f"timm has no model {name!r}; {suggestion(name, timm.list_models())}")
        fixed = {"img_size": image_size} if getattr(self._settings(name), "fixed_input_size", False) else {}
        return timm.create_model(name, pretrained=False, num_classes=classes, **fixed)

    def head(self, name: str, model: Any) -> tuple[str, ...]:
        named = getattr(self._settings(name), "classifier", None) or model.pretrained_cfg["classifier"]
        return (named,) if isinstance(named, str) else tuple(named)

    def imagenet(self, name: str) -> tuple[str, State]:
        timm = _package("timm")
        model = _fetched(f"timm:{name}", lambda: timm.create_model(name, pretrained=True))
        return f"timm {name}.{model.pretrained_cfg.get('tag', '')}", model.state_dict()

    def normalisation(self, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
        settings = self._settings(name)
        return (IMAGENET_MEAN, IMAGENET_STD) if settings is None else (tuple(settings.mean), tuple(settings.std))

    @staticmethod
    def _settings(name: str) -> Any:
        return _package("timm").get_pretrained_cfg(name)


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

    def draw(self) -> Any:
        """A model on the CPU: the given weights, and what they lack from torch's random numbers."""
        model = self.library.blank(self.name, classes=self.classes, image_size=self.image_size)
        model.load_state_dict({**model.state_dict(), **self.given})
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
            return ImageModel(library, name, classes, image_size, {}, "none")
        source, state = library.imagenet(name) if weights == "imagenet" else read_weights(weights, "imagenet")
    given = fitting(state, blank.state_dict(), head, f"weights {weights}", model)
    return ImageModel(library, name, classes, image_size, given, source)


def read_weights(weights: str, named: str) -> tuple[str, State]:
    """The file's name and its tensors; `named` is the word that a model's own weights go by."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = Path(weights)
    if path.suffix != ".safetensors":
        raise ValueError(f"weights must be {named}, none or a .safetensors file, got {weights!r}")
    if not path.is_file():
        raise ValueError(f"weights {path} do not exist; check the name")
    try:
        return path.name, load_file(path)
    except SafetensorError as error:
        raise ValueError(f"weights {path} are no whole safetensors file ({error}); copy or make them again") from None


def fitting(state: State, wanted: State, head: tuple[str, ...], what: str, model: str) -> dict[str, "torch.Tensor"]:
    """The tensors of `state` outside the last layer, all that `wanted` has; refused by name and shape otherwise."""

    def backbone(names: Mapping[str, Any]) -> set[str]:
        return {name for name in names if not name.startswith(tuple(f"{layer}." for layer in head))}

    counters = {name for name in wanted if name.endswith(".num_batches_tracked")}  # old files lack them, and nothing reads them
    missing = sorted(backbone(wanted) - state.keys() - counters)
    unknown = sorted(backbone(state) - wanted.keys())
    if missing or unknown:
        complaint = f"lack {missing[0]}" if missing else f"have {unknown[0]}, which it has not"
        more = len(missing) + len(unknown) - 1
        raise ValueError(
            f"{what} do not fit {model}: they {complaint}{f' (and {more} more differ)' if more else ''}; name the model they "
            f"were made for"
        )
    given = {name: state[name] for name in sorted(backbone(wanted) & state.keys())}
    for name, tensor in given.items():
        if tensor.shape != wanted[name].shape:
            raise ValueError(
                f"{what} do not fit {model}: {name} has shape {tuple(tensor.shape)}, the model wants "
                f"{tuple(wanted[name].shape)}; name the model they were made for"
            )
    return given


def fingerprint(state: State) -> str:
    """The SHA-256 of names, types, shapes and values, in the order of the names; `none` of nothing."""
    import torch

    if not state:
        return "none"
    digest = hashlib.sha256()
    for name, tensor in sorted(state.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _fetched(model: str, fetch: Any) -> Any:
    try:
        return fetch()
    except Exception as error:  # whatever the network or the hub trips over becomes one line
        reason = f"{type(error).__name__}: {error}".split("\n")[0][:200]
        raise ValueError(
            f"cannot get the ImageNet weights of {model} ({reason}); go online, or give --weights FILE.safetensors or none"
        ) from None


def _package(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise ValueError(
            f"this model needs {name.split('.')[0]}, which is not installed; run: pip install 'airchoir[train]'"
        ) from None
