"""Independent jobs, here or on a Ray cluster; results come back to whoever asked, as they finish."""

from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any, TypeVar

from airchoir.registry import suggestion

Job = TypeVar("Job")
Result = TypeVar("Result")
Note = Callable[[Any], None]
"""Takes what a job has to say before it is done."""
Work = Callable[[Job, Note], Result]
"""Does one job. Made once per process, for many jobs."""

LOCAL, RAY = "local", "ray"
MOST_LOSSES = 5
"""How often a job may be lost with its process before it is given up."""


def check_place(on: str) -> None:
    """Refuse what is no place to run jobs, or a cluster where Ray is missing."""
    if on == LOCAL:
        return
    if on != RAY and not on.startswith(f"{RAY}://"):
        raise ValueError(f"unknown place {on!r} to run on; {suggestion(on, [LOCAL, RAY, f'{RAY}://HOST:PORT'])}")
    if find_spec("ray") is None:
        raise ValueError(f"to run on {on} needs Ray, which is not installed; run: pip install 'airchoir[cluster]'")


def run(
    jobs: Iterable[Job],
    start: Callable[[], Work[Job, Result]],
    *,
    on: str = LOCAL,
    began: Callable[[Job], None] = lambda job: None,
    note: Callable[[Job, Any], None] = lambda job, said: None,
    processes: Callable[[], int] | None = None,
    cpus: float = 1.0,
    gpus: float = 0.0,
) -> Iterator[tuple[Job, Result]]:
    """Every job with its result, in the order in which they finish; jobs must differ from each other.

    `start` makes the work: once in this process, or once in each process that works. The next job is taken from `jobs` only
    when somebody is free to do it, so the iterable may stop early; after every result it is asked again, even if it had
    none left. `began` hears when a job is begun, and `note` what it says: at once here, with its result from a cluster.

    With `processes`, local jobs are done by processes of their own, each on one core: as many as it says whenever one could
    be used, and by this one as long as it says 0; `start` must be picklable then. `cpus` and `gpus` are what a job takes of a
    cluster; fractions share a device, and GPUs are asked for only where there are any. A job that is lost with its process
    or node is done again by another.
    """
    check_place(on)
    if on == LOCAL:
        if processes is None:
            return _here(jobs, start, began, note)
        from airchoir.jobs.processes import run_in_processes

        return run_in_processes(iter(jobs), start, began, note, processes)
    from airchoir.jobs.cluster import run_on_ray

    needs = {"CPU": cpus, "GPU": gpus}
    return run_on_ray(iter(jobs), start, began, note, address=None if on == RAY else on, needs=needs)


def _here(
    jobs: Iterable[Job],
    start: Callable[[], Work[Job, Result]],
    began: Callable[[Job], None],
    note: Callable[[Job, Any], None],
) -> Iterator[tuple[Job, Result]]:
    work: Work[Job, Result] | None = None
    for job in jobs:
        work = work or start()
        began(job)

        def say(said: Any, job: Job = job) -> None:
            note(job, said)

        yield job, work(job, say)
