"""Jobs on a Ray cluster, of which a node may go down."""

import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from airchoir.jobs import MOST_LOSSES, Job, Result, Work

_PATIENCE_SECONDS = 2.0
"""How long to wait for news before looking at the cluster's nodes again."""


def run_on_ray(
    jobs: Iterator[Job],
    start: Callable[[], Work[Job, Result]],
    began: Callable[[Job], None],
    note: Callable[[Job, Any], None],
    *,
    address: str | None,
    needs: dict[str, float],
) -> Iterator[tuple[Job, Result]]:
    """Every job with its result, in the order in which they finish, from the cluster at `address`."""
    with _connected(address) as ray:
        crew = _Crew(ray, start, needs)
        try:
            for job, (notes, result) in crew.run(jobs, began):
                for said in notes:
                    note(job, said)
                yield job, result
        finally:
            crew.dismiss()


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster; a connection that was there before stays."""
    import ray

    mine = not ray.is_initialized()
    if mine:
        try:
            with warnings.catch_warnings(action="ignore"):
                ray.init(address, log_to_driver=False, logging_level="error")
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(
                f"no Ray cluster answers at {address or 'the usual place'} ({reason}); is it up?"
            ) from None
    try:
        yield ray
    finally:
        if mine:
            ray.shutdown()


class _Member:
    """Lives in a process of the cluster."""

    def prepare(self, start: Callable[[], Work[Job, Result]]) -> None:
        self._work: Work[Any, Any] = start()

    def do(self, job: Any) -> tuple[list[Any], Any]:
        notes: list[Any] = []
        return notes, self._work(job, notes.append)


class _Crew:
    """Processes on a cluster that take one job after another.

    Who is lost with a node is replaced where there is room, and the job it had goes to whoever is free first. No job is bound
    to a process that the cluster has no room for yet, so the rest goes on with whatever is left of a cluster.
    """

    def __init__(self, ray: Any, start: Callable[[], Any], needs: dict[str, float]) -> None:
        self._ray = ray
        self._start = ray.put(start)
        self._needs = {name: need for name, need in needs.items() if need and (name == "CPU" or self._has(name))}
        self._preparing: dict[Any, Any] = {}
        """What tells that somebody is ready -> who."""
        self._working: dict[Any, tuple[Any, Any]] = {}
        """What will hold a result -> who works on it, and the job."""
        self._idle: list[Any] = []
        self._again: deque[Any] = deque()
        self._losses: Counter[Any] = Counter()

    def run(self, jobs: Iterator[Any], began: Callable[[Any], None]) -> Iterator[tuple[Any, Any]]:
        """Jobs with their notes and results, as they finish."""
        while True:
            self._hire(jobs)
            self._hand_out(jobs, began)
            if not self._working and not self._again:
                return
            news = [*self._preparing, *self._working]
            done, _ = self._ray.wait(news, num_returns=1, timeout=_PATIENCE_SECONDS)
            for reference in done:
                yield from self._heard(reference)

    def dismiss(self) -> None:
        """Give every process back to the cluster."""
        for member in [*self._preparing.values(), *(member for member, _ in self._working.values()), *self._idle]:
            self._ray.kill(member)

    def _hire(self, jobs: Iterator[Any]) -> None:
        """A process more for every job that would wait otherwise, as far as the cluster has room."""
        room = self._room() - len(self._preparing) - len(self._working) - len(self._idle)
        if room <= 0 and not self._working and not self._preparing and not self._idle:
            needed = ", ".join(f"{need:g} {name}" for name, need in self._needs.items())
            raise ValueError(f"no node of the Ray cluster has {needed} for a job; add a node")
        for _ in range(room):
            if len(self._again) <= len(self._preparing):
                self._again.extend(job for job in [next(jobs, None)] if job is not None)
            if len(self._again) <= len(self._preparing):
                return
            self._preparing.update([self._hired()])

    def _hired(self) -> tuple[Any, Any]:
        member = (
            self._ray.remote(_Member)
            .options(num_cpus=self._needs.get("CPU", 0), num_gpus=self._needs.get("GPU", 0), max_restarts=0)
            .remote()
        )
        return member.prepare.remote(self._start), member

    def _hand_out(self, jobs: Iterator[Any], began: Callable[[Any], None]) -> None:
        while self._idle:
            job = self._again.popleft() if self._again else next(jobs, None)
            if job is None:
                return
            member = self._idle.pop()
            began(job)
            self._working[member.do.remote(job)] = member, job

    def _heard(self, reference: Any) -> Iterator[tuple[Any, Any]]:
        """What came of a preparation or a job."""
        ready = reference in self._preparing
        member, job = (self._preparing.pop(reference), None) if ready else self._working.pop(reference)
        try:
            came = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            self._ray.kill(member)
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except self._ray.exceptions.RayError as error:
            self._lost(member, job, error)
            return
        self._losses.pop(job, None)
        self._idle.append(member)
        if not ready:
            yield job, came

    def _lost(self, member: Any, job: Any, error: Exception) -> None:
        self._ray.kill(member)  # where only the way to it is broken, it must not go on beside its successor
        self._losses[job] += 1
        if self._losses[job] > MOST_LOSSES:
            reason = " ".join(str(error).split())[:200]
            what = "a process" if job is None else str(job)
            raise ValueError(f"{what} was lost {self._losses[job]} times ({reason}); look into the cluster's logs")
        if job is not None:
            self._again.append(job)

    def _room(self) -> int:
        """How many jobs the living nodes can do at once."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        return sum(int(min(node.get(name, 0.0) / need for name, need in self._needs.items())) for node in nodes)

    def _has(self, resource: str) -> bool:
        return any(node["Alive"] and node["Resources"].get(resource, 0) for node in self._ray.nodes())
