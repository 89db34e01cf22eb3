"""The gradients of a depthwise convolution as Triton kernels, channels last. Import it where Triton is installed.

A depthwise convolution has one filter per channel, y[o] = sum over taps t of w[t] x[o S - P + t] in rows and columns, with
stride S and P pixels of padding before. Sums are kept in float32.
"""
# mypy: ignore-errors

import torch
import triton
import triton.language as tl

Block = tuple[int, int, int]
INPUT_BLOCKS: tuple[Block, ...] = ((32, 32, 4), (64, 32, 4), (16, 128, 4))
"""Pixels, channels and warps of a program of `grad_input`; which is fastest depends on the layer."""
FILTER_BLOCKS: tuple[Block, ...] = ((8, 32, 4), (4, 64, 4))
"""The same of `grad_filter`."""
_FILTER_PROGRAMS = 4096
"""About how many programs share the sum over all pixels."""


@triton.jit
def _input_kernel(
    grad_y, filters, grad_x, pixels, height, width, out_height, out_width, channels, top, left,
    size: tl.constexpr, stride: tl.constexpr, block: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    """x[i] gets sum over t of w[t] y'[(i + P - t) / S], where S divides.

    A program takes pixels whose rows, and columns, leave one remainder of S: so all need the same taps, every S-th.
    """
    row_phase, column_phase = tl.program_id(2) // stride, tl.program_id(2) % stride
    rows, columns = (height + stride - 1) // stride, (width + stride - 1) // stride
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    channel = tl.program_id(1) * lanes + tl.arange(0, lanes)
    column = (pixel % columns) * stride + column_phase
    row = (pixel // columns % rows) * stride + row_phase
    image = pixel // (rows * columns)
    live = (pixel < pixels) & (row < height) & (column < width)
    inside = channel < channels
    first_row_tap, first_column_tap = (row_phase + top) % stride, (column_phase + left) % stride
    total = tl.zeros([block, lanes], tl.float32)
    for a in tl.static_range(0, size, stride):
        for b in tl.static_range(0, size, stride):
            row_tap, column_tap = first_row_tap + a, first_column_tap + b
            y_row, y_column = (row + top - row_tap) // stride, (column + left - column_tap) // stride
            known = live & (row + top >= row_tap) & (y_row < out_height)
            known = known & (column + left >= column_tap) & (y_column < out_width)
            place = ((image * out_height + y_row) * out_width + y_column) * channels
            mask = known[:, None] & inside[None, :]
            value = tl.load(grad_y + place[:, None] + channel[None, :], mask=mask, other=0.0)
            real = channel < tl.where((row_tap < size) & (column_tap < size), channels, 0)
            tap = tl.load(filters + (row_tap * size + column_tap) * channels + channel, mask=real, other=0.0)
            total += value.to(tl.float32) * tap[None, :]
    place = ((image * height + row) * width + column) * channels
    mask = live[:, None] & inside[None, :]
    tl.store(grad_x + place[:, None] + channel[None, :], total.to(grad_x.dtype.element_ty), mask=mask)


@triton.jit
def _filter_kernel(
    x, grad_y, parts, pixels, steps, height, width, out_height, out_width, channels, top, left,
    size: tl.constexpr, stride: tl.constexpr, taps: tl.constexpr, block: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    """w[t] gets sum over o of y'[o] x[o S - P + t]: a program's own part of the pixels, `steps` blocks."""
    channel = tl.program_id(1) * lanes + tl.arange(0, lanes)
    tap = tl.arange(0, taps)  # a power of two: the last ones may not exist
    inside, real = channel < channels, tap < size * size
    total = tl.zeros([taps, block, lanes], tl.float32)
    for step in range(steps):
        pixel = (tl.program_id(0) * steps + step) * block + tl.arange(0, block)
        live = pixel < pixels
        column, row = pixel % out_width, pixel // out_width % out_height
        image = pixel // (out_width * out_height)
        x_row = row[None, :] * stride - top + (tap // size)[:, None]
        x_column = column[None, :] * stride - left + (tap % size)[:, None]
        known = live[None, :] & real[:, None] & (x_row >= 0) & (x_row < height) & (x_column >= 0) & (x_column < width)
        place = ((image[None, :] * height + x_row) * width + x_column) * channels
        mask = known[:, :, None] & inside[None, None, :]
        value = tl.load(x + place[:, :, None] + channel[None, None, :], mask=mask, other=0.0)
        mask = live[:, None] & inside[None, :]
        grad = tl.load(grad_y + (pixel * channels)[:, None] + channel[None, :], mask=mask, other=0.0)
        total += value.to(tl.float32) * grad.to(tl.float32)[None, :, :]
    place = (tl.program_id(0) * size * size + tap) * channels
    mask = real[:, None] & inside[None, :]
    tl.store(parts + place[:, None] + channel[None, :], tl.sum(total, axis=1), mask=mask)


def grad_input(
    grad_y: torch.Tensor, weight: torch.Tensor, shape: tuple[int, ...], *, stride: int, padding: tuple[int, int],
    block: Block,
) -> torch.Tensor:  # fmt: skip
    """The gradient of the input, which has `shape` (examples, channels, height, width)."""
    pixels_at_once, lanes, warps = block
    examples, channels, height, width = shape
    size = weight.shape[-1]
    filters = weight.detach().float().reshape(channels, size * size).t().contiguous()
    made = empty(shape, grad_y)
    pixels = examples * -(-height // stride) * -(-width // stride)
    grid = (triton.cdiv(pixels, pixels_at_once), triton.cdiv(channels, lanes), stride * stride)
    _input_kernel[grid](
        grad_y, filters, made, pixels, height, width, *grad_y.shape[2:], channels, *padding,
        size, stride, pixels_at_once, lanes, num_warps=warps,
    )  # fmt: skip
    return made


def grad_filter(
    x: torch.Tensor, grad_y: torch.Tensor, size: int, *, stride: int, padding: tuple[int, int],
    block: Block,
) -> torch.Tensor:  # fmt: skip
    """The gradient of the filters (channels, 1, size, size), in float32."""
    pixels_at_once, lanes, warps = block
    examples, channels, height, width = x.shape
    out_height, out_width = grad_y.shape[2:]
    pixels, groups = examples * out_height * out_width, triton.cdiv(channels, lanes)
    steps = max(1, triton.cdiv(pixels * groups, pixels_at_once * _FILTER_PROGRAMS))
    programs = triton.cdiv(pixels, pixels_at_once * steps)
    parts = torch.empty((programs, size * size, channels), dtype=torch.float32, device=x.device)
    _filter_kernel[(programs, groups)](
        x, grad_y, parts, pixels, steps, height, width, out_height, out_width, channels, *padding,
        size, stride, triton.next_power_of_2(size * size), pixels_at_once, lanes, num_warps=warps,
    )  # fmt: skip
    return parts.sum(dim=0).t().reshape(channels, 1, size, size)


def empty(shape: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
    """A new tensor of `shape` (examples, channels, height, width), channels last."""
    examples, channels, height, width = shape
    return torch.empty((examples, height, width, channels), dtype=like.dtype, device=like.device).permute(0, 3, 1, 2)
