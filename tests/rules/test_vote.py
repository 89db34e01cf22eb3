"""Majority voting sends the one-hot of the most probable class."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir import MajorityVote


def test_the_most_probable_class_gets_the_one_vote() -> None:
    scores = np.array([[[0.1, 0.7, 0.2], [0.4, 0.3, 0.3]], [[0.2, 0.2, 0.6], [0.0, 0.0, 1.0]]], dtype="float32")
    expected = [[[0, 1, 0], [1, 0, 0]], [[0, 0, 1], [0, 0, 1]]]
    np.testing.assert_array_equal(MajorityVote().encode(scores), expected)


@pytest.mark.parametrize(
    ("row", "first"),
    [([0.25, 0.25, 0.25, 0.25], 0), ([0.0, 0.5, 0.5, 0.0], 1), ([0.0, 0.0, 0.5, 0.5], 2), ([0.5, 0.0, 0.0, 0.5], 0)],
)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_tie_votes_for_the_first_index(row: list[float], first: int, dtype: str) -> None:
    np.testing.assert_array_equal(MajorityVote().encode(np.array([[row]], dtype=dtype))[0, 0], np.eye(4)[first])


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 20), min_size=2, max_size=8).filter(any))
def test_the_vote_is_pythons_own_first_maximum(counts: list[int]) -> None:
    scores = np.array([[np.array(counts) / sum(counts)]], dtype="float32")
    votes = MajorityVote().encode(scores)[0, 0]
    assert votes.tolist().index(1.0) == counts.index(max(counts))


def test_geometry_is_that_of_two_different_votes() -> None:
    geometry = MajorityVote().geometry(10)
    assert (geometry.sensitivity, geometry.largest_norm, geometry.smallest_inner_product) == (math.sqrt(2), 1.0, 0.0)
