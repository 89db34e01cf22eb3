"""The queue: interrupt it anywhere and go on, nothing is trained twice, the banks are those of an uninterrupted run."""

import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from airchoir import ScoreBank
from airchoir.tasks.digits import Digits
from airchoir.tasks.recipes import ImageRecipe, PerceptronRecipe
from airchoir.training import queue as queue_module
from airchoir.training import train
from airchoir.training.plan import Plan
from airchoir.training.queue import Event, run_queue
from airchoir.training.results import Results
from airchoir.training.setting import Client, Setting
from airchoir.training.telling import JsonLog, Lines

MakePlan = Callable[..., Plan]
Queue = Callable[..., Any]
ALL = [(seed, client) for seed in (0, 1) for client in range(3)]
BANKS = [f"banks/tiny/seed-{seed}.safetensors" for seed in (0, 1)]


def finals(out: Path) -> dict[str, bytes]:
    """Every file below that bears its final name, with its content."""
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.safetensors"))}


@pytest.fixture
def whole(plan: MakePlan, queue: Queue, tmp_path: Path) -> Path:
    """The folder of an uninterrupted run."""
    queue(plan(), tmp_path / "whole")
    return tmp_path / "whole"


def results(plan: Plan, out: Path) -> Results:
    return Results(out, Setting.of(plan))


# --- an undisturbed run


def test_every_client_of_every_seed_is_fitted_once_and_makes_a_bank(
    plan: MakePlan, queue: Queue, tmp_path: Path
) -> None:
    ran = queue(plan(), tmp_path)
    assert ran.fits == 6
    assert ran.said("started") == ran.said("finished") == ALL
    assert Counter(ran.said("epoch")) == dict.fromkeys(ALL, 2)
    assert ran.said("bank") == [(0, None), (1, None)]
    assert ran.said("kept") == []
    assert (ran.outcome.fitted, ran.outcome.kept, ran.outcome.left) == (6, 0, 0)
    assert ran.outcome.banks == [tmp_path / bank for bank in BANKS]


def test_a_bank_is_there_as_soon_as_its_clients_are(plan: MakePlan, queue: Queue, tmp_path: Path) -> None:
    order = [(event.what, event.seed) for event in queue(plan(), tmp_path).events if event.what in ("finished", "bank")]
    assert order == [("finished", 0)] * 3 + [("bank", 0)] + [("finished", 1)] * 3 + [("bank", 1)]


@pytest.mark.parametrize("skew", [None, 0.5])
def test_the_bank_is_the_one_that_training_in_memory_makes(
    plan: MakePlan, queue: Queue, tmp_path: Path, tiny: Any, skew: float | None
) -> None:
    queue(plan(skew=skew), tmp_path)
    for seed in (0, 1):
        train(tiny(), clients=3, seed=seed, skew=skew).save(tmp_path / "memory.safetensors")
        assert (tmp_path / "memory.safetensors").read_bytes() == (tmp_path / BANKS[seed]).read_bytes()


def test_a_bank_carries_its_whole_provenance(plan: MakePlan, queue: Queue, tmp_path: Path) -> None:
    queue(plan(skew=0.5, split_seed=4), tmp_path)
    bank = ScoreBank.load(tmp_path / BANKS[1])
    assert bank.test_scores.dtype == np.float16
    assert bank.val_scores is not None
    assert bank.val_scores.shape == (3, 6, 3)
    said = bank.metadata
    assert (said["format"], said["task"], said["seed"], said["split_seed"]) == ("1", "tiny", "1", "4")
    assert (said["skew"], said["weights"], said["device"]) == ("0.5", "none", "cpu")
    assert json.loads(said["recipe"])["epochs"] == 2
    assert sum(json.loads(said["shard_sizes"])) == 54
    assert {"numpy", "scikit-learn", "python"} <= set(json.loads(said["versions"]))
    assert {"model", "data_sha256", "airchoir", "commit", "machine", "fingerprint", "checksum"} <= set(said)
    assert str(tmp_path) not in json.dumps(dict(said))


