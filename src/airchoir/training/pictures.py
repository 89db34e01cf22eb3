"""Images as a model wants them: resized, normalised, gathered by index on the device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from airchoir.training.compute import Compute

if TYPE_CHECKING:
    import torch

Gather = Callable[["torch.Tensor"], "torch.Tensor"]
"""Indices on the device -> a batch (examples, 3, height, width), channels last."""
Prepare = Callable[["torch.Tensor"], "torch.Tensor"]

_CHUNK = 1024
_SHARE_OF_MEMORY = 0.6


@dataclass(frozen=True)
class Preparation:
    """Bilinear, antialiased resizing to `size` x `size` pixels, and the normalisation that the weights want."""

    size: int
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def on(self, device: "torch.device") -> "Prepare":
        """The preparation as a function of uint8 (examples, height, width, 3) -> float32 (examples, 3, size, size)."""
        import torch
        from torch.nn.functional import interpolate

        mean, std = (torch.tensor(values, device=device)[:, None, None] for values in (self.mean, self.std))
        size = (self.size, self.size)

        def prepare(images: "torch.Tensor") -> "torch.Tensor":
            pixels = images.permute(0, 3, 1, 2).float().contiguous()
            if tuple(pixels.shape[2:]) != size:
                pixels = interpolate(pixels, size, mode="bilinear", antialias=True)
            return (pixels / 255.0 - mean) / std

        return prepare


def pictures(images: NDArray[np.uint8], preparation: Preparation, compute: Compute) -> Gather:
    """Gathers from `images`: prepared once where a GPU has room for them all, batch by batch otherwise."""
    import torch

    prepare = preparation.on(compute.device)
    raw = torch.from_numpy(np.ascontiguousarray(images)).to(compute.device)
    if compute.device.type == "cuda":
        needed = len(images) * 3 * preparation.size**2 * compute.dtype.itemsize
        if needed <= _SHARE_OF_MEMORY * torch.cuda.mem_get_info(compute.device)[0]:
            return _resident(raw, prepare, preparation.size, compute)
    return lambda indices: _channels_last(prepare(raw.index_select(0, indices)).to(compute.dtype))


def _resident(raw: "torch.Tensor", prepare: Prepare, size: int, compute: Compute) -> Gather:
    import torch

    rows = torch.empty((len(raw), size * size * 3), dtype=compute.dtype, device=compute.device)
    for start in range(0, len(raw), _CHUNK):
        part = prepare(raw[start : start + _CHUNK]).permute(0, 2, 3, 1)
        rows[start : start + _CHUNK] = part.reshape(len(part), -1)  # rows of height, width, 3: channels last
    return lambda indices: rows.index_select(0, indices).view(-1, size, size, 3).permute(0, 3, 1, 2)


def _channels_last(batch: "torch.Tensor") -> "torch.Tensor":
    import torch

    return batch.contiguous(memory_format=torch.channels_last)
