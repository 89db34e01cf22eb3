"""`python -m airchoir.training`: as `airchoir train`, on machines that have neither typer nor rich."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from airchoir.jobs import LOCAL
from airchoir.training.plan import make_plan
from airchoir.training.queue import Event, Listener, run_queue
from airchoir.training.telling import JsonLog, Lines, summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    given = _parser().parse_args(arguments)
    try:
        _train(given)
    except (ValueError, OSError) as error:
        print(f"airchoir: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("airchoir: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m airchoir.training", description=__doc__)
    parser.add_argument("task")
    for name, default in (("clients", 20), ("seeds", 5), ("first-seed", 0), ("split-seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name in ("model", "weights", "loss"):
        parser.add_argument(f"--{name}")
    for name in ("skew", "max-minutes"):
        parser.add_argument(f"--{name}", type=float)
    for name in ("data", "log-json"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--on", default=LOCAL)
    parser.add_argument("--out", type=Path, default=Path("results"))
    return parser


def _train(given: argparse.Namespace) -> None:
    plan = make_plan(
        given.task,
        seeds=given.seeds,
        first_seed=given.first_seed,
        changes={"model": given.model, "weights": given.weights, "loss": given.loss},
        clients=given.clients,
        split_seed=given.split_seed,
        skew=given.skew,
        data=given.data,
        device=given.device,
    )
    listeners: list[Listener] = [Lines(lambda line: print(line, file=sys.stderr, flush=True))]
    if given.log_json is not None:
        listeners.append(JsonLog(given.log_json))

    def tell(event: Event) -> None:
        for listener in listeners:
            listener(event)

    print(summary(run_queue(plan, given.out, on=given.on, report=tell, max_minutes=given.max_minutes)))


if __name__ == "__main__":
    sys.exit(main())