def test_all_files_are_plain_safetensors_whose_bytes_repeat(plan: MakePlan, queue: Queue, tmp_path: Path) -> None:
    for out in ("one", "again"):
        queue(plan(), tmp_path / out)
    assert finals(tmp_path / "one") == finals(tmp_path / "again")
    for path in (tmp_path / "one").rglob("*.safetensors"):
        with safe_open(path, framework="numpy") as file:
            assert "checksum" in file.metadata()


def test_a_client_does_not_depend_on_which_others_are_fitted(plan: MakePlan, queue: Queue, tmp_path: Path) -> None:
    queue(plan(), tmp_path / "both")
    queue(plan(seeds=(1,)), tmp_path / "one")
    assert (tmp_path / "both" / BANKS[1]).read_bytes() == (tmp_path / "one" / BANKS[1]).read_bytes()


# --- going on


def test_a_second_run_keeps_everything_and_makes_no_fitter(
    plan: MakePlan, queue: Queue, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Setting, "start", lambda self: pytest.fail("it made a fitter"))
    before, times = finals(whole), {path: path.stat().st_mtime_ns for path in whole.rglob("*.safetensors")}
    ran = queue(plan(), whole)
    assert (ran.fits, ran.outcome.kept, ran.outcome.left) == (0, 6, 0)
    assert ran.outcome.banks == [whole / bank for bank in BANKS]
    assert all(event.what == "bank" and event.details["kept"] for event in ran.events)
    assert finals(whole) == before
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*.safetensors")} == times


def test_more_seeds_are_added_to_what_is_there(plan: MakePlan, queue: Queue, whole: Path) -> None:
    ran = queue(plan(seeds=(0, 1, 2)), whole)
    assert ran.said("finished") == [(2, 0), (2, 1), (2, 2)]
    assert ran.outcome.kept == 6


def test_a_bank_alone_is_enough_and_so_are_its_clients(plan: MakePlan, queue: Queue, whole: Path) -> None:
    before = finals(whole)
    (whole / BANKS[0]).unlink()
    shutil.rmtree(next(whole.glob("clients/tiny/*/seed-1")))
    ran = queue(plan(), whole)
    assert (ran.fits, ran.outcome.kept) == (0, 6)
    assert ran.said("kept") == [(0, 0), (0, 1), (0, 2)]
    assert {name: before[name] for name in BANKS} == {name: (whole / name).read_bytes() for name in BANKS}


def failing(function: Callable[..., Any], *, after: int, error: BaseException) -> Callable[..., Any]:
    """The function, which fails once it was called `after` times."""
    calls = iter(range(100))

    def called(*arguments: Any) -> Any:
        if next(calls) == after:
            raise error
        return function(*arguments)

    return called


STOPS = [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")]


@pytest.mark.parametrize("stop", STOPS, ids=["interrupt", "full"])
def test_interrupted_at_any_event_it_goes_on_where_it_was(
    plan: MakePlan, queue: Queue, fits: list[int], whole: Path, tmp_path: Path, stop: BaseException
) -> None:
    events = 6 * 4 + 2
    for count in range(events):
        out = tmp_path / str(count)
        heard: list[Event] = []

        def listen(event: Event, count: int = count, heard: list[Event] = heard) -> None:
            if len(heard) == count:
                raise stop
            heard.append(event)

        with pytest.raises(type(stop)):
            run_queue(plan(), out, report=listen)
        saved = len(list(out.glob("clients/**/client-*.safetensors")))
        assert queue(plan(), out).fits == 6 - saved
        assert finals(out) == finals(whole)
        assert not list(out.rglob("*.tmp"))


@pytest.mark.parametrize("stop", STOPS, ids=["interrupt", "full"])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_interrupted_while_any_file_is_written_it_leaves_no_half_one(
    plan: MakePlan, queue: Queue, whole: Path, tmp_path: Path, step: str, stop: BaseException
) -> None:
    for count in range(8):  # six clients, two banks
        out, place = tmp_path / str(count), os if step == "fsync" else Path

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place, step, failing(getattr(place, step), after=count, error=stop))
            with pytest.raises(type(stop)):
                queue(plan(), out)
        assert finals(out).items() <= finals(whole).items()
        assert not list(out.rglob("*.tmp"))
        ran = queue(plan(), out)
        assert ran.fits == max(0, 6 - (count if count < 4 else count - 1))
        assert finals(out) == finals(whole)


