"""The agenda of a sweep: every item once, in order, in stretches that fit a slice of time."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir import ScoreBank
from airchoir.experiments.sweep.condition import Condition
from airchoir.experiments.sweep.work import Agenda, BankFile, BankParcel, Done, Evaluator, Orders, Stretch, content


@settings(deadline=None)
@given(st.integers(0, 100), st.data())
def test_every_item_is_handed_out_until_it_is_done_and_done_once(items: int, data: st.DataObject) -> None:
    agenda = Agenda(items)
    out: list[Stretch] = []
    done: list[int] = []
    while len(done) < items:
        out += [stretch for _ in range(data.draw(st.integers(1, 3))) for stretch in [next(agenda, None)] if stretch]
        stretch = out.pop(data.draw(st.integers(0, len(out) - 1)))
        count = data.draw(st.integers(1, stretch.stop - stretch.start))
        done += range(stretch.start, stretch.start + count)
        agenda.heard(stretch, Done([()] * count, 0.1))
    assert sorted(done) == list(range(items))
    assert next(agenda, None) is None


def test_stretches_grow_while_they_are_finished_in_time_and_shrink_where_not() -> None:
    agenda = Agenda(100_000)
    sizes = []
    for _ in range(9):
        stretch = next(agenda)
        sizes.append(stretch.stop - stretch.start)
        agenda.heard(stretch, Done([()] * sizes[-1], 1e-4))
    assert sizes == [8, 16, 32, 64, 128, 256, 512, 512, 512]
    stretch = next(agenda)
    agenda.heard(stretch, Done([()], 3.0))
    following = next(agenda)
    assert following.start == stretch.start + 1
    assert following.stop - following.start == 2


@pytest.mark.parametrize(
    ("seconds_each", "cores", "alone", "expected"),
    [
        (1e-4, 8, True, 0),
        (1e-4, 8, False, 1),
        (1e-2, 8, True, 8),
        (1e-2, 2, True, 2),
        (1e-2, 1, True, 0),
        (1e-2, 1, False, 1),
        (2e-3, 64, True, 3),
    ],
)
def test_processes_are_started_for_as_much_work_as_makes_up_for_it(
    seconds_each: float, cores: int, alone: bool, expected: int
) -> None:
    agenda = Agenda(10_000)
    agenda.heard(next(agenda), Done([()] * 8, seconds_each))
    assert agenda.processes(cores, alone=alone) == expected


def test_before_anything_is_known_one_process_is_enough() -> None:
    assert Agenda(10_000).processes(8, alone=True) == 0
    assert Agenda(10_000).processes(8, alone=False) == 1


# --- banks on their way to whoever works


def test_a_bank_file_travels_as_its_name_and_is_checked_when_it_is_read(
    synthetic: Callable[..., ScoreBank], tmp_path: Path
) -> None:
    bank, path = synthetic(), tmp_path / "bank.safetensors"
    bank.save(path)
    here = BankFile(path, content(bank), bank)
    assert here.load() is bank
    there = pickle.loads(pickle.dumps(here))
    assert there.bank is None
    assert content(there.load()) == content(bank)
    synthetic(seed=1).save(path)
    with pytest.raises(
        ValueError, match=r"bank\.safetensors has changed since the sweep began; run the same command again"
    ):
        there.load()


def test_a_parcel_brings_the_whole_bank(synthetic: Callable[..., ScoreBank]) -> None:
    bank = synthetic()
    assert content(pickle.loads(pickle.dumps(BankParcel.of(bank))).load()) == content(bank)


def test_what_tells_banks_apart_is_their_content(synthetic: Callable[..., ScoreBank], tmp_path: Path) -> None:
    bank = synthetic()
    bank.save(tmp_path / "bank.safetensors")
    assert content(ScoreBank.load(tmp_path / "bank.safetensors")) == content(bank)
    assert len({content(synthetic(seed=seed)) for seed in range(3)} | {content(synthetic(validation=False))}) == 4


def test_another_engine_elsewhere_is_refused(synthetic: Callable[..., ScoreBank]) -> None:
    orders = Orders((BankParcel.of(synthetic()),), ((0, Condition()),), engine="another")
    with pytest.raises(ValueError, match="is not that where the sweep was started; install the same here"):
        orders()
    assert isinstance(Orders(orders.banks, orders.items)(), Evaluator)


def test_a_slice_that_is_over_ends_a_stretch_after_one_item_at_least(
    synthetic: Callable[..., ScoreBank], monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = Orders((BankParcel.of(synthetic()),), tuple((0, Condition(snr_db=float(db))) for db in range(9)))
    assert len(orders()(Stretch(2, 7), lambda said: None).outcomes) == 5
    monkeypatch.setattr("airchoir.experiments.sweep.work.SLICE_SECONDS", 0.0)
    assert len(orders()(Stretch(2, 7), lambda said: None).outcomes) == 1
