"""The queue of fits: what is finished is kept, what is missing is fitted, and a bank is made as soon as its clients are there.

Stop it at any moment, in any way, and start it again: it goes on with the first client that is not finished.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from airchoir.jobs import LOCAL, check_place, run
from airchoir.training.fitter import Epoch, check_installed
from airchoir.training.plan import Plan
from airchoir.training.results import Results
from airchoir.training.setting import Client, Setting

_SHARE_OF_GPU = 0.25


@dataclass(frozen=True)
class Event:
    """Something that happened to a client, or to the bank of a run where `client` is None."""

    what: str
    """`started`, `epoch`, `finished`, `kept` (found finished on the disk) or `bank`."""
    seed: int
    client: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """epoch: epoch, epochs, loss, examples_per_second. finished: seconds. bank: path, kept. All but epoch: done, total."""

    def record(self) -> dict[str, Any]:
        """As one flat object."""
        whose = {} if self.client is None else {"client": self.client}
        return {"event": self.what, "seed": self.seed, **whose, **self.details}


Listener = Callable[[Event], None]


@dataclass(frozen=True)
class Outcome:
    """What a run of the queue came to."""

    fitted: int
    kept: int
    left: int
    banks: list[Path]


def run_queue(
    plan: Plan,
    out: Path,
    *,
    on: str = LOCAL,
    report: Listener = lambda event: None,
    max_minutes: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Fit what is missing below `out`. After `max_minutes` no client is begun; the one in flight is finished."""
    check_place(on)
    if max_minutes is not None and not max_minutes > 0.0:
        raise ValueError(f"max-minutes must be positive, got {max_minutes:g}; leave it out to go on to the end")
    if on == LOCAL:
        check_installed(plan.recipe)
    deadline = None if max_minutes is None else clock() + 60.0 * max_minutes
    results = Results(out, Setting.of(plan))
    for seed in plan.seeds:
        results.check_bank(seed)
    return Queue(results, report, clock, deadline).run(on)


class Queue:
    """The fits of a plan, and how far they are."""

    def __init__(self, results: Results, report: Listener, clock: Callable[[], float], deadline: float | None) -> None:
        self._results, self._report, self._clock, self._deadline = results, report, clock, deadline
        plan = results.setting.plan
        self._missing = {seed: set(results.setting.of_seed(seed)) for seed in plan.seeds}
        self._total = plan.clients * len(plan.seeds)
        self._fitted = self._kept = 0
        self._begun: dict[Client, float] = {}
        self._banks: dict[int, Path] = {}

    def run(self, on: str) -> Outcome:
        """Take stock, then fit and save one client after another."""
        setting = self._results.setting
        for seed in setting.plan.seeds:
            self._take_stock(seed)
        gpus = 0.0 if setting.plan.device == "cpu" else _SHARE_OF_GPU
        for client, fit in run(self._jobs(), setting.start, on=on, began=self._begin, note=self._note, gpus=gpus):
            self._results.save_client(client, fit)
            self._fitted += 1
            self._tell("finished", client, seconds=round(self._clock() - self._begun[client], 3))
            self._settle(client)
        left = sum(len(missing) for missing in self._missing.values())
        return Outcome(self._fitted, self._kept, left, [self._banks[seed] for seed in sorted(self._banks)])

    def _take_stock(self, seed: int) -> None:
        """What is finished already; who has a run's bank needs its clients no more."""
        if self._results.has_bank(seed):
            self._kept += len(self._missing[seed])
            self._missing[seed].clear()
            self._announce_bank(seed, self._results.bank_path(seed), kept=True)
        for client in sorted(self._missing[seed]):
            self._keep(client)

    def _keep(self, client: Client) -> bool:
        """Whether the client is finished on the disk, and then it is settled."""
        if self._results.load_client(client) is None:
            return False
        self._kept += 1
        self._tell("kept", client)
        self._settle(client)
        return True

    def _settle(self, client: Client) -> None:
        self._missing[client.seed].remove(client)
        if not self._missing[client.seed]:
            self._announce_bank(client.seed, self._results.save_bank(client.seed), kept=False)

    def _announce_bank(self, seed: int, path: Path, *, kept: bool) -> None:
        self._banks[seed] = path
        self._report(Event("bank", seed, details={"path": str(path), "kept": kept, **self._count()}))

    def _jobs(self) -> Iterator[Client]:
        """The clients to fit, looked up again when their turn comes: another process may have finished them by then."""
        for client in [client for missing in self._missing.values() for client in sorted(missing)]:
            if self._deadline is not None and self._clock() >= self._deadline:
                return
            if not self._keep(client):
                yield client

    def _begin(self, client: Client) -> None:
        self._begun[client] = self._clock()
        self._tell("started", client)

    def _note(self, client: Client, epoch: Epoch) -> None:
        self._report(Event("epoch", client.seed, client.index, asdict(epoch)))

    def _tell(self, what: str, client: Client, **details: float) -> None:
        self._report(Event(what, client.seed, client.index, {**details, **self._count()}))

    def _count(self) -> dict[str, int]:
        return {"done": self._fitted + self._kept, "total": self._total}
