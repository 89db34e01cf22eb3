"""`airchoir train` as people use it: in a process of its own, killed, refused, resumed."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airchoir import ScoreBank

SMALL = ("train", "digits", "--clients", "4", "--seeds", "2")
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
COUNT = re.compile(r"(\d+) clients fitted, (\d+) kept; (all done|\d+ are left)")


def finals(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.safetensors"))}


def counts(out: str) -> tuple[int, int]:
    """Fitted and kept, as the summary says."""
    found = COUNT.match(out)
    assert found, out
    return int(found[1]), int(found[2])


@pytest.fixture
def process(folder: Path) -> Callable[..., subprocess.Popen[str]]:
    """A function that starts `python -m airchoir` in the folder, its streams piped."""

    def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "airchoir", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=folder, env=ONE_THREAD, text=True, **pipes, **options)

    return start


def test_training_ends_in_banks_that_evaluate_and_is_not_done_again(run: Any, folder: Path) -> None:
    ran = run(*SMALL, "--log-json", "log.jsonl")
    assert ran.status == 0
    assert counts(ran.out) == (8, 0)
    assert len(ran.err.splitlines()) == 8 + 2
    banks = [f"results/banks/digits/seed-{seed}.safetensors" for seed in (0, 1)]
    assert f"Next: airchoir evaluate {' '.join(banks)}" in ran.out
    assert ScoreBank.load(folder / banks[1]).clients == 4
    assert run("evaluate", *banks).status == 0
    before = finals(folder)
    again = run(*SMALL, "--log-json", "log.jsonl")
    assert (again.status, counts(again.out)) == (0, (0, 8))
    assert finals(folder) == before
    events = [json.loads(line)["event"] for line in (folder / "log.jsonl").read_text().splitlines()]
    assert {name: events.count(name) for name in events} == {"started": 8, "epoch": 72, "finished": 8, "bank": 4}


KILLED = """
import os, signal, sys
from airchoir.cli import main
calls = iter(range(100))
def fsync(descriptor):
    if next(calls) == int(sys.argv[1]):  # everything is written, and the final name not yet given
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
main(sys.argv[2:])
"""


def test_killed_again_and_again_it_trains_nothing_twice_and_the_banks_are_those_of_a_quiet_run(
    run: Any, folder: Path
) -> None:
    assert counts(run(*SMALL, "--out", "quiet").out) == (8, 0)
    for files in (1, 2):
        command = [sys.executable, "-c", KILLED, str(files), *SMALL, "--out", "killed", "--log-json", "log.jsonl"]
        killed = subprocess.run(command, cwd=folder, env=ONE_THREAD, capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert counts(run(*SMALL, "--out", "killed", "--log-json", "log.jsonl").out) == (5, 3)
    assert finals(folder / "killed") == finals(folder / "quiet")
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    finished = [(event["seed"], event["client"]) for event in events if event["event"] == "finished"]
    assert finished == [(seed, client) for seed in (0, 1) for client in range(4)]


def test_two_processes_on_one_folder_come_to_the_same_end(process: Any, run: Any, folder: Path) -> None:
    both = [process(*SMALL, "--out", "shared") for _ in range(2)]
    for running in both:
        _, err = running.communicate()
        assert running.returncode == 0, err
    run(*SMALL, "--out", "alone")
    assert finals(folder / "shared") == finals(folder / "alone")


def test_a_full_disk_is_one_line_and_afterwards_it_goes_on(process: Any, run: Any, folder: Path) -> None:
    limit = 10_000  # a client's file is 13 KB
    running = process(*SMALL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    out, err = running.communicate()
    assert (running.returncode, out) == (2, "")
    complaint = r"airchoir: \S*client-0\.safetensors: File too large; finished clients are kept: [^\n]+\n"
    assert re.fullmatch(complaint, err), err
    assert not [path for path in folder.rglob("*") if path.is_file()]
    assert counts(run(*SMALL).out) == (8, 0)


def test_an_interrupt_is_one_line_and_status_130(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airchoir.training.perceptron import PerceptronFitter

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(PerceptronFitter, "fit", interrupt)
    ran = run(*SMALL)
    assert (ran.status, ran.out, ran.err) == (130, "", "airchoir: interrupted\n")
    assert finals(folder) == {}


def test_minutes_run_out_between_clients(run: Any, folder: Path) -> None:
    ran = run(*SMALL, "--max-minutes", "1e-9")
    assert ran.status == 0
    assert "0 clients fitted, 0 kept; 8 are left: run the same command again" in ran.out
    assert counts(run(*SMALL, "--max-minutes", "inf").out) == (8, 0)


def test_first_seed_shifts_the_runs(run: Any, folder: Path) -> None:
    run("train", "digits", "--clients", "2", "--seeds", "1", "--first-seed", "3")
    assert [path.name for path in folder.glob("results/banks/digits/*")] == ["seed-3.safetensors"]


def test_a_client_that_has_never_seen_a_class_takes_part(run: Any, folder: Path) -> None:
    assert run("train", "digits", "--clients", "30", "--seeds", "1", "--skew", "0.05").status == 0
    bank = ScoreBank.load(folder / "results/banks/digits/seed-0.safetensors")
    assert bank.metadata["skew"] == "0.05"
    assert min(json.loads(bank.metadata["shard_sizes"])) >= 1
    few = [client for client in range(30) if len(set(bank.test_scores[client].argmax(axis=-1))) <= 3]
    assert len(few) > 5


REFUSED = {
    "train digitz": "unknown task 'digitz'; did you mean 'digits'?",
    "train digits --clients 0": "clients must be at least 1, got 0",
    "train digits --clients 5000": "clients must be from 1 to 1132",
    "train digits --seeds 0": "seeds must be at least 1, got 0",
    "train digits --first-seed -1": "the first seed must be >= 0, got -1",
    "train digits --split-seed -1": "the split seed must be >= 0, got -1",
    "train digits --skew 0": "skew must be positive and finite, got 0",
    "train digits --skew -0.3": "got -0.3",
    "train digits --skew nan": "got nan",
    "train digits --skew inf": "got inf",
    "train digits --device cuda": "got device 'cuda'",
    "train digits --device gpu": "device must be auto, cpu, cuda or cuda:N, got 'gpu'",
    "train digits --on moon": "unknown place 'moon' to run on; Known: local, ray",
    "train digits --on rya": "did you mean 'ray'?",
    "train digits --model timm:resnet18": "the digits task has no model to choose, got 'timm:resnet18'; leave --model out",
    "train digits --weights none": "the digits task has no weights to choose",
    "train digits --loss plain": "the digits task has no loss to choose",
    "train digits --data here": "cannot come from here",
    "train digits --max-minutes 0": "max-minutes must be positive, got 0",
    "train digits --max-minutes soon": "'soon'",
    "train cifar10 --loss publishd": "loss must be published or plain, got 'publishd'",
    "train": "TASK",
}
REFUSED_WITH_TORCH = {
    "train cifar10 --weights there.safetensors": "weights there.safetensors do not exist",
    "train cifar10 --data nowhere": "nowhere holds no cifar10",
}
"""Without torch its lack is what is said, before anything is looked for."""


@pytest.mark.parametrize(("line", "complaint"), REFUSED.items())
def test_bad_input_is_one_line_and_writes_nothing(refused: Any, line: str, complaint: str) -> None:
    log = ("--log-json", "log.jsonl") if line != "train" else ()
    assert complaint in refused(*line.split(), *log)


@pytest.mark.parametrize(("line", "complaint"), REFUSED_WITH_TORCH.items())
def test_files_that_are_not_there_are_one_line_too(refused: Any, line: str, complaint: str) -> None:
    pytest.importorskip("torch", reason="what comes after needs airchoir[train]; run make test-all")
    assert complaint in refused(*line.split(), "--log-json", "log.jsonl")


@pytest.mark.parametrize("place", ["ray", "ray://localhost:10001"])
def test_without_ray_a_cluster_is_refused_with_the_way_to_get_it(
    refused: Any, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "pip install 'airchoir[cluster]'" in refused("train", "digits", "--on", place)


def test_a_bank_of_other_settings_is_not_written_over(run: Any, refused: Any) -> None:
    run("train", "digits", "--clients", "2", "--seeds", "1")
    assert "seed-0.safetensors is a bank of other settings (shard_sizes differ)" in refused(
        "train", "digits", "--clients", "3", "--seeds", "1"
    )


def test_a_log_that_cannot_be_written_is_refused_before_any_fit(refused: Any, folder: Path) -> None:
    (folder / "log").mkdir()
    assert "log: Is a directory" in refused(*SMALL, "--log-json", "log")


BARE = """
import sys
for name in ("typer", "rich", "click"):
    sys.modules[name] = None
from airchoir.training.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_machine_without_typer_and_rich_trains_the_same(run: Any, folder: Path) -> None:
    command = [sys.executable, "-c", BARE, *SMALL[1:], "--out", "bare", "--log-json", "log.jsonl"]
    bare = subprocess.run(command, cwd=folder, env=ONE_THREAD, capture_output=True, text=True, check=True)
    ran = run(*SMALL, "--out", "full")
    assert counts(bare.stdout) == counts(ran.out) == (8, 0)
    assert len(bare.stderr.splitlines()) == len(ran.err.splitlines())
    assert finals(folder / "bare") == finals(folder / "full")
    assert len((folder / "log.jsonl").read_text().splitlines()) == 8 * 11 + 2


def test_the_bare_command_refuses_in_one_line_too(folder: Path) -> None:
    command = [sys.executable, "-m", "airchoir.training", "digits", "--clients", "0"]
    bare = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (bare.returncode, bare.stdout) == (2, "")
    assert bare.stderr == "airchoir: clients must be at least 1, got 0; the paper has 20\n"
    assert not list(folder.iterdir())
