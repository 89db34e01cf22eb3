"""Training: clients weak alone and strong together, the same from the same seed, with all of their provenance."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

import airchoir
from airchoir import BestClient, Scheme, ScoreBank, evaluate, provenance
from airchoir.tasks.digits import Digits
from airchoir.training import train
from airchoir.training.shards import split

DigitsBank = Callable[[int], ScoreBank]
PAPERS_SEEDS = range(5)
ARRAYS = ("test_scores", "test_labels", "val_scores", "val_labels")


def same(one: ScoreBank, other: ScoreBank, *names: str) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("seed", PAPERS_SEEDS)
def test_every_client_alone_is_right_60_to_85_percent_of_the_time(digits_bank: DigitsBank, seed: int) -> None:
    bank = digits_bank(seed)
    alone = [accuracy_score(bank.test_labels, scores.argmax(axis=-1)) for scores in bank.test_scores]
    assert len(alone) == 20
    assert min(alone) >= 0.60
    assert max(alone) <= 0.85


@pytest.mark.parametrize("seed", PAPERS_SEEDS)
def test_the_ensemble_is_visibly_better_than_the_best_client_and_than_any(digits_bank: DigitsBank, seed: int) -> None:
    bank = digits_bank(seed)
    together, best = evaluate(Scheme(), bank), evaluate(Scheme(access=BestClient()), bank)
    assert together.macro_f1 > best.macro_f1 + 4 * np.hypot(together.macro_f1_std, best.macro_f1_std)
    votes = np.zeros((bank.queries, 10))
    for scores in bank.test_scores:
        votes[np.arange(bank.queries), scores.argmax(axis=-1)] += 1
    alone = [accuracy_score(bank.test_labels, scores.argmax(axis=-1)) for scores in bank.test_scores]
    assert accuracy_score(bank.test_labels, votes.argmax(axis=-1)) > max(alone) + 0.02


def test_the_same_seeds_give_the_same_bank() -> None:
    one, again = (train(Digits(), clients=2, seed=7, split_seed=3) for _ in range(2))
    assert same(one, again, *ARRAYS)
    assert one.metadata == again.metadata


def test_another_seed_gives_other_models_on_the_same_shards(digits_bank: DigitsBank) -> None:
    one, other = digits_bank(0), digits_bank(1)
    assert same(one, other, "test_labels", "val_labels")
    assert one.metadata["shard_sizes"] == other.metadata["shard_sizes"]
    for client in range(20):
        assert not np.array_equal(one.test_scores[client], other.test_scores[client])


def test_another_split_seed_gives_other_shards_and_the_same_test_set() -> None:
    one, other = (train(Digits(), clients=2, split_seed=split_seed) for split_seed in (0, 1))
    assert same(one, other, "test_labels")
    assert not same(one, other, "val_labels")
    assert not same(one, other, "test_scores")


def test_no_two_clients_are_the_same_model(digits_bank: DigitsBank) -> None:
    assert len({scores.tobytes() for scores in digits_bank(0).test_scores}) == 20


def test_the_sets_have_the_sizes_that_the_method_fixes(digits_bank: DigitsBank) -> None:
    bank = digits_bank(0)
    assert bank.test_scores.shape == (20, 540, 10)  # 30 % of 1,797
    assert bank.val_scores is not None
    assert bank.val_scores.shape == (20, 125, 10)  # the last 10 % of 1,257
    sizes = json.loads(bank.metadata["shard_sizes"])
    assert sum(sizes) == 1257 - 125
    assert max(sizes) - min(sizes) <= 1


def test_shards_that_lack_classes_still_give_probabilities_of_every_class() -> None:
    labels = Digits().load().train_labels
    held = [set(labels[shard]) for shard in split(len(labels), 40, seed=0).shards]
    lacking = [client for client, classes in enumerate(held) if len(classes) < 10]
    assert lacking, "40 shards of some 28 images hold all classes; cut finer"
    bank = train(Digits(), clients=40)
    assert bank.test_scores.shape == (40, 540, 10)
    for client in lacking:
        found = set(bank.test_scores[client].argmax(axis=-1))
        assert found <= held[client], "it never saw the others"
        assert len(found) > 5


def test_a_bank_says_where_it_comes_from(digits_bank: DigitsBank) -> None:
    metadata = digits_bank(3).metadata
    assert metadata["task"] == "digits"
    assert (metadata["seed"], metadata["split_seed"]) == ("3", "0")
    versions = json.loads(metadata["versions"])
    assert versions == provenance.versions("numpy", "scikit-learn")
    assert versions["airchoir"] == airchoir.__version__
    assert metadata["machine"] == provenance.machine()
    assert metadata["commit"].split("-")[0] == provenance.commit().split("-")[0]
    recipe = json.loads(metadata["recipe"])
    assert {"hidden_units", "epochs", "batch", "learning_rate"} <= set(recipe)
    assert len(json.loads(metadata["shard_sizes"])) == 20


def test_a_trained_bank_survives_the_disk(digits_bank: DigitsBank, tmp_path: object) -> None:
    bank, path = digits_bank(0), f"{tmp_path}/seed-0.safetensors"
    bank.save(path)
    loaded = ScoreBank.load(path)
    assert same(bank, loaded, *ARRAYS)
    assert loaded.metadata == {**bank.metadata, "format": "1"}


def test_progress_counts_the_clients_to_the_last() -> None:
    seen: list[tuple[int, int]] = []
    train(Digits(), clients=3, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("clients", [0, -5, 1133])
def test_more_clients_than_examples_or_none_are_refused(clients: int) -> None:
    with pytest.raises(ValueError, match=rf"\Aclients must be from 1 to 1132, .*got {clients}; "):
        train(Digits(), clients=clients)
