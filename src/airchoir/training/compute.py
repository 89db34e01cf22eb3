"""Where a fit computes, and in what numbers: float32 on the CPU, reproducible to the bit; bfloat16 autocast on CUDA."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

SPEEDS = ("compiled", "graphs", "eager")
SPEED_VARIABLE = "AIRCHOIR_CUDA"


@dataclass(frozen=True)
class Compute:
    """A device, the type that convolutions and products run in, and how CUDA kernels are made and launched."""

    device: "torch.device"
    dtype: "torch.dtype"
    speed: str

    @property
    def compiles(self) -> bool:
        return self.speed == "compiled"

    @property
    def captures(self) -> bool:
        return self.speed != "eager"

    def autocast(self) -> Any:
        """The context in which a model computes in `dtype`; its weights stay float32."""
        import torch

        # without the cache: its casts would outlive the CUDA graph that made them
        return torch.autocast(
            self.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16, cache_enabled=False
        )

    def describe(self) -> str:
        import torch

        if self.device.type == "cpu":
            return f"cpu, {torch.get_num_threads()} threads"
        return f"{self.device.type}, {torch.cuda.get_device_name(self.device)}"


def compute_on(device: str) -> Compute:
    """The computing place called `device`: auto, cpu, cuda or cuda:N.

    On CUDA the environment variable AIRCHOIR_CUDA chooses `compiled` (torch.compile and CUDA graphs, the default), `graphs`
    (CUDA graphs alone) or `eager`.
    """
    torch = require_torch()
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    name, _, index = device.partition(":")
    if name not in ("cpu", "cuda") or (index and not index.isdecimal()):
        raise ValueError(f"device must be auto, cpu, cuda or cuda:N, got {device!r}")
    if name == "cpu":
        return Compute(torch.device("cpu"), torch.float32, "eager")
    if not torch.cuda.is_available():
        raise ValueError(f"device {device} was asked for, but torch {torch.__version__} sees no GPU; use cpu or auto")
    if int(index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {device} was asked for, but there are {torch.cuda.device_count()} GPUs; count from 0")
    speed = os.environ.get(SPEED_VARIABLE, SPEEDS[0])
    if speed not in SPEEDS:
        raise ValueError(f"{SPEED_VARIABLE} must be {', '.join(SPEEDS)}, got {speed!r}")
    torch.cuda.set_device(int(index or 0))  # graphs and kernels then all go to this one
    torch.backends.cudnn.benchmark = True
    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    return Compute(torch.device("cuda", int(index or 0)), dtype, speed)


def with_fast_layers(model: Any, compute: Compute) -> Any:
    """The model with layers that train faster where kernels are compiled; its weights are the same under the same names."""
    if not compute.compiles or find_spec("triton") is None:
        return model
    from airchoir.training.depthwise import replace_depthwise

    return replace_depthwise(model)


@contextmanager
def reproducible(compute: Compute, seed: np.random.SeedSequence) -> Iterator[None]:
    """Everything torch draws comes from `seed`, and its own state is afterwards what it was."""
    import torch

    deterministic = torch.are_deterministic_algorithms_enabled()
    with torch.random.fork_rng(devices=[compute.device.index] if compute.device.type == "cuda" else []):
        torch.manual_seed(int(seed.generate_state(1, np.uint64)[0]))
        torch.use_deterministic_algorithms(deterministic or compute.device.type == "cpu")
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(deterministic)


def require_torch() -> Any:
    """The torch package, or the advice how to get it."""
    try:
        import torch
    except ImportError:
        raise ValueError("training needs torch, which is not installed; run: pip install 'airchoir[train]'") from None
    return torch


def visible_devices() -> list[str]:
    """The accelerators that torch sees, in words; none where it is not installed, and why where it cannot be loaded."""
    if find_spec("torch") is None:
        return []
    try:
        with warnings.catch_warnings(action="ignore"):  # an old driver is no accelerator
            import torch

            names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
            apple = ["mps"] if torch.backends.mps.is_available() else []
    except Exception as error:  # a library of the system that is missing or too old
        return [f"torch cannot be loaded ({' '.join(str(error).split())[:200]})"]
    return [f"cuda:{index} {name}" for index, name in enumerate(names)] + apple
