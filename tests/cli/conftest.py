"""The command line as people use it: run in an empty folder, every word on both streams looked at."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airchoir import ScoreBank
from airchoir.cli import main

INFINITE = {"inf": float("inf")}


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]
Refused = Callable[..., str]
ReadJson = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs `airchoir` with arguments in this process."""

    def execute(*arguments: object) -> Ran:
        status = main([str(argument) for argument in arguments])
        return Ran(status, *capsys.readouterr())

    return execute


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder below, hidden ones too, with its content."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def refused(run: Run, folder: Path) -> Refused:
    """The complaint about bad input: one line that ends in a remedy, status 2, nothing else printed, written or changed."""

    def execute(*arguments: object) -> str:
        before = tree(folder)
        ran = run(*arguments)
        assert ran.status == 2, ran
        assert ran.out == ""
        complaint = re.fullmatch(r"airchoir: ([^\n]+[;:,] [^\n]+)\n", ran.err)
        assert complaint, f"not one line with a remedy: {ran.err!r}"
        assert tree(folder) == before
        return complaint[1]

    return execute


@pytest.fixture
def read_json(run: Run) -> ReadJson:
    """The one JSON object that a command prints on a clean standard output, "inf" read as infinity."""

    def execute(*arguments: object) -> dict[str, Any]:
        ran = run(*arguments, "--json")
        assert (ran.status, ran.err) == (0, "")
        assert ran.out.endswith("\n")
        assert ran.out.count("\n") == 1
        values = json.loads(ran.out, parse_constant=pytest.fail)
        assert isinstance(values, dict)
        return {name: INFINITE.get(value, value) if isinstance(value, str) else value for name, value in values.items()}

    return execute


@pytest.fixture
def bank_file(folder: Path, make_bank: Callable[..., ScoreBank]) -> Callable[..., Path]:
    """A function that writes a synthetic bank under a name and returns its path."""

    def write(name: str = "bank.safetensors", **options: Any) -> Path:
        path = folder / name
        make_bank(**options).save(path)
        return path

    return write


def outside(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """`python -m airchoir` in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **options.pop("env", {})}
    command = [sys.executable, "-m", "airchoir", *arguments]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, text=True, env=environment, check=False, timeout=60, **streams)


@pytest.fixture(scope="session")
def start() -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that runs `python -m airchoir` in a process of its own."""
    return outside
