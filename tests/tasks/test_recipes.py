"""Recipes are plain values: the method's settings by default, sound whatever is replaced."""

from dataclasses import asdict, fields, replace

import pytest

from airchoir.registry import plugins
from airchoir.tasks import Task
from airchoir.tasks.recipes import ImageRecipe, PerceptronRecipe, Recipe, TextRecipe

RECIPES = (ImageRecipe(), TextRecipe(), PerceptronRecipe())


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "fashion_mnist"])
def test_images_are_learnt_as_the_method_says(name: str) -> None:
    assert asdict(plugins(Task)[name]().recipe()) == {
        "model": "torchvision:mobilenet_v3_large",
        "weights": "imagenet",
        "loss": "published",
        "epochs": 50,
        "batch": 128,
        "learning_rate": 0.1,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "image_size": 224,
    }


def test_text_is_learnt_as_the_method_says() -> None:
    recipe = plugins(Task)["imdb"]().recipe()
    assert (recipe.model, recipe.loss) == ("transformers:distilbert-base-uncased", "plain")
    assert (recipe.epochs, recipe.batch, recipe.learning_rate) == (3, 16, 5e-5)
    assert (recipe.clip, recipe.max_tokens) == (1.0, 512)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)
def test_no_count_may_be_0(recipe: Recipe) -> None:
    counts = [field.name for field in fields(recipe) if isinstance(getattr(recipe, field.name), int)]
    assert {"epochs", "batch"} <= set(counts)
    for name in counts:
        with pytest.raises(ValueError, match=rf"\A{name} must be at least 1, got 0\Z"):
            replace(recipe, **{name: 0})


@pytest.mark.parametrize("rate", [0.0, -0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: type(recipe).__name__)
def test_the_learning_rate_is_positive_and_finite(recipe: Recipe, rate: float) -> None:
    with pytest.raises(ValueError, match=r"\Alearning_rate must be positive and finite, got "):
        replace(recipe, learning_rate=rate)


@pytest.mark.parametrize("recipe", RECIPES[:2], ids=lambda recipe: type(recipe).__name__)
def test_an_unknown_loss_is_refused(recipe: Recipe) -> None:
    with pytest.raises(ValueError, match=r"\Aloss must be published or plain, got 'hinge'\Z"):
        replace(recipe, loss="hinge")
