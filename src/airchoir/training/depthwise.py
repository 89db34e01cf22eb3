"""Depthwise convolutions on CUDA whose gradients take whatever is fastest for their layer: the library's kernels or ours.

For bfloat16 the library's gradients of some layers run at a hundredth of the memory's speed, and of others close to it: so
each layer's are timed once, as the library does among its own. Import this where Triton is installed.
"""
# mypy: disable-error-code="untyped-decorator,misc"

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.nn.functional import conv2d, pad

from airchoir.training.depthwise_kernels import FILTER_BLOCKS, INPUT_BLOCKS, Block, empty, grad_filter, grad_input

_REPEATS = 5


def replace_depthwise(model: Any) -> Any:
    """The model with its depthwise layers replaced; the weights stay the same tensors under the same names."""
    for parent in list(model.modules()):
        for name, layer in parent.named_children():
            if isinstance(layer, torch.nn.Conv2d) and _is_covered(layer):
                setattr(parent, name, Depthwise(layer))
    return model


def _is_covered(layer: torch.nn.Conv2d) -> bool:
    """Whether it has one square filter per channel and pads with zeros as torch or timm do."""
    alone = 1 < layer.groups == layer.in_channels == layer.out_channels and layer.bias is None
    even = all(len({*pair}) == 1 for pair in (layer.kernel_size, layer.stride)) and {*layer.dilation} == {1}
    known = type(layer).__name__ in ("Conv2d", "Conv2dSame") and not isinstance(layer.padding, str)
    return alone and even and known and layer.padding_mode == "zeros"


class Depthwise(torch.nn.Module):
    """A depthwise convolution, with the weights of the layer that it replaces."""

    def __init__(self, layer: torch.nn.Conv2d) -> None:
        super().__init__()
        self.weight = layer.weight
        self._stride = layer.stride[0]
        self._padding = layer.padding
        self._same = type(layer).__name__ == "Conv2dSame"  # timm's: as many outputs as TensorFlow would give

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._same:
            x = _padded(x, self.weight.shape[-1], self._stride)
        top, left = (int(pixels) for pixels in self._padding)
        return depthwise(x, self.weight, self._stride, top, left)


def _padded(x: torch.Tensor, size: int, stride: int) -> torch.Tensor:
    """Zeros around x, the odd one behind, for ceil(pixels / stride) outputs in rows and columns."""
    missing = [max((-(-pixels // stride) - 1) * stride + size - pixels, 0) for pixels in x.shape[2:]]
    rows, columns = ((each // 2, each - each // 2) for each in missing)
    return pad(x, (*columns, *rows)) if any(missing) else x


@torch.library.custom_op("airchoir::depthwise", mutates_args=())
def depthwise(x: torch.Tensor, weight: torch.Tensor, stride: int, top: int, left: int) -> torch.Tensor:
    """The convolution, in the type of `x`, by the library."""
    return _last(conv2d(_last(x), weight.to(x.dtype), None, stride, (top, left), 1, x.shape[1]))


@torch.library.custom_op("airchoir::depthwise_backward", mutates_args=())
def depthwise_backward(
    grad_y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, stride: int, top: int, left: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of input and weight."""
    layer = Layer(tuple(x.shape), tuple(grad_y.shape), weight.shape[-1], stride, (top, left))
    grad_y, x = _last(grad_y), _last(x)
    of_input, of_filter = fastest(layer, x.dtype, x.device)
    return layer.grad_input(grad_y, x, weight, of_input), layer.grad_filter(grad_y, x, weight, of_filter)


@depthwise.register_fake
def _(x: torch.Tensor, weight: torch.Tensor, stride: int, top: int, left: int) -> torch.Tensor:
    size = weight.shape[-1]
    height, width = ((n + 2 * p - size) // stride + 1 for n, p in zip(x.shape[2:], (top, left), strict=True))
    return empty((x.shape[0], x.shape[1], height, width), x)


@depthwise_backward.register_fake
def _(
    grad_y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, stride: int, top: int, left: int
) -> tuple[torch.Tensor, torch.Tensor]:
    return empty(tuple(x.shape), x), torch.empty_like(weight, memory_format=torch.contiguous_format)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, weight, *ctx.rest = inputs
    ctx.save_for_backward(x, weight)


def _backward(ctx: Any, grad_y: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    return *depthwise_backward(grad_y, *ctx.saved_tensors, *ctx.rest), None, None, None


depthwise.register_autograd(_backward, setup_context=_keep)


@dataclass(frozen=True)
class Layer:
    """The shapes of a convolution: all that decides which kernel is fastest."""

    input: tuple[int, ...]
    output: tuple[int, ...]
    size: int
    stride: int
    padding: tuple[int, int]

    def grad_input(self, grad_y: Any, x: Any, weight: Any, block: Block | None) -> torch.Tensor:
        """By our kernel with this block, or by the library."""
        if block is None:
            return _last(self._by_library(grad_y, x, weight, [True, False, False])[0])
        return grad_input(grad_y, weight, self.input, stride=self.stride, padding=self.padding, block=block)

    def grad_filter(self, grad_y: Any, x: Any, weight: Any, block: Block | None) -> torch.Tensor:
        """By our kernel with this block, or by the library."""
        if block is None:
            made = self._by_library(grad_y, x, weight, [False, True, False])[1]
        else:
            made = grad_filter(x, grad_y, self.size, stride=self.stride, padding=self.padding, block=block)
        return made.to(weight.dtype).contiguous()

    def _by_library(self, grad_y: Any, x: Any, weight: Any, wanted: list[bool]) -> tuple[torch.Tensor, ...]:
        return torch.ops.aten.convolution_backward(
            grad_y,
            x,
            weight.to(x.dtype),
            None,
            [self.stride, self.stride],
            [*self.padding],
            [1, 1],
            False,
            [0, 0],
            self.input[1],
            wanted,
        )


@cache
def fastest(layer: Layer, dtype: torch.dtype, device: torch.device) -> tuple[Block | None, Block | None]:
    """For each gradient of a layer the block with which our kernel is fastest, None where the library is."""
    if device.type != "cuda":
        return None, None
    x, grad_y = (_last(torch.randn(shape, dtype=dtype, device=device)) for shape in (layer.input, layer.output))
    weight = torch.randn((layer.input[1], 1, layer.size, layer.size), device=device)

    def best(gradient: Callable[..., torch.Tensor], blocks: tuple[Block, ...]) -> Block | None:
        return min((None, *blocks), key=lambda block: _milliseconds(lambda: gradient(grad_y, x, weight, block)))

    return best(layer.grad_input, INPUT_BLOCKS), best(layer.grad_filter, FILTER_BLOCKS)


def _milliseconds(work: Callable[[], object]) -> float:
    """The GPU's time for `work`, the shortest of a few."""
    work()  # compiles
    times = []
    for _ in range(_REPEATS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return min(times)


def _last(x: torch.Tensor) -> torch.Tensor:
    """The same values, channels last."""
    return x.contiguous(memory_format=torch.channels_last)
