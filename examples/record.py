"""What the examples here write down: rows that say where they come from, and figures beside them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from airchoir import Estimate, Scheme, ScoreBank, provenance
from airchoir.bank import write_atomically
from airchoir.provenance import describe, plain

STYLES: tuple[dict[str, Any], ...] = (
    {"color": "#000000", "linestyle": "-", "marker": "o"},
    {"color": "#0072B2", "linestyle": (0, (6, 3)), "marker": "s"},
    {"color": "#D55E00", "linestyle": (0, (6, 2, 1, 2)), "marker": "^"},
    {"color": "#009E73", "linestyle": (0, (1, 1.5)), "marker": "D"},
)
"""Colours that every eye tells apart [Okabe and Ito 2008], and dashes that a grey print does."""


def row(scheme: Scheme, banks: Sequence[ScoreBank], estimate: Estimate) -> dict[str, Any]:
    """One result and all that it depends on."""
    return {
        "task": banks[0].metadata.get("task", ""),
        "banks": [bank.metadata.get("checksum", "") for bank in banks],
        "seed": [int(bank.metadata.get("seed", 0)) for bank in banks],
        "scheme": describe(scheme),
        "accuracy": estimate.accuracy,
        "accuracy_std": estimate.accuracy_std,
        "macro_f1": estimate.macro_f1,
        "macro_f1_std": estimate.macro_f1_std,
        "sigma": estimate.sigma,
        "channel_noise_variance": estimate.channel_noise_variance,
        "commit": provenance.commit(),
        "versions": provenance.versions("numpy", "scipy"),
    }


def write(path: Path, document: dict[str, Any]) -> None:
    """The document as JSON, one row of a list per line."""
    parts = []
    for name, value in plain(document).items():
        lines = ",\n".join(f"  {json.dumps(item)}" for item in value) if isinstance(value, list) else None
        parts.append(f" {json.dumps(name)}: " + (f"[\n{lines}\n ]" if lines else json.dumps(value)))
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    write_atomically(path, lambda temporary: temporary.write_text(text))


def draw(figure: Any, path: Path, *, formats: Sequence[str] = ("png", "svg")) -> None:
    """The figure in each format, without a date, so that the same numbers give the same file."""
    for ending in formats:
        metadata = {"Date": None} if ending == "svg" else {}
        figure.savefig(path.with_suffix(f".{ending}"), dpi=110, bbox_inches="tight", metadata=metadata)
