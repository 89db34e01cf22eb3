"""Jobs in processes of this machine, each on one core. None outlives the process that started it."""

import os
import pickle
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from queue import SimpleQueue
from typing import Any

from airchoir.jobs import MOST_LOSSES, Job, Result, Work

_SERVE = "from airchoir.jobs.processes import serve; serve()"
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
"""More threads than cores cost time, and how many there are changes the last digits of a matrix product."""
_MEMORY_BYTES = 512 << 20
"""What a process may need, libraries included."""


def cores() -> int:
    """How many processes may work here: the cores this process may use, fewer where half the memory is too small."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(allowed, memory // 2 // _MEMORY_BYTES))


def has_one_thread() -> bool:
    """Whether numpy's matrix products take one thread in this process too, as far as can be told."""
    import numpy

    setting = os.environ.get("OPENBLAS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS")
    described: Any = numpy.show_config(mode="dicts")
    return setting == "1" and "openblas" in described["Build Dependencies"]["blas"]["name"]


def run_in_processes(
    jobs: Iterator[Job],
    start: Callable[[], Work[Job, Result]],
    began: Callable[[Job], None],
    note: Callable[[Job, Any], None],
    wanted: Callable[[], int],
) -> Iterator[tuple[Job, Result]]:
    """Every job with its result, in the order in which they finish, from as many processes as are `wanted`.

    As long as none is, this process does the jobs.
    """
    crew = _Crew(start, wanted)
    try:
        yield from crew.run(jobs, began, note)
    finally:
        crew.dismiss()


class _Member:
    """A process that does one job after another, and the line to it."""

    def __init__(self, start: bytes) -> None:
        self.line, theirs = Pipe()
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _SERVE, str(theirs.fileno())],
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": path},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for whoever started it
            )
        self._start: bytes | None = start

    def give(self, job: Any) -> None:
        if self._start is not None:
            self.line.send_bytes(self._start)
            self._start = None
        self.line.send(job)

    def dismiss(self) -> int:
        """End it, whatever it does; its exit status."""
        self.line.close()
        self._process.kill()
        return self._process.wait()


class _Crew:
    """Processes that take one job after another. Who is lost is replaced, and the job it had is done again."""

    def __init__(self, start: Callable[[], Any], wanted: Callable[[], int]) -> None:
        self._start, self._wanted = start, wanted
        self._own_work: Any = None
        self._working: dict[Any, tuple[_Member, Any]] = {}
        """The line to somebody -> who, and the job."""
        self._idle: list[_Member] = []
        self._again: deque[Any] = deque()
        self._losses: Counter[Any] = Counter()

    def run(
        self, jobs: Iterator[Any], began: Callable[[Any], None], note: Callable[[Any, Any], None]
    ) -> Iterator[tuple[Any, Any]]:
        """Jobs with their results, as they finish."""
        while True:
            yield from self._alone(jobs, began, note)
            self._hand_out(jobs, began)
            if not self._working and not self._again:
                return
            for line in wait(list(self._working)):
                yield from self._heard(line, note)

    def dismiss(self) -> None:
        """End every process."""
        for member in [*(member for member, _ in self._working.values()), *self._idle]:
            member.dismiss()

    def _alone(
        self, jobs: Iterator[Any], began: Callable[[Any], None], note: Callable[[Any, Any], None]
    ) -> Iterator[tuple[Any, Any]]:
        """The jobs of this process, until others are wanted."""
        while not (self._working or self._idle or self._again or self._wanted()):
            job = next(jobs, None)
            if job is None:
                return
            self._own_work = self._own_work or self._start()
            began(job)
            yield job, self._own_work(job, partial(note, job))

    def _hand_out(self, jobs: Iterator[Any], began: Callable[[Any], None]) -> None:
        while self._idle or len(self._working) < max(1, self._wanted()):
            job = self._again.popleft() if self._again else next(jobs, None)
            if job is None:
                return
            member = self._idle.pop() if self._idle else _Member(pickle.dumps(self._start))
            self._working[member.line] = member, job
            began(job)
            try:
                member.give(job)
            except OSError:
                self._lost(member.line)

    def _heard(self, line: Any, note: Callable[[Any, Any], None]) -> Iterator[tuple[Any, Any]]:
        """What a process has to say of its job."""
        member, job = self._working[line]
        try:
            what, said = line.recv()
        except (EOFError, OSError):
            self._lost(line)
            return
        if what == "note":
            note(job, said)
            return
        del self._working[line]
        self._idle.append(member)
        if what == "error":
            raise said
        self._losses.pop(job, None)
        yield job, said

    def _lost(self, line: Any) -> None:
        member, job = self._working.pop(line)
        status = member.dismiss()
        self._losses[job] += 1
        if self._losses[job] > MOST_LOSSES:
            reason = f"signal {-status}" if status < 0 else f"exit status {status}"
            raise ValueError(
                f"{job} was lost {self._losses[job]} times with its process ({reason}); is there memory enough?"
            )
        self._again.append(job)


def serve() -> None:
    """Do the jobs that come down the line named in the arguments, and leave when whoever gives them is gone."""
    line: Connection[Any, Any] = Connection(int(sys.argv[1]))
    inbox: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(line, inbox), daemon=True).start()
    work: Work[Any, Any] | None = None
    while True:
        message = inbox.get()
        try:
            if work is None:
                work = pickle.loads(message)()
                continue
            answer = "done", work(pickle.loads(message), lambda said: line.send(("note", said)))
        except Exception as error:
            answer = "error", _portable(error)
        line.send(answer)


def _listen(line: Any, inbox: "SimpleQueue[bytes]") -> None:
    """Pass on what comes; a closed line ends the process, even in the middle of a job."""
    try:
        while True:
            inbox.put(line.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)


def _portable(error: Exception) -> Exception:
    """The error, or what is left of it where it cannot travel."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
