"""Belief summation sends the class probabilities themselves."""

import math
from fractions import Fraction

import numpy as np
import pytest

from airchoir import BeliefSum


def test_probabilities_are_sent_as_they_are() -> None:
    scores = np.array([[[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]], dtype="float32")
    np.testing.assert_array_equal(BeliefSum().encode(scores), scores)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rows_are_divided_by_their_sum_whatever_the_rounding_on_disk(dtype: str) -> None:
    scores = np.random.default_rng(0).dirichlet(np.full(10, 0.3), (4, 50)).astype(dtype)
    off = np.abs(scores.astype(np.float64).sum(axis=-1) - 1.0)
    assert off.max() > 1e-8, "the rows must be off for this test to say anything"
    symbols = BeliefSum().encode(scores)
    assert np.abs(symbols.sum(axis=-1) - 1.0).max() < 1e-15 * 10
    for client, query in [(0, 0), (1, 7), (3, 49)]:
        exact = [Fraction(float(value)) for value in scores[client, query]]
        expected = [float(value / sum(exact)) for value in exact]
        np.testing.assert_allclose(symbols[client, query], expected, rtol=1e-15)


def test_the_largest_row_a_bank_accepts_has_norm_one_not_more() -> None:
    too_long = np.array([[[1.0009765625, 0.0]]], dtype="float16")  # one unit in the last place above 1
    assert np.linalg.norm(BeliefSum().encode(too_long)) == 1.0


def test_geometry_is_that_of_the_simplex() -> None:
    geometry = BeliefSum().geometry(10)
    assert (geometry.sensitivity, geometry.largest_norm, geometry.smallest_inner_product) == (math.sqrt(2), 1.0, 0.0)


def test_a_class_nobody_believes_in_is_sent_as_zero() -> None:
    assert BeliefSum().encode(np.array([[[0.75, 0.25, 0.0]]], dtype="float16"))[0, 0, 2] == 0.0
