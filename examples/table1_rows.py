"""Write table 1's ten rows for each score bank, with their provenance.

python examples/table1_rows.py results/banks/*/seed-*.safetensors --out results/rows
"""

import argparse
import json
from pathlib import Path
from typing import Any

import airchoir
from airchoir import ScoreBank, provenance
from airchoir.bank import write_atomically
from airchoir.experiments.table1 import table1
from airchoir.provenance import describe, plain


def main() -> None:
    """One JSON file per bank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("banks", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/rows"))
    options = parser.parse_args()
    for path in options.banks:
        bank = ScoreBank.load(path)
        written = options.out / f"{bank.metadata['task']}-seed-{bank.metadata['seed']}.json"
        text = json.dumps(plain(record(bank)), indent=1) + "\n"
        write_atomically(written, lambda temporary, text=text: temporary.write_text(text))
        print(written)


def record(bank: ScoreBank) -> dict[str, Any]:
    """The rows, what the bank says of its making, and what evaluated it."""
    rows = [
        {
            "method": row.method,
            "macro_f1": row.estimate.macro_f1,
            "macro_f1_std": row.estimate.macro_f1_std,
            "accuracy": row.estimate.accuracy,
            "accuracy_std": row.estimate.accuracy_std,
            "sigma": row.estimate.sigma,
            "channel_noise_variance": row.estimate.channel_noise_variance,
            "channel_uses": row.estimate.channel_uses,
            "accountant": row.estimate.accountant,
            "scheme": describe(row.scheme),
        }
        for row in table1([bank])
    ]
    return {
        "bank": dict(bank.metadata),
        "rows": rows,
        "evaluated_by": {
            "airchoir": airchoir.__version__,
            "commit": provenance.commit(),
            "versions": provenance.versions("numpy", "scipy"),
            "machine": provenance.machine(),
        },
    }


if __name__ == "__main__":
    main()
