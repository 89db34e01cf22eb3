"""Every registered experiment, end to end: true to one bank, to several, to several tasks; findings that read back; files.

Experiments are found through the registry and built with their defaults, so a new file in the room is tested without another
line here.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from airchoir import ScoreBank
from airchoir.experiments import Experiment
from airchoir.experiments.choirs import Choir, load_choirs
from airchoir.provenance import plain
from airchoir.registry import build, plugins
from airchoir.report import figures
from airchoir.report.findings import Findings
from airchoir.report.writing import write

NAMES = list(plugins(Experiment))
pytestmark = pytest.mark.slow


def small_bank(task: str, seed: int, *, clients: int = 4, queries: int = 60, classes: int = 3) -> ScoreBank:
    rng = np.random.default_rng([seed, clients, classes])

    def split() -> tuple[np.ndarray, np.ndarray]:
        labels = rng.integers(0, classes, queries)
        logits = rng.normal(0.0, 1.0, (queries, classes)) + rng.normal(0.0, 1.5, (clients, queries, classes))
        logits[:, np.arange(queries), labels] += 2.0
        odds = np.exp(logits)
        return (odds / odds.sum(axis=-1, keepdims=True)).astype(np.float32), labels

    return ScoreBank(*split(), *split(), {"task": task, "seed": str(seed)})


@dataclass(frozen=True)
class Ran:
    """An experiment on one bank, and how it told its progress."""

    experiment: Experiment
    findings: Findings
    progress: list[tuple[int, int]]


@pytest.fixture(scope="module")
def one_bank(tmp_path_factory: pytest.TempPathFactory) -> list[Choir]:
    path = tmp_path_factory.mktemp("banks") / "bank.safetensors"
    small_bank("cifar10", 0).save(path)  # the paper's task: its numbers are compared
    return load_choirs([path])


@pytest.fixture(scope="module", params=NAMES)
def ran(request: pytest.FixtureRequest, one_bank: list[Choir]) -> Ran:
    experiment: Experiment = build(Experiment, request.param)
    told: list[tuple[int, int]] = []
    return Ran(experiment, experiment.run(one_bank, progress=lambda *step: told.append(step)), told)


def test_the_papers_experiments_are_there() -> None:
    assert {"table1", "snr", "participation", "figure2", "noise"} <= set(NAMES)


def test_findings_are_called_after_their_experiment(ran: Ran) -> None:
    assert ran.findings.name == ran.experiment.name
    assert ran.findings.title == ran.experiment.title
    names = [part.name for part in (*ran.findings.tables, *ran.findings.figures)]
    assert names
    assert all(name == ran.experiment.name or name.startswith(f"{ran.experiment.name}_") for name in names)
    assert len({table.name for table in ran.findings.tables}) == len(ran.findings.tables)
    assert len({figure.name for figure in ran.findings.figures}) == len(ran.findings.figures)


def test_it_says_what_it_shows_in_three_sentences_or_more(ran: Ran) -> None:
    assert len(ran.findings.summary) >= 3
    for sentence in (*ran.findings.summary, *ran.findings.notes):
        assert sentence.endswith((".", ")"))
        assert sentence == " ".join(sentence.split())
        assert "nan" not in sentence.lower().split()


def test_every_row_says_what_it_depends_on_in_jsons_own_types(ran: Ran) -> None:
    assert ran.findings.rows
    for row in ran.findings.rows:
        assert {"rule", "access", "channel", "privacy", "participation"} <= set(row["scheme"])
        assert row["accountant"] in {"paper", "tight", "counted"}
        assert json.loads(json.dumps(row, allow_nan=False)) == row == plain(row)


def test_the_source_is_named(ran: Ran) -> None:
    assert {"commit", "versions", "machine"} <= set(ran.findings.source)


def test_progress_rises_to_its_total(ran: Ran) -> None:
    done = [step for step, _ in ran.progress]
    assert done == sorted(done)
    assert len({total for _, total in ran.progress}) == 1
    assert ran.progress[-1][0] == ran.progress[-1][1]


def test_where_the_paper_is_compared_another_number_of_clients_is_noted(ran: Ran) -> None:
    compared = any(row.get("paper") or row.get("paper_percent") for row in ran.findings.rows)
    noted = "CIFAR-10: 4 clients here, 20 in the paper: its numbers are no measure of these." in ran.findings.notes
    assert noted == compared


def test_everything_is_written_and_the_record_reads_back_equal(ran: Ran, tmp_path: Path) -> None:
    written = write(ran.findings, tmp_path)
    names = {path.name for path in written.files}
    assert {path.name for path in tmp_path.iterdir()} == names
    wanted = {f"{ran.experiment.name}.json"}
    wanted |= {f"{table.name}.{kind}" for table in ran.findings.tables for kind in ("md", "csv", "tex")}
    wanted |= {f"{figure.name}.{kind}" for figure in ran.findings.figures for kind in ("pdf", "svg", "png")}
    assert wanted <= names
    path = tmp_path / f"{ran.experiment.name}.json"
    assert Findings.of_record(json.loads(path.read_text(encoding="utf-8")), path) == ran.findings


@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_banks_of_any_tasks_will_do(name: str) -> None:
    tasks = (("cifar10", {}), ("reviews", {"classes": 2, "clients": 6, "queries": 50}), ("third", {"queries": 40}))
    choirs = [
        Choir(task, (), tuple(small_bank(task, seed, **shape) for seed in range(seeds)))
        for (task, shape), seeds in zip(tasks, (2, 1, 2), strict=True)
    ]
    experiment: Experiment = build(Experiment, name)
    findings = experiment.run(choirs)
    assert len(findings.summary) >= 3
    if experiment.needs_banks:
        assert {row["task"] for row in findings.rows} == {"cifar10", "reviews", "third"}


@pytest.mark.parametrize("name", NAMES)
def test_a_task_of_any_name_will_do(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "render", lambda figure, kind: b"")  # only the names matter
    tasks = ("../up", "数字 <b>", "a_b & 100 %")
    choirs = [Choir(task, (), (small_bank(task, 0, clients=2, queries=20),)) for task in tasks]
    experiment: Experiment = build(Experiment, name)
    written = write(experiment.run(choirs), tmp_path / "out")
    assert {path.resolve().parent for path in written.files} == {tmp_path / "out"}
    assert len(set(written.files)) == len(written.files)


@pytest.mark.parametrize("name", NAMES)
def test_a_bank_without_validation_scores_will_do(name: str) -> None:
    bank = small_bank("imported", 0)
    experiment: Experiment = build(Experiment, name)
    findings = experiment.run([Choir("imported", (), (ScoreBank(bank.test_scores, bank.test_labels),))])
    assert len(findings.summary) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_without_any_bank_it_runs_or_says_what_it_needs(name: str) -> None:
    experiment: Experiment = build(Experiment, name)
    if not experiment.needs_banks:
        assert len(experiment.run([]).summary) >= 3
        return
    with pytest.raises(ValueError, match=f"{name} needs at least one score bank, got none; "):
        experiment.run([])