def test_a_full_disk_is_reported_with_the_name_of_the_file(plan: MakePlan, tmp_path: Path) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left") as caught:
            run_queue(plan(), tmp_path)
    assert str(caught.value.filename).endswith("client-0.safetensors")


def test_with_minutes_to_spend_it_stops_between_clients_and_goes_on_later(
    plan: MakePlan, queue: Queue, whole: Path, tmp_path: Path
) -> None:
    out, minutes = tmp_path / "out", 0.0
    sittings = []
    while not sittings or sittings[-1].outcome.left:
        begun = 60.0 * minutes

        def clock() -> float:
            nonlocal minutes
            minutes += 0.25  # every look at the clock
            return 60.0 * minutes

        sittings.append(queue(plan(), out, max_minutes=2.0, clock=clock))
        assert 60.0 * minutes > begun
    assert len(sittings) > 1
    assert [ran.outcome.left for ran in sittings] == sorted((ran.outcome.left for ran in sittings), reverse=True)
    assert sum(ran.fits for ran in sittings) == 6
    assert finals(out) == finals(whole)


@pytest.mark.parametrize("minutes", [0.0, -1.0, float("nan")])
def test_minutes_that_are_none_are_refused(plan: MakePlan, tmp_path: Path, minutes: float) -> None:
    with pytest.raises(ValueError, match=r"\Amax-minutes must be positive, got "):
        run_queue(plan(), tmp_path, max_minutes=minutes)


