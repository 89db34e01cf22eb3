"""Devices by name, and random numbers that come from a seed and leave no trace."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="devices need airchoir[train]; run make test-all")

from airchoir.training.compute import compute_on, reproducible, visible_devices


def test_the_cpu_computes_in_float32() -> None:
    compute = compute_on("cpu")
    assert (compute.device.type, compute.dtype) == ("cpu", torch.float32)
    assert not compute.compiles
    assert not compute.captures
    with compute.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_auto_is_a_gpu_where_there_is_one() -> None:
    assert compute_on("auto").device.type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("device", ["gpu", "cuda:one", "", "cpu:-1", "CUDA"])
def test_unknown_devices_are_refused(device: str) -> None:
    with pytest.raises(ValueError, match=rf"\Adevice must be auto, cpu, cuda or cuda:N, got '{device}'\Z"):
        compute_on(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"\Adevice cuda:1 was asked for, but torch [^\n]* sees no GPU; use cpu or auto\Z"
    ):
        compute_on("cuda:1")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_an_unknown_way_to_launch_kernels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRCHOIR_CUDA", "fast")
    with pytest.raises(ValueError, match=r"\AAIRCHOIR_CUDA must be compiled, graphs, eager, got 'fast'\Z"):
        compute_on("cuda")


def test_what_is_drawn_comes_from_the_seed_and_the_callers_state_stays() -> None:
    compute, state = compute_on("cpu"), torch.get_rng_state()
    drawn = []
    for seed in (1, 1, 2):
        with reproducible(compute, np.random.SeedSequence(seed)):
            assert torch.are_deterministic_algorithms_enabled()
            drawn.append(torch.rand(4))
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.are_deterministic_algorithms_enabled()


def test_devices_that_can_be_seen_are_named_and_the_cpu_is_none() -> None:
    assert len([name for name in visible_devices() if name.startswith("cuda:")]) == torch.cuda.device_count()


def test_without_torch_no_device_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert visible_devices() == []


def test_a_torch_that_cannot_be_loaded_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> int:
        raise OSError("libcudart.so\nis missing")

    monkeypatch.setattr(torch.cuda, "device_count", broken)
    assert visible_devices() == ["torch cannot be loaded (libcudart.so is missing)"]
