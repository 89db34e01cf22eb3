"""Handwritten digits, 1,797 images of 8 x 8 pixels that ship with scikit-learn, and a small network for each client."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from airchoir._types import Labels
from airchoir.tasks import Classifier, Data, Inputs, Task


@dataclass(frozen=True)
class Digits(Task):
    """A client sees some 57 images and fits a perceptron with one hidden layer: weak alone, good in a choir.

    There is no official test split: 30 % are held out, stratified, with seed 0.
    """

    name: ClassVar[str] = "digits"
    title: ClassVar[str] = "Digits"
    classes: ClassVar[int] = 10
    packages: ClassVar[tuple[str, ...]] = ("numpy", "scikit-learn")

    hidden_units: int = 32
    epochs: int = 8
    batch: int = 16
    learning_rate: float = 0.01

    def load(self) -> Data:
        _require_sklearn()
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        images, labels = load_digits(return_X_y=True)
        train_x, test_x, train_y, test_y = train_test_split(
            images / 16.0, labels, test_size=0.3, stratify=labels, random_state=0
        )
        return Data(train_x, train_y.astype(np.int64), test_x, test_y.astype(np.int64))

    def fit(self, inputs: Inputs, labels: Labels, *, seed: int) -> Classifier:
        _require_sklearn()
        from sklearn.neural_network import MLPClassifier

        model = MLPClassifier(
            (self.hidden_units,),
            batch_size=min(self.batch, len(labels)),
            learning_rate_init=self.learning_rate,
            random_state=seed,
        )
        for _ in range(self.epochs):  # unlike fit, partial_fit takes the classes that this shard lacks
            model.partial_fit(inputs, labels, classes=np.arange(self.classes))
        classifier: Classifier = model.predict_proba
        return classifier

    def recipe(self) -> dict[str, Any]:
        return {"model": "sklearn MLPClassifier, adam", **asdict(self)}


def _require_sklearn() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise ValueError(
            "the digits task needs scikit-learn, which is not installed; run: pip install 'airchoir[demo]'"
        ) from None
