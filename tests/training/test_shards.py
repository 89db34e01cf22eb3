"""Who holds what: every example is in the validation set or in exactly one of equal shards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.training.shards import split, stratified


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


# --- shards skewed by label


@st.composite
def skewed(draw: st.DrawFn) -> tuple[int, int, float, int]:
    examples, clients = draw(sizes())
    skew = draw(st.one_of(st.floats(1e-3, 1e3), st.floats(0.0, exclude_min=True, allow_infinity=False)))
    return examples, clients, skew, draw(st.integers(1, 12))


@settings(deadline=None, derandomize=True)
@given(skewed(), st.integers(0, 2**40))
def test_every_example_is_used_exactly_once_however_skewed(case: tuple[int, int, float, int], seed: int) -> None:
    examples, clients, skew, classes = case
    labels = np.random.default_rng(seed).integers(0, classes, examples)
    parts, equal = (split(examples, clients, seed=seed, labels=labels, skew=value) for value in (skew, None))
    used = np.concatenate([parts.validation, *parts.shards])
    np.testing.assert_array_equal(np.sort(used), np.arange(examples))
    assert len(parts.shards) == clients
    assert min(map(len, parts.shards)) >= 1
    np.testing.assert_array_equal(parts.validation, equal.validation)


LABELS = np.random.default_rng(1).integers(0, 10, 20_000)


def largest_shares(skew: float, seed: int = 0) -> np.ndarray:
    """The share of its most frequent class in every client's shard."""
    shards = split(len(LABELS), 20, seed=seed, labels=LABELS, skew=skew).shards
    return np.array([np.bincount(LABELS[shard], minlength=10).max() / len(shard) for shard in shards])


def test_the_smaller_alpha_the_more_a_client_holds_of_one_class() -> None:
    means = [largest_shares(skew).mean() for skew in (0.03, 0.3, 3.0, 300.0)]
    assert means == sorted(means, reverse=True)
    assert means[0] > 0.7
    assert means[-1] < 0.13


def test_the_shares_of_a_class_follow_the_law_of_dirichlet() -> None:
    """A share has mean 1/n and variance (n - 1) / (n^2 (n alpha + 1)); within 4 standard errors over 400 draws."""
    clients, skew, shares = 5, 0.7, []
    labels = np.zeros(10_000, dtype=np.int64)
    for seed in range(400):
        first = split(10_000, clients, seed=seed, labels=labels, skew=skew).shards[0]
        shares.append(len(first) / 9_000)
    drawn, variance = np.array(shares), (clients - 1) / (clients**2 * (clients * skew + 1))
    assert abs(drawn.mean() - 1 / clients) < 4 * np.sqrt(variance / 400)
    squares = (drawn - 1 / clients) ** 2
    assert abs(squares.mean() - variance) < 4 * squares.std() / np.sqrt(400)


def test_without_skew_labels_change_nothing() -> None:
    plain, labelled = split(100, 7, seed=3), split(100, 7, seed=3, labels=LABELS[:100])
    for one, other in zip(plain.shards, labelled.shards, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_seed_names_one_skewed_split_and_another_seed_another() -> None:
    assert np.array_equal(largest_shares(0.3), largest_shares(0.3))
    assert not np.array_equal(largest_shares(0.3), largest_shares(0.3, seed=1))


@pytest.mark.parametrize("skew", [0.0, -1.0, float("nan"), float("inf")])
def test_a_skew_that_is_no_parameter_of_a_dirichlet_law_is_refused(skew: float) -> None:
    with pytest.raises(ValueError, match=r"\Askew must be positive and finite, got "):
        split(100, 5, seed=0, labels=LABELS[:100], skew=skew)


@pytest.mark.parametrize("labels", [None, LABELS[:99]])
def test_skew_without_the_labels_of_all_is_refused(labels: np.ndarray | None) -> None:
    with pytest.raises(ValueError, match=r"\Askewed shards need the labels of all 100 examples, got (none|99); "):
        split(100, 5, seed=0, labels=labels, skew=0.3)


# --- stratified shards


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=80), st.data(), st.integers(0, 2**40))
def test_stratified_shards_share_out_every_class_evenly(
    given_labels: list[int], data: st.DataObject, seed: int
) -> None:
    labels = np.array(given_labels)
    parts = data.draw(st.integers(1, len(labels)))
    shards = stratified(labels, parts, rng=np.random.default_rng(seed))
    np.testing.assert_array_equal(np.sort(np.concatenate(shards)), np.arange(len(labels)))
    counts = np.array([np.bincount(labels[shard], minlength=5) for shard in shards])
    assert len(counts) == parts
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert np.ptp(counts.sum(axis=1)) <= 1


def test_stratified_shards_are_drawn_and_none_may_be_empty() -> None:
    labels = np.repeat([0, 1], 50)
    one, other = (stratified(labels, 3, rng=np.random.default_rng(seed))[0] for seed in (0, 1))
    assert not np.array_equal(one, other)
    with pytest.raises(ValueError, match="n_clients must be from 1 to n_samples=100, got 101; no shard may be empty"):
        stratified(labels, 101, rng=np.random.default_rng(0))
