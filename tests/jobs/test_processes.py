"""Jobs in processes of this machine: the results of one, and nobody left behind whatever happens."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airchoir.jobs import run
from airchoir.jobs.processes import cores

WORKSHOP = """
    import os, threading, time

    def square():
        return lambda job, note: job * job

    def talk():
        def work(job, note):
            note(f"{job} half")
            return os.environ["OPENBLAS_NUM_THREADS"], os.getpid()
        return work

    def fail():
        def work(job, note):
            if job == 3:
                raise ValueError("job 3 is no good; leave it out")
            return job
        return work

    class Awkward(Exception):
        def __init__(self, one, two):
            super().__init__("awkward")
            self.lock = threading.Lock()

    def fail_awkwardly():
        def work(job, note):
            raise Awkward(1, 2)
        return work

    def unable():
        raise ValueError("no model here; copy one")

    def die():
        return lambda job, note: os._exit(7)

    class DieOnce:
        def __init__(self, mark):
            self.mark = mark
        def __call__(self):
            def work(job, note):
                if job == 2 and not os.path.exists(self.mark):
                    open(self.mark, "w").close()
                    os._exit(1)
                return job
            return work

    class Linger:
        def __init__(self, folder):
            self.folder = folder
        def __call__(self):
            def work(job, note):
                open(os.path.join(self.folder, str(os.getpid())), "w").close()
                time.sleep(600)
            return work
"""


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module with work, found by processes of their own because this one finds it."""
    (tmp_path / "workshop_for_processes.py").write_text(textwrap.dedent(WORKSHOP))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "workshop_for_processes", raising=False)
    import importlib

    return importlib.import_module("workshop_for_processes")


def two() -> int:
    return 2


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def until(condition: Callable[[], bool]) -> None:
    """Waits for what must come; a minute is for very busy machines."""
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_processes_give_the_results_of_one(workshop: Any) -> None:
    alone = list(run(range(9), workshop.square))
    assert sorted(run(range(9), workshop.square, processes=two)) == alone
    assert list(run([], workshop.square, processes=two)) == []


def test_notes_arrive_before_the_end_and_every_process_has_one_thread(workshop: Any) -> None:
    heard: list[Any] = []
    done = run(range(6), workshop.talk, processes=two, began=heard.append, note=lambda job, said: heard.append(said))
    for job, (threads, process) in done:
        assert threads == "1"
        assert process != os.getpid()
        assert heard.index(job) < heard.index(f"{job} half")
    assert len(heard) == 12


def test_as_many_processes_work_as_are_wanted(workshop: Any) -> None:
    for wanted, limit in ((lambda: 1, 1), (lambda: 3, 3)):
        processes = {process for _, (_, process) in run(range(12), workshop.talk, processes=wanted)}
        assert 1 <= len(processes) <= limit
        assert os.getpid() not in processes


def test_this_process_works_as_long_as_no_other_is_wanted(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    heard: list[Any] = []

    def wanted() -> int:
        return 0 if len(heard) < 6 else 2

    done = run(range(9), workshop.talk, processes=wanted, began=heard.append, note=lambda job, said: heard.append(said))
    processes = {job: process for job, (_, process) in done}
    assert heard[:6] == [0, "0 half", 1, "1 half", 2, "2 half"]
    assert {processes[job] for job in range(3)} == {os.getpid()}
    assert os.getpid() not in {processes[job] for job in range(3, 9)}


def test_jobs_that_a_result_brings_are_done_too(workshop: Any) -> None:
    class Growing:
        def __init__(self) -> None:
            self.jobs = [0]

        def __iter__(self) -> "Growing":
            return self

        def __next__(self) -> int:
            if not self.jobs:
                raise StopIteration
            return self.jobs.pop()

    for processes in (None, two):
        jobs, done = Growing(), []
        for job, _ in run(jobs, workshop.square, processes=processes):
            done.append(job)
            if job < 4:
                jobs.jobs.append(job + 1)
        assert done == [0, 1, 2, 3, 4]


def test_an_error_is_the_error_itself(workshop: Any) -> None:
    with pytest.raises(ValueError, match=r"\Ajob 3 is no good; leave it out\Z"):
        list(run(range(9), workshop.fail, processes=two))
    with pytest.raises(ValueError, match=r"\Ano model here; copy one\Z"):
        list(run(range(9), workshop.unable, processes=two))


def test_an_error_that_cannot_travel_is_told_by_name(workshop: Any) -> None:
    with pytest.raises(RuntimeError, match="Awkward: awkward"):
        list(run([1], workshop.fail_awkwardly, processes=two))


def test_a_job_that_is_lost_with_its_process_is_done_again(workshop: Any, tmp_path: Path) -> None:
    began: list[int] = []
    done = list(run(range(6), workshop.DieOnce(str(tmp_path / "mark")), processes=two, began=began.append))
    assert sorted(done) == [(job, job) for job in range(6)]
    assert sorted(began) == [0, 1, 2, 2, 3, 4, 5]


def test_a_job_that_takes_its_process_down_again_and_again_is_named(workshop: Any) -> None:
    with pytest.raises(ValueError, match=r"\A7 was lost 6 times with its process \(exit status 7\); is there memory"):
        list(run([7], workshop.die, processes=two))


def test_whoever_stops_listening_leaves_nobody_behind(workshop: Any) -> None:
    done: Iterator[Any] = run(range(100), workshop.talk, processes=two)
    processes = {next(done)[1][1], next(done)[1][1], next(done)[1][1]}
    done.close()  # type: ignore[attr-defined]
    assert not [process for process in processes if alive(process)]


def test_a_killed_parent_leaves_nobody_behind_even_in_the_middle_of_a_job(workshop: Any, tmp_path: Path) -> None:
    folder = tmp_path / "processes"
    folder.mkdir()
    script = (
        "from airchoir.jobs import run; import workshop_for_processes as w\n"
        f"list(run(range(9), w.Linger({str(folder)!r}), processes=lambda: 2))"
    )
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    parent = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path})
    until(lambda: len(list(folder.iterdir())) == 2)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    workers = [int(file.name) for file in folder.iterdir()]
    until(lambda: not any(alive(worker) for worker in workers))


def test_there_is_at_least_one_core() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)
