"""`airchoir bank`: look at score banks, check them, make them from arrays."""

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from airchoir.bank import ScoreBank, convert
from airchoir.cli.options import Json
from airchoir.cli.output import console, foldable, percent, print_json, table
from airchoir.files import read_arrays
from airchoir.training.setting import checksum

app = typer.Typer(help="Score banks: what every client said about a test set.", invoke_without_command=True)
File = Annotated[Path, typer.Argument(metavar="BANK", help="A score bank.", show_default=False)]


@app.callback()
def root(context: typer.Context) -> None:
    """Score banks: what every client said about a test set."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="Example: airchoir bank show airchoir-demo/banks/digits/seed-0.safetensors")
def show(path: File, json: Json = False) -> None:
    """What a bank holds: shapes, provenance, and how good its clients are alone and together."""
    bank = ScoreBank.load(path)
    facts = _facts(bank)
    if json:
        print_json({"path": str(path), **facts, "metadata": dict(bank.metadata)})
        return
    made = table("what", "value")
    foldable(made.columns[1])
    for name, value in facts.items():
        made.add_row(name.replace("_", " "), value if isinstance(value, str) else f"{value}")
    for name, value in sorted(bank.metadata.items()):
        made.add_row(name, value if len(value) <= 100 else value[:97] + "...")
    console().print(str(path), soft_wrap=True)
    console().print(made)


def _facts(bank: ScoreBank) -> dict[str, Any]:
    alone = np.array([np.mean(np.argmax(rows, axis=-1) == bank.test_labels) for rows in bank.test_scores])
    return {
        "clients": bank.clients,
        "test_queries": bank.queries,
        "classes": bank.classes,
        "val_queries": 0 if bank.val_labels is None else len(bank.val_labels),
        "dtype": str(bank.test_scores.dtype),
        "client_accuracy_percent": f"{percent(alone.min())} to {percent(alone.max())}, mean {percent(alone.mean())}",
    }


@app.command(epilog="Example: airchoir bank check results/banks/*/*.safetensors && echo fine")
def check(
    paths: Annotated[list[Path], typer.Argument(metavar="BANK...", help="Score banks.", show_default=False)],
) -> None:
    """Exit with 0 if every bank is whole and valid, with 2 and the first fault otherwise."""
    for path in paths:
        bank = ScoreBank.load(path)
        _check_sum(path, bank)
        typer.echo(f"{path}: fine, {bank.clients} clients, {bank.queries} queries, {bank.classes} classes")


def _check_sum(path: Path, bank: ScoreBank) -> None:
    """Compare a bank with the checksum that training wrote into it, if there is one."""
    metadata = {name: value for name, value in bank.metadata.items() if name not in ("format", "checksum")}
    if "checksum" in bank.metadata and checksum(bank.tensors(), metadata) != bank.metadata["checksum"]:
        raise ValueError(f"{path} is not what was written: its checksum differs; copy or make it again")


@app.command(
    "import",
    epilog="Example: airchoir bank import scores.npy labels.npy --out my.safetensors --meta task=my-task",
)
def import_(
    scores: Annotated[
        Path,
        typer.Argument(
            help="A .npy (clients, queries, classes), or a .npz with a bank file's names.", show_default=False
        ),
    ],
    labels: Annotated[Path | None, typer.Argument(help="A .npy (queries,); a .npz brings its own.")] = None,
    *,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The bank to write.", show_default=False)],
    val_scores: Annotated[Path | None, typer.Option(metavar="FILE", help="Validation scores, .npy.")] = None,
    val_labels: Annotated[Path | None, typer.Option(metavar="FILE", help="Validation labels, .npy.")] = None,
    logits: Annotated[bool, typer.Option("--logits", help="The scores are logits: apply a softmax.")] = False,
    dtype: Annotated[str, typer.Option(help="How scores are kept: float16 or float32.")] = "float16",
    meta: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Provenance to keep; repeatable.")] = None,
) -> None:
    """Make a bank from arrays of probabilities or logits."""
    if dtype not in ("float16", "float32"):
        raise ValueError(f"dtype must be float16 or float32, got {dtype!r}")
    metadata = _metadata(meta or [])
    given = [path for path in (scores, labels, val_scores, val_labels) if path is not None]
    if any(path.resolve() == out.resolve() for path in given):
        raise ValueError(f"--out {out} would overwrite what it is made of; give another name")
    arrays = read_arrays(scores, labels)
    if (val_scores is None) != (val_labels is None):
        raise ValueError("--val-scores and --val-labels belong together; give both or neither")
    if val_scores is not None and val_labels is not None:
        validation = read_arrays(val_scores, val_labels)
        arrays |= {"val_scores": validation["test_scores"], "val_labels": validation["test_labels"]}
    for split in ("test", "val"):
        if f"{split}_scores" in arrays:
            arrays[f"{split}_scores"] = convert(arrays[f"{split}_scores"], dtype, logits=logits)
    bank = ScoreBank(**arrays, metadata=metadata)
    bank.save(out)
    typer.echo(f"{out}: {bank.clients} clients, {bank.queries} queries, {bank.classes} classes, {dtype}")


def _metadata(pairs: list[str]) -> dict[str, str]:
    bad = [pair for pair in pairs if "=" not in pair or pair.startswith("=")]
    if bad:
        raise ValueError(f"--meta wants KEY=VALUE, got {json_module.dumps(bad[0])}; for example --meta task=my-task")
    reserved = [pair for pair in pairs if pair.split("=", 1)[0] in ("format", "checksum", "fingerprint")]
    if reserved:
        raise ValueError(
            f"--meta cannot set {json_module.dumps(reserved[0])}, which airchoir writes itself; use another key"
        )
    return dict(pair.split("=", 1) for pair in pairs)
