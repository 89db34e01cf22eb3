import json
from pathlib import Path
from typing import Any

import pytest

from airchoir.report import figures
from airchoir.report.findings import Findings
from airchoir.report.writing import write

NAMES = {
    "table1.json",
    *(f"table1.{kind}" for kind in ("md", "csv", "tex")),
    *(f"figure2.{kind}" for kind in ("pdf", "svg", "png")),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def no_tex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "tex_system", lambda: None)


@pytest.mark.usefixtures("no_tex")
def test_without_tex_all_but_pgf_is_written_and_one_line_says_so(tmp_path: Path, make_findings: Any) -> None:
    written = write(make_findings(), tmp_path / "new" / "folder")
    assert set(contents(tmp_path / "new" / "folder")) == NAMES
    assert {path.name for path in written.files} == NAMES
    (remark,) = written.remarks
    assert remark.startswith("PGF left out: ")
    assert "\n" not in remark


@pytest.mark.skipif(figures.tex_system() is None, reason="no TeX is installed")
def test_with_tex_there_is_pgf_too(tmp_path: Path, make_findings: Any) -> None:
    written = write(make_findings(), tmp_path)
    assert written.remarks == ()
    assert set(contents(tmp_path)) == {*NAMES, "figure2.pgf"}


@pytest.mark.usefixtures("no_tex")
def test_everything_can_be_drawn_again_from_the_record_to_the_byte(tmp_path: Path, make_findings: Any) -> None:
    write(make_findings(), tmp_path / "first")
    record = tmp_path / "first" / "table1.json"
    write(Findings.of_record(json.loads(record.read_text()), record), tmp_path / "again")
    assert contents(tmp_path / "first") == contents(tmp_path / "again")


def test_findings_without_figures_need_no_matplotlib_and_say_nothing_of_tex(
    tmp_path: Path, make_findings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "render", lambda *_: pytest.fail("it drew"))
    assert write(make_findings(figures=()), tmp_path).remarks == ()


def test_numbers_are_safe_where_figures_cannot_be_drawn(
    tmp_path: Path, make_findings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> bytes:
        raise ValueError("no matplotlib")

    monkeypatch.setattr(figures, "render", fail)
    with pytest.raises(ValueError, match="no matplotlib"):
        write(make_findings(), tmp_path)
    assert set(contents(tmp_path)) == {"table1.json", "table1.md", "table1.csv", "table1.tex"}


@pytest.mark.parametrize("name", ["../table1", "a/b", "", ".hidden", "two words", "naïve"])
def test_names_that_are_no_file_names_are_refused_before_anything_is_written(
    name: str, tmp_path: Path, make_findings: Any
) -> None:
    with pytest.raises(ValueError, match="give another name"):
        write(make_findings(name), tmp_path)
    assert contents(tmp_path) == {}
