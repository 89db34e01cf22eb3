"""Who fits what, and where."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest

from airchoir.tasks import Data
from airchoir.tasks.recipes import ImageRecipe, PerceptronRecipe, Recipe, TextRecipe
from airchoir.training.fitter import Epoch, check_installed, fitter
from airchoir.training.perceptron import PerceptronFitter

DATA = Data(np.eye(12) * 5.0, np.arange(12) % 3, np.eye(12)[:5], np.arange(5) % 3, classes=3)
VALIDATION = np.array([10, 11])


def test_a_perceptron_is_fitted_and_tells_every_epoch() -> None:
    one = fitter(PerceptronRecipe(epochs=3), DATA, VALIDATION)
    assert isinstance(one, PerceptronFitter)
    seen: list[Epoch] = []
    test, validation = one.fit(np.arange(10), seed=0, report=seen.append)
    assert (test.shape, validation.shape) == ((5, 3), (2, 3))
    assert test.dtype == validation.dtype == np.float32
    assert [(each.epoch, each.epochs) for each in seen] == [(1, 3), (2, 3), (3, 3)]
    assert one.provenance()["data_sha256"] == DATA.fingerprint


@pytest.mark.parametrize("device", ["cuda", "tpu"])
def test_a_perceptron_has_no_use_for_a_gpu(device: str) -> None:
    with pytest.raises(ValueError, match=rf"fitted on the CPU, got device '{device}'"):
        fitter(PerceptronRecipe(), DATA, VALIDATION, device=device)


def test_a_recipe_that_nobody_registered_for_is_named() -> None:
    @dataclass(frozen=True)
    class Novel(Recipe):
        pass

    with pytest.raises(TypeError, match="nothing fits a Novel"):
        fitter(Novel(), DATA, VALIDATION)


@pytest.mark.parametrize("recipe", [ImageRecipe(), TextRecipe()], ids=lambda recipe: type(recipe).__name__)
def test_without_torch_one_line_says_what_to_install(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match=r"\Atraining needs torch, [^\n]*pip install 'airchoir\[train\]'\Z"):
        fitter(recipe, DATA, VALIDATION)


@pytest.mark.parametrize("recipe", [ImageRecipe(), TextRecipe()], ids=lambda recipe: type(recipe).__name__)
def test_missing_torch_is_told_before_there_are_any_data(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match=r"needs torch, [^\n]*run: pip install 'airchoir\[train\]'\Z"):
        check_installed(recipe)
    check_installed(PerceptronRecipe())
