"""From a task to a score bank: shard the data, fit one model per client, and write down what each says."""

from collections.abc import Callable

from airchoir.bank import ScoreBank
from airchoir.jobs import run
from airchoir.tasks import Task
from airchoir.training.plan import Plan
from airchoir.training.setting import Setting

Progress = Callable[[int, int], None]
"""Called with (clients fitted, clients in all)."""


def train(
    task: Task,
    *,
    clients: int = 20,
    seed: int = 0,
    split_seed: int = 0,
    skew: float | None = None,
    progress: Progress | None = None,
) -> ScoreBank:
    """The bank of `clients` models, each fitted on its own shard, in memory; `run_queue` is for what takes longer.

    `split_seed` decides who holds what, `seed` everything random in the fits.
    """
    report = progress or (lambda done, total: None)
    plan = Plan(task, task.recipe(), clients=clients, seeds=(seed,), split_seed=split_seed, skew=skew)
    setting = Setting.of(plan)
    fits = []
    for _, fit in run(setting.clients, setting.start):
        fits.append(fit)
        report(len(fits), clients)
    return setting.bank(seed, fits)
