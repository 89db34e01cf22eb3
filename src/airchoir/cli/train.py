"""`airchoir train`: from a task to score banks, in as many sittings as it takes."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from airchoir.cli import options
from airchoir.cli.output import console
from airchoir.jobs import LOCAL
from airchoir.training.plan import make_plan
from airchoir.training.queue import Event, Listener, run_queue
from airchoir.training.telling import JsonLog, Lines, summary

EXAMPLES = "Example: airchoir train digits --seeds 5 --out my-results"


def train(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What the clients learn (airchoir list).")],
    clients: options.Clients = 20,
    seeds: Annotated[int, typer.Option(parser=options.whole, metavar="N", help="Runs: seeds 0 to N-1.")] = 5,
    first_seed: Annotated[
        int, typer.Option(parser=options.whole, metavar="S", help="Begin with seed S instead of 0.")
    ] = 0,
    model: Annotated[
        str | None, typer.Option(metavar="M", help="torchvision:NAME, timm:NAME or transformers:NAME-OR-DIR.")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="W", help="What a fit starts from: imagenet, pretrained, none or a .safetensors."),
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="published (softmax twice, as in the paper) or plain cross-entropy.")
    ] = None,
    skew: Annotated[
        float | None,
        typer.Option(parser=options.real, metavar="ALPHA", help="Dirichlet label skew of the shards. Without, equal."),
    ] = None,
    split_seed: Annotated[
        int, typer.Option(parser=options.whole, metavar="S", help="Seed of who holds what, the same for all runs.")
    ] = 0,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the data set lies. Without, the Hugging Face hub.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    on: Annotated[str, typer.Option(help="local, ray, or ray://HOST:PORT for a cluster.")] = LOCAL,
    log_json: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append one JSON line per event to this file.")
    ] = None,
    max_minutes: Annotated[
        float | None,
        typer.Option(parser=options.real, metavar="M", help="Begin no client after M minutes; rerun to go on."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where clients and banks go.")] = Path("results"),
) -> None:
    """Train every client on data it shares with nobody, and keep what each says as score banks.

    Stop it at any moment and run the same command again: finished clients are kept, nothing is trained twice.
    """
    plan = make_plan(
        task,
        clients=clients,
        seeds=seeds,
        first_seed=first_seed,
        changes={"model": model, "weights": weights, "loss": loss},
        split_seed=split_seed,
        skew=skew,
        data=data,
        device=device,
    )
    with ExitStack() as stack:
        listeners: list[Listener] = [stack.enter_context(_shown())]
        if log_json is not None:
            log = JsonLog(log_json)
            stack.callback(log.close)
            listeners.append(log)
        try:
            outcome = run_queue(plan, out, on=on, report=_all(listeners), max_minutes=max_minutes)
        except OSError as error:
            place, reason = error.filename or out, error.strerror or error
            raise ValueError(
                f"{place}: {reason}; finished clients are kept: mend that and run the same command again"
            ) from None
    printer = console()
    printer.print(summary(outcome), soft_wrap=True)
    if outcome.banks:
        printer.print(f"Next: airchoir evaluate {' '.join(map(str, outcome.banks))}", soft_wrap=True)


def _all(listeners: list[Listener]) -> Listener:
    def tell(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return tell


@contextmanager
def _shown() -> Iterator[Listener]:
    """Shows events on standard error: a bar on a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty():
        yield Lines(lambda line: typer.echo(line, err=True))
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=True,
    )
    with bar:
        yield Bar(bar)


class Bar:
    """One bar over all clients that are left, and beside it the epoch that was last heard of."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("loading the data", total=None)
        self._already: int | None = None
        self._fitted = 0

    def __call__(self, event: Event) -> None:
        details = event.details
        if event.what == "started":
            if self._already is None:
                self._already = details["done"]
                self._bar.update(self._task, total=details["total"] - self._already)
            self._show(f"seed {event.seed} client {event.client}: getting ready", 0.0)
        elif event.what == "epoch":
            speed = f"loss {details['loss']:.4f}, {details['examples_per_second']:,.0f} examples/s"
            words = f"seed {event.seed} client {event.client}: epoch {details['epoch']}/{details['epochs']}, {speed}"
            self._show(words, details["epoch"] / details["epochs"])
        elif event.what == "finished":
            self._fitted += 1
            self._bar.update(self._task, completed=self._fitted)
        elif event.what == "bank":
            self._bar.console.print(f"seed {event.seed}: {details['path']}", markup=False, soft_wrap=True)

    def _show(self, words: str, part: float) -> None:
        self._bar.update(self._task, description=words, completed=self._fitted + min(part, 0.99))
