"""A client's image classifier: the published recipe to the letter, the same from the same seed, whoever came before."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training image classifiers needs airchoir[train]; run make test-all")
pytest.importorskip("torchvision", reason="needs airchoir[train]; run make test-all")
pytest.importorskip("timm", reason="needs airchoir[train]; run make test-all")

from airchoir.tasks import Data
from airchoir.tasks.recipes import ImageRecipe
from airchoir.training.compute import compute_on
from airchoir.training.fitter import Epoch, Fitter, fitter
from airchoir.training.images import Trainer, cosine

CLASSES, TRAINING, VALIDATING, TESTING = 4, 200, 40, 60
RECIPE = ImageRecipe("timm:test_efficientnet", "none", "plain", epochs=4, batch=32, learning_rate=0.05, image_size=32)
CPU = compute_on("cpu")


def nothing(epoch: Epoch) -> None:
    """Reports to nobody."""


@pytest.fixture(scope="module")
def data() -> Data:
    """Noise, in one of four colours."""
    rng = np.random.default_rng(0)
    colours = np.array([[160, 60, 60], [60, 160, 60], [60, 60, 160], [150, 150, 60]])

    def split(size: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, CLASSES, size)
        noise = rng.normal(0.0, 40.0, (size, 24, 24, 3))
        return np.clip(colours[labels][:, None, None] + noise, 0, 255).astype(np.uint8), labels

    return Data(*split(TRAINING + VALIDATING), *split(TESTING), classes=CLASSES)


VALIDATION = np.arange(TRAINING, TRAINING + VALIDATING)
SHARD = np.arange(TRAINING)


def fits(data: Data, recipe: ImageRecipe = RECIPE) -> Fitter:
    return fitter(recipe, data, VALIDATION, device="cpu")


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    return float(np.mean(scores.argmax(axis=1) == labels))


@pytest.mark.parametrize("loss", ["plain", "published"])
@pytest.mark.parametrize("model", ["timm:test_efficientnet", "torchvision:shufflenet_v2_x0_5"])
def test_a_client_learns_its_images(data: Data, model: str, loss: str) -> None:
    test, validation = fits(data, replace(RECIPE, model=model, loss=loss, epochs=8)).fit(SHARD, seed=1, report=nothing)
    assert accuracy(test, data.test_labels) > 0.8
    assert accuracy(validation, data.train_labels[VALIDATION]) > 0.8


@pytest.mark.parametrize("model", ["timm:test_vit", "timm:test_resnet", "torchvision:mobilenet_v3_small"])
def test_scores_are_probabilities_in_float32(data: Data, model: str) -> None:
    fit = fits(data, replace(RECIPE, model=model, epochs=1)).fit(SHARD[:70], seed=1, report=nothing)
    for scores, size in zip(fit, (TESTING, VALIDATING), strict=True):
        assert scores.shape == (size, CLASSES)
        assert scores.dtype == np.float32
        assert scores.min() >= 0.0
        np.testing.assert_allclose(scores.sum(axis=1), 1.0, atol=1e-6)


def test_a_client_is_the_same_to_the_bit_whoever_was_fitted_before(data: Data) -> None:
    one = fits(data)
    first = one.fit(SHARD[:90], seed=1, report=nothing)
    one.fit(SHARD[90:], seed=2, report=nothing)
    again, other = one.fit(SHARD[:90], seed=1, report=nothing), fits(data).fit(SHARD[:90], seed=1, report=nothing)
    for index in range(2):
        np.testing.assert_array_equal(first[index], again[index])
        np.testing.assert_array_equal(first[index], other[index])


def test_dropout_too_comes_from_the_seed_and_the_callers_random_numbers_stay(data: Data) -> None:
    one = fits(data, replace(RECIPE, model="torchvision:mobilenet_v3_small", epochs=1))
    state = torch.get_rng_state()
    first = one.fit(SHARD[:70], seed=0, report=nothing)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.are_deterministic_algorithms_enabled()
    torch.manual_seed(123)
    np.testing.assert_array_equal(one.fit(SHARD[:70], seed=0, report=nothing)[0], first[0])


def test_another_seed_is_another_model(data: Data) -> None:
    one = fits(data, replace(RECIPE, epochs=1))
    assert not np.array_equal(*(one.fit(SHARD, seed=seed, report=nothing)[0] for seed in (0, 1)))


def test_a_class_the_client_has_never_seen_still_has_its_score(data: Data) -> None:
    seen = np.flatnonzero(data.train_labels[:TRAINING] < 2)
    test, _ = fits(data).fit(seen, seed=1, report=nothing)
    assert test.shape == (TESTING, CLASSES)
    assert set(test.argmax(axis=1)) <= {0, 1}


@pytest.mark.parametrize("size", [1, 7])
def test_a_shard_smaller_than_a_batch_works(data: Data, size: int) -> None:
    test, _ = fits(data, replace(RECIPE, epochs=1, image_size=64)).fit(SHARD[:size], seed=1, report=nothing)
    assert np.isfinite(test).all()


def test_progress_tells_every_epoch_its_loss_and_its_speed(data: Data) -> None:
    seen: list[Epoch] = []
    fits(data).fit(SHARD, seed=1, report=seen.append)
    assert [(each.epoch, each.epochs) for each in seen] == [(epoch, 4) for epoch in range(1, 5)]
    assert seen[-1].loss < seen[0].loss
    assert all(each.examples_per_second > 0 for each in seen)


def test_provenance_names_model_weights_data_and_device(data: Data) -> None:
    told = fits(data).provenance()
    assert told["model"] == "timm:test_efficientnet"
    assert (told["weights"], told["weights_sha256"]) == ("none", "none")
    assert told["data_sha256"] == data.fingerprint
    assert told["device"].startswith("cpu")
    assert all(isinstance(value, str) for value in told.values())


# --- the recipe against its own second implementation


def linear_model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, CLASSES))


def literal(model: torch.nn.Module, inputs: torch.Tensor, labels: torch.Tensor, recipe: ImageRecipe) -> None:
    """The recipe as METHOD.md says it, with torch's own optimiser and schedule."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=recipe.epochs, eta_min=0.0)
    rng = np.random.default_rng(5)
    for _ in range(recipe.epochs):
        order = rng.permutation(len(labels))
        for start in range(0, len(labels), recipe.batch):
            chosen = torch.from_numpy(order[start : start + recipe.batch])
            outputs = torch.softmax(model(inputs[chosen]), dim=1)
            optimiser.zero_grad()
            torch.nn.CrossEntropyLoss()(outputs, labels[chosen]).backward()
            optimiser.step()
        schedule.step()


