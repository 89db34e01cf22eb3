"""Images as a model wants them: torchvision's own resizing is the second opinion."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="preparing images needs airchoir[train]; run make test-all")
torchvision = pytest.importorskip("torchvision", reason="needs airchoir[train]; run make test-all")

from airchoir.training.compute import compute_on
from airchoir.training.pictures import Preparation, pictures

CPU = compute_on("cpu")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def some_images(count: int, size: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (count, size, size, 3), dtype=np.uint8)


@pytest.mark.parametrize(("size", "wanted"), [(32, 224), (28, 64), (64, 24), (32, 32)])
def test_resizing_is_bilinear_and_antialiased_and_the_normalisation_the_weights_own(size: int, wanted: int) -> None:
    from torchvision.transforms.v2 import functional

    images = some_images(3, size)
    made = pictures(images, Preparation(wanted, MEAN, STD), CPU)(torch.tensor([2, 0]))
    floats = torch.from_numpy(images[[2, 0]]).permute(0, 3, 1, 2).float() / 255.0
    reference = functional.normalize(functional.resize(floats, [wanted, wanted], antialias=True), MEAN, STD)
    torch.testing.assert_close(made, reference, rtol=0.0, atol=1e-4)
    assert made.dtype == torch.float32
    assert made.is_contiguous(memory_format=torch.channels_last)


def test_black_and_white_become_minus_1_and_1_by_mean_and_std_of_a_half() -> None:
    images = np.stack([np.zeros((8, 8, 3), np.uint8), np.full((8, 8, 3), 255, np.uint8)])
    made = pictures(images, Preparation(16, (0.5,) * 3, (0.5,) * 3), CPU)(torch.tensor([0, 1]))
    torch.testing.assert_close(made, torch.tensor([-1.0, 1.0])[:, None, None, None].expand(2, 3, 16, 16))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_resident_images_are_those_of_the_cpu_to_bfloat16() -> None:
    images = some_images(5, 32)
    preparation, chosen = Preparation(64, MEAN, STD), torch.tensor([4, 1])
    made = pictures(images, preparation, compute_on("cuda"))(chosen.cuda())
    assert made.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(made.float().cpu(), pictures(images, preparation, CPU)(chosen), rtol=0.01, atol=0.01)
