"""The digits: scikit-learn's images, split as the method says, nothing lost and nothing twice."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from airchoir.registry import lookup
from airchoir.tasks import Data, Task
from airchoir.tasks.digits import Digits


@pytest.fixture(scope="module")
def data() -> Data:
    return Digits().load()


def test_digits_is_found_by_name() -> None:
    assert lookup(Task, "digits") is Digits
    assert (Digits.classes, Digits.title) == (10, "Digits")


def test_every_image_is_in_exactly_one_half_with_its_label(data: Data) -> None:
    images, labels = load_digits(return_X_y=True)
    inputs = np.concatenate([data.train_inputs, data.test_inputs]) * 16.0
    truths = np.concatenate([data.train_labels, data.test_labels])
    ours = sorted((*image, label) for image, label in zip(inputs.tolist(), truths.tolist(), strict=True))
    assert ours == sorted((*image, label) for image, label in zip(images.tolist(), labels.tolist(), strict=True))


def test_the_split_is_stratified_70_to_30(data: Data) -> None:
    assert (len(data.train_labels), len(data.test_labels)) == (1257, 540)
    whole = np.bincount(load_digits().target)
    held_out = np.bincount(data.test_labels)
    assert (abs(held_out - 0.3 * whole) < 1.0).all()


def test_the_split_is_that_of_seed_0(data: Data) -> None:
    labels = load_digits().target
    train, test = train_test_split(np.arange(1797), train_size=0.7, stratify=labels, random_state=0)
    np.testing.assert_array_equal(data.train_labels, labels[train])
    np.testing.assert_array_equal(data.test_labels, labels[test])


def test_pixels_lie_between_0_and_1_and_labels_are_int64(data: Data) -> None:
    for inputs in (data.train_inputs, data.test_inputs):
        assert inputs.min() == 0.0
        assert inputs.max() == 1.0
    assert data.train_labels.dtype == data.test_labels.dtype == np.int64


@pytest.mark.usefixtures("without_sklearn")
def test_without_scikit_learn_one_line_says_what_to_install() -> None:
    with pytest.raises(ValueError, match=r"\A[^\n]*needs scikit-learn[^\n]*pip install 'airchoir\[demo\]'\Z"):
        Digits().load()
