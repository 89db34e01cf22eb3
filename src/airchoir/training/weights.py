"""Weights that a model starts from: found, checked against the model by name and shape, and told apart by a fingerprint."""

import hashlib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
State = Mapping[str, "torch.Tensor"]
"""Tensors by name, as a model's `state_dict` has them."""


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


def fitting(
    state: State, wanted: State, what: str, model: str, *, is_new: Callable[[str], bool]
) -> dict[str, "torch.Tensor"]:
    """The tensors of `state` outside the new last layer, all that `wanted` has; refused by name and shape otherwise."""

    def backbone(names: Mapping[str, Any]) -> set[str]:
        return {name for name in names if not is_new(name)}

    counters = {
        name for name in wanted if name.endswith(".num_batches_tracked")
    }  # old files lack them, and nothing reads them
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


def fetched(what: str, advice: str, fetch: Callable[[], T]) -> T:
    """What `fetch` brings from a hub, or one line that says why not and what to do."""
    try:
        return fetch()
    except Exception as error:  # whatever the network or the hub trips over becomes one line
        reason = f"{type(error).__name__}: {error}".split("\n")[0][:200]
        raise ValueError(f"cannot get {what} ({reason}); go online, or {advice}") from None


def package(name: str) -> Any:
    """A package of airchoir[train], or the advice to install it."""
    try:
        return import_module(name)
    except ImportError:
        raise ValueError(
            f"this model needs {name.split('.')[0]}, which is not installed; run: pip install 'airchoir[train]'"
        ) from None
