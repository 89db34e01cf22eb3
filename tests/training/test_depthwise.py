"""Depthwise layers: the same values and gradients as torch's own, through our kernels and through the library."""

import copy
import json
import os
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs airchoir[train]; run make test-all")
pytest.importorskip("triton", reason="Triton comes with torch for CUDA; here is none")
timm = pytest.importorskip("timm", reason="needs airchoir[train]; run make test-all")

from torch.nn.functional import conv2d

from airchoir.training.depthwise import Depthwise, replace_depthwise

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
# channels, height, width, size of the filters, stride, padding
LAYERS = [
    (20, 7, 7, 3, 1, 1),
    (16, 9, 8, 5, 2, 2),
    (33, 8, 9, 3, 2, 0),
    (16, 8, 8, 5, 2, 1),
    (16, 6, 6, 5, 1, 2),
    (8, 9, 9, 3, 3, 1),
]
INTERPRETED = """
import json, sys
import torch
from airchoir.training.depthwise_kernels import grad_filter, grad_input
from torch.nn.functional import conv2d
worst = []
for channels, height, width, size, stride, padding in json.loads(sys.argv[1]):
    torch.manual_seed(channels)
    x = torch.randn(2, channels, height, width).contiguous(memory_format=torch.channels_last).requires_grad_()
    weight = torch.randn(channels, 1, size, size, requires_grad=True)
    y = conv2d(x, weight, None, stride, padding, 1, channels)
    grad_y = torch.randn_like(y).contiguous(memory_format=torch.channels_last)
    y.backward(grad_y)
    how = {"stride": stride, "padding": (padding, padding)}
    of_input = grad_input(grad_y, weight, tuple(x.shape), **how, block=(16, 16, 4))
    of_filter = grad_filter(x.detach(), grad_y, size, **how, block=(8, 16, 4))
    worst += [float((of_input - x.grad).abs().max()), float((of_filter - weight.grad).abs().max())]
print(json.dumps(worst))
"""


def test_the_kernels_give_torchs_gradients() -> None:
    """By Triton's interpreter, on the CPU, in a process of its own: it must be chosen before Triton is imported."""
    ran = subprocess.run(
        [sys.executable, "-c", INTERPRETED, json.dumps(LAYERS)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    worst = json.loads(ran.stdout)
    assert len(worst) == 2 * len(LAYERS)
    assert max(worst) < 2e-5  # float32 sums of a hundred products near 1


def small_model() -> Any:
    torch.manual_seed(0)
    return timm.create_model("tf_efficientnet_lite0", num_classes=3).eval()


def test_a_model_keeps_its_weights_names_values_and_gradients() -> None:
    model = small_model()
    mine = replace_depthwise(copy.deepcopy(model))
    assert sum(isinstance(layer, Depthwise) for layer in mine.modules()) == 16
    assert list(mine.state_dict()) == list(model.state_dict())
    assert all(torch.equal(one, other) for one, other in zip(mine.parameters(), model.parameters(), strict=True))
    x = torch.randn(2, 3, 33, 35)
    for own in (model, mine):
        own.zero_grad()
        own(x).square().sum().backward()
    torch.testing.assert_close(mine(x), model(x), rtol=1e-4, atol=1e-4)
    for one, other in zip(mine.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-4 * float(other.grad.abs().max()))


def test_layers_of_another_kind_stay_as_they_are() -> None:
    layers = [
        torch.nn.Conv2d(4, 8, 3, groups=4, bias=False),  # two filters per channel
        torch.nn.Conv2d(4, 4, 3, groups=2, bias=False),
        torch.nn.Conv2d(4, 4, 3, groups=4),  # with a bias
        torch.nn.Conv2d(4, 4, (3, 5), groups=4, bias=False),
        torch.nn.Conv2d(4, 4, 3, stride=(1, 2), groups=4, bias=False),
        torch.nn.Conv2d(4, 4, 3, dilation=2, groups=4, bias=False),
        torch.nn.Conv2d(4, 4, 3, padding="same", groups=4, bias=False),
        torch.nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect", groups=4, bias=False),
        torch.nn.Conv2d(1, 1, 3, bias=False),
    ]
    replaced = replace_depthwise(torch.nn.Sequential(*layers))
    assert [type(layer) for layer in replaced] == [torch.nn.Conv2d] * len(layers)


@on_gpu
@pytest.mark.parametrize(("channels", "height", "width", "size", "stride", "padding"), LAYERS)
def test_on_a_gpu_the_fastest_kernels_give_the_gradients_too(
    channels: int, height: int, width: int, size: int, stride: int, padding: int
) -> None:
    layer = torch.nn.Conv2d(channels, channels, size, stride, padding, groups=channels, bias=False).cuda()
    x = torch.randn(3, channels, height, width, device="cuda", requires_grad=True)
    y = Depthwise(layer)(x)
    expected = conv2d(x.double(), layer.weight.double(), None, stride, padding, 1, channels)
    torch.testing.assert_close(y.double(), expected, rtol=1e-3, atol=1e-3)
    grad_y = torch.randn_like(y)
    mine = torch.autograd.grad(y, (x, layer.weight), grad_y)
    theirs = torch.autograd.grad(expected, (x, layer.weight), grad_y.double())
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-2, atol=1e-2)
