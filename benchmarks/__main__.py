"""Run every question, or those named, and print one table. Nothing here judges by its exit status: it reports."""

import argparse
import json
import os
import platform
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy
import scipy

import airchoir
from benchmarks.answer import Answer, table
from benchmarks.banks import SEED

QUESTIONS = (
    "belief_condition",
    "vote_condition",
    "figure2",
    "table1",
    "large_bank",
    "import_time",
    "monte_carlo",
    "training_speed",
    "privacy",
    "sweep",
)


def main() -> None:
    """Ask, show progress, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "questions", nargs="*", metavar="QUESTION", help=f"some of {', '.join(QUESTIONS)}; default: all"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, not how fast is it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every measurement to FILE")
    options = parser.parse_args()
    unknown = sorted(set(options.questions) - set(QUESTIONS))
    if unknown:
        parser.error(f"unknown question {unknown[0]!r}; known: {', '.join(QUESTIONS)}")

    setting = describe()
    print(*(f"{name}: {value}" for name, value in setting.items()), sep="\n", flush=True)
    answers = [answer for name in options.questions or QUESTIONS for answer in ask(name, options.quick)]
    print("\nCPU time on one thread, ours and the rival's in turns; ratio = rival's best / our best\n")
    if options.quick:
        print("Quick: the sizes are too small for what is wanted.\n")
    print(table(answers))
    if options.json is not None:
        document = {"setting": setting, "quick": options.quick, "answers": [answer.record() for answer in answers]}
        options.json.write_text(json.dumps(document, indent=1) + "\n")


def ask(name: str, quick: bool) -> list[Answer]:
    """The answers to one question."""
    start = time.perf_counter()
    try:
        answers = list(import_module(f"benchmarks.{name}").answers(quick))
    except ModuleNotFoundError as missing:
        print(f"{name}: skipped, {missing.name} is not installed; pip install -e '.[test]'", flush=True)
        return []
    print(f"{name}: {len(answers)} line(s) in {time.perf_counter() - start:.1f} s", flush=True)
    return answers


def describe() -> dict[str, Any]:
    """Machine, versions and seed; the load tells whether the machine was quiet."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "machine": f"{processor()}, {os.cpu_count()} cores, load {load}, {platform.system()} {platform.machine()}",
        "versions": f"airchoir {airchoir.__version__}, python {platform.python_version()}, numpy {numpy.__version__}, "
        f"scipy {scipy.__version__}",
        "seed": SEED,
    }


def processor() -> str:
    """The processor's name, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or "unknown processor")


if __name__ == "__main__":
    main()
