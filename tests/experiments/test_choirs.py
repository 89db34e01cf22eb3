"""Choirs: banks grouped by task, evaluated one by one, as well as each test set deserves."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from airchoir import BeliefSum, Scheme, ScoreBank, evaluate
from airchoir.experiments.choirs import Choir, check_any, load_choirs, measure, own_seeds, tolerance_for

MakeBank = Callable[..., ScoreBank]


def saved(bank: ScoreBank, path: Path) -> Path:
    bank.save(path)
    return path


def test_banks_are_grouped_by_the_task_in_their_header_in_the_order_of_first_appearance(
    make_bank: MakeBank, tmp_path: Path
) -> None:
    tasks = ["imdb", "digits", "imdb"]
    paths = []
    for index, task in enumerate(tasks):
        bank = make_bank(seed=index)
        named = ScoreBank(bank.test_scores, bank.test_labels, metadata={"task": task})
        paths.append(saved(named, tmp_path / f"{index}.safetensors"))
    choirs = load_choirs(paths)
    assert [(choir.task, choir.paths) for choir in choirs] == [
        ("imdb", (paths[0], paths[2])),
        ("digits", (paths[1],)),
    ]
    assert [choir.title for choir in choirs] == ["IMDB", "Digits"]


def test_a_bank_without_a_task_belongs_to_its_folder(make_bank: MakeBank, tmp_path: Path) -> None:
    bank = make_bank()
    path = saved(ScoreBank(bank.test_scores, bank.test_labels), tmp_path / "mine" / "bank.safetensors")
    (choir,) = load_choirs([path])
    assert (choir.task, choir.title) == ("mine", "mine")


def test_a_bank_without_a_task_joins_those_that_are_called_after_its_folder(
    make_bank: MakeBank, tmp_path: Path
) -> None:
    bank = make_bank()
    paths = [
        saved(ScoreBank(bank.test_scores, bank.test_labels, metadata=words), tmp_path / "mine" / f"{place}.safetensors")
        for place, words in enumerate(({}, {"task": "mine"}))
    ]
    (choir,) = load_choirs(paths)
    assert (choir.task, choir.paths) == ("mine", tuple(paths))


def test_a_bank_counts_once(make_bank: MakeBank, tmp_path: Path) -> None:
    path = saved(make_bank(), tmp_path / "bank.safetensors")
    (tmp_path / "link.safetensors").symlink_to(path)
    with pytest.raises(ValueError, match=r"link\.safetensors is given twice; give it once"):
        load_choirs([path, tmp_path / "link.safetensors"])


def test_banks_of_one_task_must_be_of_one_shape(make_bank: MakeBank, tmp_path: Path) -> None:
    paths = [saved(make_bank(clients=n), tmp_path / f"{n}.safetensors") for n in (3, 4)]
    with pytest.raises(ValueError, match=r"4\.safetensors has clients 4, but .*3\.safetensors 3; evaluate them one by"):
        load_choirs(paths)


def test_a_measurement_holds_an_estimate_for_every_bank(make_bank: MakeBank) -> None:
    banks = tuple(make_bank(seed=seed) for seed in range(3))
    scheme = Scheme(BeliefSum(), participation=0.5)
    found = measure(scheme, Choir("synthetic", (), banks), tolerance=0.01, seed=3)
    for own, bank, seed in zip(found.estimates, banks, own_seeds(3, 3), strict=True):
        wanted = evaluate(scheme, bank, tolerance=0.01, seed=seed)
        assert (own.macro_f1, own.draws) == (wanted.macro_f1, wanted.draws)
    assert found.pooled.macro_f1 == pytest.approx(np.mean([own.macro_f1 for own in found.estimates]), rel=1e-12)


def test_a_row_is_in_jsons_own_types_and_says_where_it_comes_from(make_bank: MakeBank) -> None:
    choir = Choir("synthetic", (), (make_bank(seed=1), make_bank(seed=2)))
    row = measure(Scheme(), choir).row(method="mine")
    assert (row["method"], row["task"], row["seeds"], row["clients"]) == ("mine", "synthetic", ["1", "2"], 5)
    assert row["scheme"]["privacy"]["epsilon"] == "inf"
    assert isinstance(row["macro_f1"], float)


def test_a_small_test_set_gets_as_much_work_as_a_large_one_and_not_more(make_bank: MakeBank) -> None:
    small, large = make_bank(queries=100), make_bank(queries=12_000, classes=2, clients=2)
    assert tolerance_for(large) == 5e-4  # what evaluate takes by itself
    assert tolerance_for(small) == pytest.approx(5e-3)
    scheme = Scheme(BeliefSum(), participation=0.5)
    found = measure(scheme, Choir("synthetic", (), (small,))).pooled
    assert found.macro_f1_se <= 5e-3
    assert found.draws < evaluate(scheme, small).draws / 20


def test_nobody_is_no_choir() -> None:
    with pytest.raises(ValueError, match=r"^mine needs at least one score bank, got none; airchoir demo makes one$"):
        check_any([], "mine")


def test_any_task_is_part_of_a_files_name_and_no_two_the_same() -> None:
    plain, strange = ["cifar10", "my-task_2"], ["../../x/y", "a b", "a/b", "数字", "ß" * 300, "..", "imdb.v2"]
    words = [Choir(task, (), ()).word for task in (*plain, *strange)]
    assert words[: len(plain)] == plain
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,70}", word) for word in words)
    assert len(set(words)) == len(words)
