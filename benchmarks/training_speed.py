"""How fast does a client train on images? Lite0 and MobileNetV3-Large by the published recipe, on the GPU if there is one.

Images are 32 x 32 and random, weights too: neither changes the time. Wanted on one H200: 8,430 and 10,800 images a second.
Unlike elsewhere, times are wall times: a GPU's work is nobody's CPU time. Compilation comes before and is not counted.
"""

import time
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from airchoir.tasks import Data
from airchoir.tasks.recipes import ImageRecipe
from airchoir.training.fitter import Epoch, fitter
from benchmarks.answer import Answer, Sample
from benchmarks.banks import SEED

WANTED = {"torchvision:mobilenet_v3_large": 10_800, "timm:tf_efficientnet_lite0": 8_430}
"""Images a second on one H200, by model."""
SHARD = 2_250


def answers(quick: bool) -> Iterator[Answer]:
    if find_spec("torch") is None:
        print("training_speed: skipped, torch is not installed; pip install 'airchoir[train]'")
        return
    import torch

    on_gpu = torch.cuda.is_available()
    for model, rate in WANTED.items():
        library = model.partition(":")[0]
        if find_spec(library) is None:
            print(f"training_speed: {model} skipped, {library} is not installed; pip install 'airchoir[train]'")
            continue
        tiny = ImageRecipe(model, weights="none", epochs=2, batch=32, image_size=64)
        full = ImageRecipe(model, weights="none", epochs=3 if quick else 10)
        yield from of_model(full if on_gpu else tiny, rate if on_gpu else None)


def of_model(recipe: ImageRecipe, rate: int | None) -> Iterator[Answer]:
    """How long an image takes in training, and how long one client takes around its training."""
    shard, test, validation = (SHARD, 10_000, 5_000) if rate else (70, 30, 20)
    rng = np.random.default_rng(SEED)
    data = Data(*images(rng, shard + validation), *images(rng, test), classes=10)
    start = time.perf_counter()
    fits = fitter(recipe, data, np.arange(shard, shard + validation), device="auto")
    fits.fit(np.arange(shard), seed=0, report=lambda epoch: None)
    first = time.perf_counter() - start

    epochs: list[Epoch] = []
    start = time.perf_counter()
    fits.fit(np.arange(shard), seed=1, report=epochs.append)
    whole = time.perf_counter() - start
    rates = [epoch.examples_per_second for epoch in epochs]
    device = fits.provenance()["device"]
    yield Answer(
        f"train {recipe.model}, {recipe.image_size} px, batch {recipe.batch}",
        Sample(tuple(1e6 / each for each in rates), "us/image"),
        limit=1e6 / rate if rate else None,
        note=f"{max(rates):,.0f} images/s at best, {np.median(rates):,.0f} in the median, on {device}",
    )
    around = whole - sum(shard / each for each in rates)
    yield Answer(
        f"start a client of {recipe.model} and score {test + validation:,} images",
        Sample((around,), "s"),
        note=f"the first client, with everything that is made once, took {first:.0f} s, on {device}",
    )


def images(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images and labels."""
    return rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8), rng.integers(0, 10, count)