def recorded(gather: Callable[[torch.Tensor], torch.Tensor], seen: list[np.ndarray]) -> Callable[..., torch.Tensor]:
    def spy(indices: torch.Tensor) -> torch.Tensor:
        seen.append(indices.numpy().copy())
        return gather(indices)

    return spy


def test_training_is_the_published_recipe_step_by_step() -> None:
    recipe = ImageRecipe(epochs=5, batch=16)
    assert (recipe.learning_rate, recipe.momentum, recipe.weight_decay, recipe.loss) == (0.1, 0.9, 5e-4, "published")
    torch.manual_seed(0)
    inputs, labels = torch.randn(50, 3, 8, 8), torch.arange(50) % CLASSES
    ours, theirs = linear_model(), linear_model()
    seen: list[np.ndarray] = []
    trainer = Trainer(ours, recipe, CPU, recorded(lambda indices: inputs[indices], seen), labels)
    fresh = copy.deepcopy(ours)
    for _ in range(2):  # the second client finds no trace of the first
        trainer.get_ready_for(50)
        trainer.restart(fresh)
        trainer.run(np.arange(50), np.random.default_rng(5), nothing)
    literal(theirs, inputs, labels, recipe)
    for mine, reference in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, reference, rtol=1e-5, atol=1e-6)
    assert [len(batch) for batch in seen] == [16, 16, 16, 2] * 10, "the last, smaller batch is kept"
    for epoch in range(10):
        np.testing.assert_array_equal(np.sort(np.concatenate(seen[4 * epoch : 4 * epoch + 4])), np.arange(50))


def test_the_learning_rate_falls_along_a_cosine_to_0_once_an_epoch() -> None:
    rates = [cosine(0.1, epoch, 50) for epoch in range(50)]
    assert rates[0] == 0.1
    assert rates[25] == pytest.approx(0.05)
    assert 0.0 < rates[-1] < 0.1 * (math.pi / 100) ** 2
    assert all(later < earlier for earlier, later in pairwise(rates))


# --- on a GPU

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@on_gpu
@pytest.mark.parametrize("speed", ["eager", "graphs", "compiled"])
def test_on_a_gpu_clients_learn_however_kernels_are_launched(
    data: Data, speed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRCHOIR_CUDA", speed)
    one = fitter(replace(RECIPE, epochs=24), data, VALIDATION, device="cuda")  # the CPU's learn in as many
    for shard in (SHARD[:112], SHARD[60:], SHARD):  # other last batches, recorded as they come
        test, _ = one.fit(shard, seed=1, report=nothing)
        assert accuracy(test, data.test_labels) > 0.8


@on_gpu
def test_on_a_gpu_recorded_steps_do_what_plain_ones_do() -> None:
    torch.manual_seed(0)
    inputs, labels = torch.randn(50, 3, 8, 8, device="cuda"), torch.arange(50, device="cuda") % CLASSES
    recipe = ImageRecipe(epochs=5, batch=16)
    weights = []
    for speed in ("eager", "graphs", "compiled"):
        compute = replace(compute_on("cuda"), speed=speed, dtype=torch.float32)
        model = linear_model().cuda()
        trainer = Trainer(model, recipe, compute, lambda indices: inputs.index_select(0, indices), labels)
        for _ in range(2):
            trainer.get_ready_for(50)
            trainer.restart(linear_model())
            trainer.run(np.arange(50), np.random.default_rng(5), nothing)
        weights.append(model[1].weight.detach().cpu())
    reference = linear_model()
    literal(reference, inputs.cpu(), labels.cpu(), recipe)
    for each in weights:
        torch.testing.assert_close(each, reference[1].weight.detach(), rtol=1e-3, atol=1e-4)
