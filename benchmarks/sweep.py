"""Is a sweep of 10,000 conditions bound by the exact engine, or by its bookkeeping?

Ours: the command `airchoir sweep`, all its processes together: reading and checking the grid, handing out work, writing rows
and putting them in order. Rival: a process that loads the bank and calls `evaluate` in a loop over the same schemes, and keeps
nothing. Both after their imports and on one core. Wanted: less than 10 % of ours is not in the rival, so a ratio of at least
0.9. (On several cores every process has its own imports, 0.3 s, and is started only for 5 s of work.)
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.answer import Answer, Sample
from benchmarks.banks import synthesise

GRID = """
rule = {rules}
epsilon = {{ from = 0.5, to = 10.0, step = 0.5 }}
snr_db = {{ from = -2.0, to = 20.0, step = {step} }}
"""

SWEEP = """
import resource, sys, time
from airchoir.cli import main

start = time.process_time()
assert main(["sweep", sys.argv[1], sys.argv[2], "--out", sys.argv[3]]) == 0
others = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.process_time() - start + others.ru_utime + others.ru_stime)
"""

BOOKKEEPING = """
import numpy
from airchoir.experiments.sweep.condition import Condition
from airchoir.metrics import Estimate

known = Estimate(*[0.123456789012345] * 6, *[numpy.zeros(10)] * 4)
Condition.estimate = lambda self, bank: known
"""
"""Put before it: an engine that takes no time."""

LOOP = """
import sys, time
from pathlib import Path
from airchoir import Awgn, BeliefSum, MajorityVote, Privacy, Scheme, ScoreBank, evaluate
from airchoir.experiments.sweep.grid import read_grid

values = read_grid(Path(sys.argv[1])).blocks[0].values
start = time.process_time()
bank = ScoreBank.load(sys.argv[2])
for rule in values["rule"]:
    for epsilon in values["epsilon"]:
        for snr_db in values["snr_db"]:
            kind = {"vote": MajorityVote, "belief": BeliefSum}[rule]
            evaluate(Scheme(rule=kind(), privacy=Privacy(epsilon), channel=Awgn(snr_db)), bank)
print(time.process_time() - start)
"""


def answers(quick: bool) -> Iterator[Answer]:
    for rules, steps, repeats in ((["vote"], 500, 7), (["vote", "belief"], 250, 2)):
        with tempfile.TemporaryDirectory() as folder:
            yield answer(Path(folder), rules, steps=20 if quick else steps, repeats=1 if quick else repeats)


def answer(folder: Path, rules: list[str], *, steps: int, repeats: int) -> Answer:
    """A sweep over `steps` SNRs and 20 epsilons for each rule."""
    grid, bank = folder / "grid.toml", folder / "bank.safetensors"
    grid.write_text(GRID.format(rules=json.dumps(rules), step=22.0 / (steps - 1)))
    synthesise().save(bank)
    times = []
    for repeat in range(repeats):
        out = folder / str(repeat)
        times.append((cpu_seconds(SWEEP, grid, bank, out), cpu_seconds(LOOP, grid, bank)))
        assert (out / "rows.jsonl").read_bytes().count(b"\n") == 20 * steps * len(rules)
    ours, rival = (Sample(column, "s") for column in zip(*times, strict=True))
    again = cpu_seconds(SWEEP, grid, bank, out)
    empty = cpu_seconds(BOOKKEEPING + SWEEP, grid, bank, folder / "empty")
    return Answer(
        f"sweep, {20 * steps * len(rules)} conditions, {' and '.join(rules)}",
        ours,
        rival,
        ratio_wanted=0.9,
        note=f"beside the loop: {1.0 - rival.best / ours.best:.1%} of the CPU time; with an engine that takes no time: "
        f"{empty:.2f} s, {empty / ours.best:.1%}; the same command again, with nothing left to do: {again:.2f} s",
    )


def cpu_seconds(script: str, *arguments: Path) -> float:
    """What a Python process, on one core with one thread, says it took."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-c", script, *map(str, arguments)]
    ran = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=on_one_core)
    return float(ran.stdout.split("\n")[-2])


def on_one_core() -> None:
    """Keep this process and those it starts on one core: two that share one's caches would disturb each other."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
