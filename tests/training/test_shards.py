"""Who holds what: every example is in the validation set or in exactly one of equal shards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.training.shards import split


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    examples = draw(st.integers(1, 2000))
    return examples, draw(st.integers(1, examples - examples // 10))


@settings(deadline=None, derandomize=True)
@given(sizes(), st.integers(0, 2**40))
def test_every_example_is_used_exactly_once(size: tuple[int, int], seed: int) -> None:
    examples, clients = size
    parts = split(examples, clients, seed=seed)
    used = np.concatenate([parts.validation, *parts.shards])
    np.testing.assert_array_equal(np.sort(used), np.arange(examples))


@settings(deadline=None, derandomize=True)
@given(sizes(), st.integers(0, 2**40))
def test_shards_are_equal_to_within_one_example_and_a_tenth_validates(size: tuple[int, int], seed: int) -> None:
    examples, clients = size
    parts = split(examples, clients, seed=seed)
    lengths = [len(shard) for shard in parts.shards]
    assert len(lengths) == clients
    assert min(lengths) >= 1
    assert max(lengths) - min(lengths) <= 1
    assert abs(len(parts.validation) - examples / 10) < 1


@settings(deadline=None, derandomize=True)
@given(sizes(), sizes(), st.integers(0, 2**40))
def test_the_shuffle_and_the_validation_set_do_not_depend_on_how_many_share(
    size: tuple[int, int], other: tuple[int, int], seed: int
) -> None:
    examples, clients = size
    one, more = split(examples, 1, seed=seed), split(examples, clients, seed=seed)
    np.testing.assert_array_equal(one.validation, more.validation)
    np.testing.assert_array_equal(one.shards[0], np.concatenate(more.shards))


def test_a_seed_names_one_split_and_another_seed_another() -> None:
    first, again, other = split(1000, 20, seed=0), split(1000, 20, seed=0), split(1000, 20, seed=1)
    for part, same, different in zip(
        [first.validation, *first.shards],
        [again.validation, *again.shards],
        [other.validation, *other.shards],
        strict=True,
    ):
        np.testing.assert_array_equal(part, same)
        assert set(part) != set(different)


def test_the_examples_are_shuffled() -> None:
    validation = split(10_000, 1, seed=0).validation
    mean, std = 9_999 / 2, 10_000 / np.sqrt(12 * 1000)  # of the mean of 1000 positions
    assert abs(validation.mean() - mean) < 4 * std
    assert not np.array_equal(validation, np.sort(validation))


def test_the_papers_split_of_50000_images_gives_20_shards_of_2250() -> None:
    parts = split(50_000, 20, seed=0)
    assert [len(shard) for shard in parts.shards] == [2250] * 20
    assert len(parts.validation) == 5000


@pytest.mark.parametrize("clients", [0, -1, 91, 100, 1000])
def test_a_split_with_an_empty_shard_is_refused_with_the_largest_number(clients: int) -> None:
    with pytest.raises(ValueError, match=rf"\Aclients must be from 1 to 90, .*got {clients}; ") as caught:
        split(100, clients, seed=0)
    assert "\n" not in str(caught.value)
