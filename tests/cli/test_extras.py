"""A plain install: whichever package is missing, one line says which extra brings it, before any work."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from airchoir import ScoreBank

MakeBank = Callable[..., ScoreBank]

WITHOUT = """
import sys
from importlib.machinery import PathFinder

hidden = set(sys.argv[1].split(","))

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in hidden else super().find_spec(name, path, target)

sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
from airchoir.cli import main
sys.exit(main(sys.argv[2:]))
"""
EVERYTHING = (
    "sklearn,matplotlib,jinja2,torch,torchvision,timm,transformers,datasets,PIL,pyarrow,onnx,onnxruntime,ray,triton"
)
GRID = '[grid]\nrule = ["vote"]\n'


def without(hidden: str, *line: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process that cannot find the hidden packages."""
    command = [sys.executable, "-c", WITHOUT, hidden, *line]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


@pytest.fixture
def inputs(bank_file: Callable[..., Path], folder: Path) -> Path:
    bank_file()
    (folder / "grid.toml").write_text(GRID)
    return folder


NEEDED = {
    ("sklearn", "demo"): "demo",
    ("matplotlib", "demo"): "demo",
    ("jinja2", "demo"): "demo",
    ("sklearn", "train digits"): "demo",
    ("jinja2", "report ."): "demo",
    ("torch,torchvision,timm,transformers,datasets,PIL", "train cifar10"): "train",
    ("torch", "train cifar10"): "train",
    ("datasets", "train imdb"): "train",
    ("pyarrow", "sweep grid.toml bank.safetensors --format parquet"): "parquet",
    ("ray", "sweep grid.toml bank.safetensors --on ray"): "cluster",
    ("ray", "train digits --on ray://localhost:10001"): "cluster",
}


@pytest.mark.parametrize(("hidden", "line"), NEEDED, ids=lambda value: value.replace("/", "_"))
def test_a_command_whose_package_is_missing_names_the_extra_in_one_line_and_leaves_nothing(
    inputs: Path, hidden: str, line: str
) -> None:
    before = sorted(inputs.rglob("*"))
    ended = without(hidden, *line.split())
    assert (ended.returncode, ended.stdout) == (2, ""), ended
    assert ended.stderr.startswith("airchoir: ")
    assert ended.stderr.count("\n") == 1
    assert f"run: pip install 'airchoir[{NEEDED[hidden, line]}]'" in ended.stderr
    assert sorted(inputs.rglob("*")) == before


def test_an_experiment_without_matplotlib_keeps_its_numbers_and_names_the_extra(inputs: Path) -> None:
    ended = without("matplotlib", "experiment", "noise", "--out", "found")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        ended.stderr == "airchoir: figures need matplotlib, which is not installed; run: pip install 'airchoir[demo]'\n"
    )
    assert (inputs / "found" / "noise.json").is_file()


@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "list",
        "doctor",
        "evaluate bank.safetensors --epsilon 1",
        "privacy sigma",
        "bank show bank.safetensors",
        "sweep grid.toml bank.safetensors",
    ],
)
@pytest.mark.usefixtures("inputs")
def test_what_needs_no_extra_works_without_any(line: str) -> None:
    ended = without(EVERYTHING, *line.split())
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
