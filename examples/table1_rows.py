"""Write table 1's ten rows for each score bank, with their provenance.

python examples/table1_rows.py results/banks/*/seed-*.safetensors --out results/rows
"""

import argparse
import json
from pathlib import Path
from typing import Any

from airchoir.experiments.choirs import Choir, load_choirs, measure, source
from airchoir.experiments.table1 import schemes
from airchoir.files import write_atomically
from airchoir.provenance import plain

DELTA = 1e-6


def main() -> None:
    """One JSON file per bank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("banks", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/rows"))
    options = parser.parse_args()
    for path in options.banks:
        (choir,) = load_choirs([path])
        written = options.out / f"{choir.task}-seed-{choir.banks[0].metadata['seed']}.json"
        text = json.dumps(plain(record(choir)), indent=1) + "\n"
        write_atomically(written, lambda temporary, text=text: temporary.write_text(text))
        print(written)


def record(choir: Choir) -> dict[str, Any]:
    """The rows, what the bank says of its making, and what evaluated it."""
    grid = schemes(DELTA).items()
    rows = [measure(scheme, choir).row(method=method, epsilon=epsilon) for (method, epsilon), scheme in grid]
    return {"bank": dict(choir.banks[0].metadata), "rows": rows, "evaluated_by": source()}


if __name__ == "__main__":
    main()