def test_another_process_on_the_same_folder_spares_this_one_its_clients(
    plan: MakePlan, queue: Queue, fits: list[int], whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "shared"
    before = len(fits)
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if len(events) == 1:  # the first client is begun, and meanwhile somebody else does everything
            queue(plan(), out)

    outcome = run_queue(plan(), out, report=listen)
    assert len(fits) - before == 7
    assert (outcome.fitted, outcome.kept, outcome.left) == (1, 5, 0)
    assert finals(out) == finals(whole)


# --- what is not believed


def test_no_client_file_with_a_flipped_bit_or_a_missing_end_is_believed(
    plan: MakePlan, whole: Path, tmp_path: Path
) -> None:
    files, client = results(plan(), whole), Client(0, 1)
    path = files.client_path(client)
    good = path.read_bytes()
    assert files.load_client(client) is not None
    for position in range(len(good)):
        flipped = bytearray(good)
        flipped[position] ^= 1 << (position % 8)
        path.write_bytes(flipped)
        assert files.load_client(client) is None, f"byte {position}"
    for end in range(0, len(good), 7):
        path.write_bytes(good[:end])
        assert files.load_client(client) is None, f"{end} bytes"
    path.write_bytes(good + b"\0")
    assert files.load_client(client) is None


def test_no_bank_with_a_flipped_bit_is_believed(plan: MakePlan, whole: Path) -> None:
    files = results(plan(), whole)
    path = files.bank_path(0)
    good = path.read_bytes()
    assert files.has_bank(0)
    for position in range(len(good)):
        flipped = bytearray(good)
        flipped[position] ^= 1 << (position % 8)
        path.write_bytes(flipped)
        assert not files.has_bank(0), f"byte {position}"


@pytest.mark.parametrize(
    "damage", [lambda good: good[:-1], lambda good: b"", lambda good: good[:-9] + b"\xff" + good[-8:]]
)
def test_only_damaged_clients_are_fitted_again_and_the_bank_is_mended(
    plan: MakePlan, queue: Queue, whole: Path, damage: Callable[[bytes], bytes]
) -> None:
    before, files = finals(whole), results(plan(), whole)
    for path in (files.client_path(Client(0, 1)), files.client_path(Client(1, 2)), *map(files.bank_path, (0, 1))):
        path.write_bytes(damage(path.read_bytes()))
    ran = queue(plan(), whole)
    assert ran.said("finished") == [(0, 1), (1, 2)]
    assert finals(whole) == before


@pytest.mark.parametrize("source", [Client(0, 0), Client(1, 1)], ids=str)
def test_another_clients_file_is_not_believed(plan: MakePlan, queue: Queue, whole: Path, source: Client) -> None:
    before, files = finals(whole), results(plan(), whole)
    shutil.copy(files.client_path(source), files.client_path(Client(0, 1)))
    (whole / BANKS[0]).unlink()
    assert queue(plan(), whole).said("finished") == [(0, 1)]
    assert finals(whole) == before


OTHERS: dict[str, dict[str, Any]] = {
    "skew": {"skew": 0.5},
    "split seed": {"split_seed": 1},
    "clients": {"clients": 4},
    "recipe": {"recipe": PerceptronRecipe(hidden_units=4, epochs=3)},
}


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_clients_of_other_settings_lie_apart_and_are_not_believed(
    plan: MakePlan, queue: Queue, whole: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    other = plan(**changes)
    ours, theirs = results(plan(), whole), results(other, tmp_path / "other")
    theirs.client_path(Client(0, 0)).parent.mkdir(parents=True)
    shutil.copy(ours.client_path(Client(0, 0)), theirs.client_path(Client(0, 0)))
    assert theirs.load_client(Client(0, 0)) is None
    assert theirs.client_path(Client(0, 0)).relative_to(tmp_path / "other") != ours.client_path(
        Client(0, 0)
    ).relative_to(whole)


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_a_bank_of_other_settings_is_never_written_over(
    plan: MakePlan, queue: Queue, whole: Path, changes: dict[str, Any]
) -> None:
    before = finals(whole)
    with pytest.raises(ValueError, match=r"seed-0\.safetensors is a bank of other settings \(.*; it stays: ") as caught:
        queue(plan(**changes), whole)
    assert "\n" not in str(caught.value)
    assert finals(whole) == before


def test_other_data_under_the_same_name_are_other_settings(
    plan: MakePlan, queue: Queue, whole: Path, tiny: Any
) -> None:
    with pytest.raises(ValueError, match="data_sha256 differ"):
        queue(plan(task=tiny(seed=1)), whole)


def test_a_bank_that_something_else_made_is_never_written_over(plan: MakePlan, queue: Queue, tmp_path: Path) -> None:
    path = tmp_path / BANKS[0]
    path.parent.mkdir(parents=True)
    save_file({"test_scores": np.full((1, 1, 2), 0.5, np.float32), "test_labels": np.zeros(1, np.int64)}, path)
    before = finals(tmp_path)
    with pytest.raises(ValueError, match="of other settings"):
        queue(plan(), tmp_path)
    assert finals(tmp_path) == before


def test_clients_made_elsewhere_are_named_side_by_side(plan: MakePlan, queue: Queue, whole: Path) -> None:
    files, client = results(plan(), whole), Client(0, 2)
    fit = files.load_client(client)
    assert fit is not None
    versions = {**json.loads(fit.provenance["versions"]), "numpy": "9.9"}
    files.save_client(
        client, replace(fit, provenance={**fit.provenance, "device": "gpu", "versions": json.dumps(versions)})
    )
    (whole / BANKS[0]).unlink()
    assert queue(plan(), whole).fits == 0
    said = ScoreBank.load(whole / BANKS[0]).metadata
    assert said["device"] == "cpu and gpu"
    assert json.loads(said["versions"])["numpy"] == f"{np.__version__} and 9.9"
    assert json.loads(said["versions"])["python"] == versions["python"]


def test_a_client_that_diverges_is_named_and_not_kept(
    plan: MakePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airchoir.training.perceptron import PerceptronFitter

    bad = np.full((20, 3), np.nan, np.float32)
    monkeypatch.setattr(PerceptronFitter, "fit", lambda *_, **__: (bad, bad[:6]))
    with pytest.raises(ValueError, match=r"\Aclient 0 of seed 0 diverged: .*; lower "):
        run_queue(plan(), tmp_path)
    assert finals(tmp_path) == {}


# --- what decides the outcome


def test_weights_count_by_their_content_and_not_by_their_place(plan: MakePlan, tmp_path: Path) -> None:
    def fingerprint(name: str, content: bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return Setting.of(plan(recipe=ImageRecipe(weights=str(path)))).fingerprint()

    one = fingerprint("a/one.safetensors", b"x")
    assert fingerprint("b/two.safetensors", b"x") == one
    assert fingerprint("a/one.safetensors", b"y") != one


def test_weights_that_differ_where_a_fit_begins_are_refused(plan: MakePlan, tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    path.write_bytes(b"x")
    setting = Setting.of(plan(recipe=ImageRecipe(weights=str(path))))
    path.write_bytes(b"y")
    with pytest.raises(ValueError, match="weights on this machine are not those"):
        setting.start()


def test_a_recipe_carried_out_in_another_way_is_another_setting(
    plan: MakePlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the last layer came to be drawn otherwise: clients of both ways must never meet in one bank."""
    fingerprint = Setting.of(plan()).fingerprint()
    monkeypatch.setattr(PerceptronRecipe, "revision", 2)
    assert Setting.of(plan()).fingerprint() != fingerprint


def test_seeds_name_runs_and_none_is_no_run(plan: MakePlan) -> None:
    with pytest.raises(ValueError, match="at least one seed"):
        plan(seeds=())
    with pytest.raises(ValueError, match=r"first seed must be >= 0, got -1"):
        plan(seeds=(-1, 0))
    with pytest.raises(ValueError, match=r"split seed must be >= 0, got -2"):
        plan(split_seed=-2)


def test_where_it_runs_does_not_decide(plan: MakePlan) -> None:
    assert Setting.of(plan(device="cpu")).fingerprint() == Setting.of(plan()).fingerprint()


# --- what it says


def test_the_log_is_one_json_object_per_event_and_is_appended_to(plan: MakePlan, queue: Queue, tmp_path: Path) -> None:
    log = JsonLog(tmp_path / "logs" / "log.jsonl")
    told = []
    for _ in range(2):
        events = queue(plan(), tmp_path).events
        told += [event.record() for event in events]
        for event in events:
            log(event)
        log.close()
    lines = (tmp_path / "logs" / "log.jsonl").read_text().splitlines()
    read = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert all(record.pop("time").endswith("+00:00") for record in read)
    assert read == told


def test_a_line_that_a_full_disk_cut_off_is_cleared_away(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"event": "kept"}\n{"event": "fin')
    log = JsonLog(path)
    log(Event("epoch", 0, 1, {"loss": float("nan")}))
    log.close()
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"event": "kept"}
    assert (second["event"], second["loss"]) == ("epoch", "nan")


def test_people_get_one_line_for_a_client_and_one_for_all_that_was_kept(
    plan: MakePlan, queue: Queue, whole: Path
) -> None:
    files = results(plan(), whole)
    for seed in (0, 1):
        files.bank_path(seed).unlink()
    for client in (Client(0, 2), Client(1, 1)):
        files.client_path(client).unlink()
    lines: list[str] = []
    listener = Lines(lines.append, clock=iter(np.arange(0.0, 100.0, 30.0)).__next__)
    for event in queue(plan(), whole).events:
        listener(event)
    kept, first, bank, second, other = lines
    assert kept == "4 of 6 clients are finished already"
    assert first.startswith("seed 0, client 2: ")
    assert "loss " in first
    assert first.endswith("examples/s; 1 left, about 30 s")
    assert second.endswith("; 0 left")
    assert [bank, other] == [f"seed {seed}: {files.bank_path(seed)}" for seed in (0, 1)]


def test_the_digits_of_the_demo_and_of_the_queue_are_the_same(
    tmp_path: Path, digits_bank: Callable[[int], ScoreBank]
) -> None:
    run_queue(Plan(Digits(), Digits().recipe()), tmp_path)
    digits_bank(0).save(tmp_path / "demo.safetensors")
    assert (tmp_path / "demo.safetensors").read_bytes() == (tmp_path / "banks/digits/seed-0.safetensors").read_bytes()


def test_the_queue_needs_neither_typer_nor_rich() -> None:
    assert not {"typer", "rich"} & set(vars(queue_module))
