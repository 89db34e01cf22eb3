"""One step of training on one batch: run as it is, or recorded once as a CUDA graph and replayed."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

Step = Callable[["torch.Tensor"], None]
"""Trains on the examples with these indices, all of them on the device."""

_WARM_UP = 3


def captured(step: Step, size: int, *, stream: "torch.cuda.Stream") -> Step:
    """`step` for batches of exactly `size`, as one CUDA graph: the launches of hundreds of kernels become one.

    `step` must not read anything back from the device, nor allocate what outlives it. It runs a few times here, on the
    same stream that records it: what it changes must be set afresh afterwards.
    """
    import torch

    indices = torch.arange(size, device=stream.device)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP):  # compiles kernels, picks convolution algorithms, makes the optimiser's state
            step(indices)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        step(indices)

    def replay(chosen: "torch.Tensor") -> None:
        indices.copy_(chosen)
        graph.replay()

    return replay


def batches(order: Any, size: int) -> Iterator[Any]:
    """Slices of `size`; the last, smaller one is kept.

    >>> list(batches([5, 6, 7], 2))
    [[5, 6], [7]]
    """
    for start in range(0, len(order), size):
        yield order[start : start + size]
