"""Does a memory-mapped bank of a million queries stay small in memory, and is the cost linear in queries?

20 clients x 10 classes in float16, 400 MB on disk. Wanted: anonymous memory grows by under 64 MB while a fresh process loads
and evaluates it. Reported: nanoseconds per query, loading included, at 1e4, 1e5 and 1e6 queries.
"""

import json
import math
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import airchoir as ac
from benchmarks.answer import Answer, Sample
from benchmarks.banks import SEED, synthesise

STATUS = Path("/proc/self/status")
WRITTEN_AT_ONCE = 10_000
NOISY, NOISELESS = ac.Privacy(epsilon=1.0), ac.NoPrivacy()
CONDITIONS = {
    "vote, p = 1": ac.Scheme(rule=ac.MajorityVote(), privacy=NOISY),
    "belief, p = 1": ac.Scheme(rule=ac.BeliefSum(), privacy=NOISY),
    "vote, p = 0.5": ac.Scheme(rule=ac.MajorityVote(), privacy=NOISY, participation=0.5),
    "noiseless vote, p = 0.5": ac.Scheme(
        rule=ac.MajorityVote(), privacy=NOISELESS, channel=ac.Awgn(math.inf), participation=0.5
    ),
}


def answers(quick: bool) -> Iterator[Answer]:
    sizes = (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{size}.safetensors" for size in sizes]
        for path, size in zip(paths, sizes, strict=True):
            write(path, size)
        for name in CONDITIONS:
            probes = [probe(path, name) for path in paths]
            costs = [f"{1e9 * p['seconds'] / size:.0f}" for p, size in zip(probes, sizes, strict=True)]
            growth = probes[-1]["anonymous_mb"]
            yield Answer(
                f"{sizes[-1]} mapped queries, {name}: memory",
                Sample((math.nan if growth is None else growth,), "MB"),
                limit=None if growth is None else 64.0,
                note=f"ns per query at {', '.join(f'{size:.0e}' for size in sizes)} queries: {', '.join(costs)}",
            )


def write(path: Path, queries: int) -> None:
    """A bank on disk, block by block: header, scores (clients, queries, classes), labels."""
    clients, classes = 20, 10
    row, scores_end = 2 * classes, 2 * clients * queries * classes
    entries = {
        "__metadata__": {"format": "1", "task": "synthetic"},
        "test_scores": {"dtype": "F16", "shape": [clients, queries, classes], "data_offsets": [0, scores_end]},
        "test_labels": {"dtype": "I64", "shape": [queries], "data_offsets": [scores_end, scores_end + 8 * queries]},
    }
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        start = file.tell()
        for first in range(0, queries, WRITTEN_AT_ONCE):
            block = synthesise(queries=WRITTEN_AT_ONCE, seed=SEED + first, dtype="float16")
            for client, scores in enumerate(block.test_scores):
                file.seek(start + (client * queries + first) * row)
                file.write(scores.tobytes())
            file.seek(start + scores_end + 8 * first)
            file.write(block.test_labels.tobytes())


def probe(path: Path, condition: str) -> dict[str, Any]:
    """What loading and evaluating costs a fresh process."""
    command = [sys.executable, "-m", "benchmarks.large_bank", str(path), condition]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measure(path: Path, scheme: ac.Scheme) -> dict[str, float | None]:
    """CPU seconds of this thread and growth of the process's anonymous memory, sampled every 2 ms by another."""
    evaluate, load = ac.evaluate, ac.ScoreBank.load
    before = anonymous_mb()
    peak, done = before, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak or 0.0, anonymous_mb() or 0.0)

    watcher = threading.Thread(target=watch)
    if before is not None:
        watcher.start()
    start = time.thread_time()
    evaluate(scheme, load(path))
    seconds = time.thread_time() - start
    done.set()
    return {"seconds": seconds, "anonymous_mb": None if before is None or peak is None else peak - before}


def anonymous_mb() -> float | None:
    """The process's anonymous memory; None where the system does not tell."""
    if not STATUS.exists():
        return None
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("RssAnon"))
    return float(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), CONDITIONS[sys.argv[2]])))
