import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airchoir import ScoreBank
from airchoir.cli import main
from airchoir.report.findings import Findings

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture
def after_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digits_bank: "type[ScoreBank]") -> Path:
    """A folder as the demo leaves it."""
    monkeypatch.chdir(tmp_path)
    digits_bank(0).save("airchoir-demo/banks/digits/seed-0.safetensors")
    found = Findings(name="table1", title="Table 1", summary=("Ten rows.",))
    Path("airchoir-demo/table1.json").write_text(json.dumps(found.record()))
    return tmp_path


def test_the_python_example_runs(after_the_demo: Path) -> None:
    example, _ = blocks("python")
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    assert isinstance(names["labels"], np.ndarray)
    assert names["labels"].shape == names["bank"].test_labels.shape


def test_the_estimator_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    _, example = blocks("python")
    names: dict[str, Any] = {}
    with pytest.warns(UserWarning, match="simulation, not something a server may see"):
        exec(compile(example, "README.md", "exec"), names)
    assert names["choir"].privacy_spent_.queries == len(names["X_new"]) == 143
    score, spent, exact = capsys.readouterr().out.splitlines()
    assert "queries=143" in spent
    assert 0.0 < float(score) <= 1.0
    assert 0.8 < float(exact) < 1.0


@pytest.mark.parametrize("line", "".join(blocks("sh")).strip().splitlines())
def test_every_command_runs(line: str, after_the_demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = line.split()
    assert program == "airchoir"
    assert main(arguments) == 0
    assert capsys.readouterr().out


def test_the_demo_output_shown_is_what_the_demo_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    (shown,) = blocks("text")

    def shape(text: str) -> list[str]:
        """The words; digits may differ with the machine and the versions of the libraries."""
        return [re.sub(r"[\d.,]*\d", "#", " ".join(line.split())) for line in text.strip().splitlines()]

    assert shape(capsys.readouterr().out) == shape(shown)
