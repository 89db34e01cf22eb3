"""A client's perceptron, by scikit-learn."""

import json
import time

import numpy as np

from airchoir import provenance
from airchoir._types import Indices
from airchoir.tasks import Data
from airchoir.tasks.recipes import PerceptronRecipe
from airchoir.training.fitter import ClassScores, Epoch, Fitter, Report


class PerceptronFitter(Fitter):
    """Fits in well under a second, on the CPU."""

    def __init__(self, recipe: PerceptronRecipe, data: Data, validation: Indices, *, device: str) -> None:
        if device not in ("auto", "cpu"):
            raise ValueError(f"a perceptron is fitted on the CPU, got device {device!r}; give auto or cpu")
        self._recipe = recipe
        self._data = data
        self._validation = validation

    def fit(self, shard: Indices, *, seed: int, report: Report) -> tuple[ClassScores, ClassScores]:
        from sklearn.neural_network import MLPClassifier

        recipe, data = self._recipe, self._data
        inputs, labels = data.train_inputs[shard], data.train_labels[shard]
        model = MLPClassifier(
            (recipe.hidden_units,),
            batch_size=min(recipe.batch, len(labels)),
            learning_rate_init=recipe.learning_rate,
            random_state=seed,
        )
        classes = np.arange(data.classes)
        for epoch in range(1, recipe.epochs + 1):
            start = time.perf_counter()
            model.partial_fit(inputs, labels, classes=classes)  # unlike fit, it takes classes that a shard lacks
            seconds = time.perf_counter() - start
            report(Epoch(epoch, recipe.epochs, float(model.loss_), len(labels) / seconds))
        test = model.predict_proba(data.test_inputs).astype(np.float32)
        return test, model.predict_proba(data.train_inputs[self._validation]).astype(np.float32)

    def provenance(self) -> dict[str, str]:
        return {
            "model": "sklearn MLPClassifier, adam",
            "weights": "none",
            "data_sha256": self._data.fingerprint,
            "device": "cpu",
            "versions": json.dumps(provenance.versions("numpy", "scikit-learn")),
        }
