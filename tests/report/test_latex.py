"""What is written for LaTeX goes through LaTeX, where there is one."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from airchoir.report import figures
from airchoir.report.latex import escape
from airchoir.report.writing import write


def tex_with(*packages: str) -> str:
    """The reason why a document with these packages cannot be compiled here, or nothing."""
    if shutil.which("pdflatex") is None:
        return "pdflatex is not installed"
    missing = [name for name in packages if not subprocess.run(["kpsewhich", f"{name}.sty"], stdout=-1).stdout]
    return f"TeX lacks {', '.join(missing)}" if missing else ""


LACKING = tex_with("booktabs", "pgf")
needs_tex = pytest.mark.skipif(bool(LACKING), reason=LACKING)


def compiled(folder: Path, body: str) -> str:
    """The log of a paper of two columns, as wide as the IEEE's, with this body; a compiler that complains is a failure."""
    widths = r"\setlength{\textwidth}{7.16in}\setlength{\columnsep}{0.25in}"
    opening = rf"\documentclass[twocolumn]{{article}}\usepackage{{booktabs,pgf}}{widths}\begin{{document}}"
    document = rf"{opening}{body}\end{{document}}"
    (folder / "paper.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    ran = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, timeout=100)
    log = ran.stdout.decode(errors="replace")
    assert ran.returncode == 0, log[-2000:]
    assert (folder / "paper.pdf").stat().st_size > 1000
    return log


def test_every_special_sign_is_escaped() -> None:
    assert escape("50 % & $x_1$ #2 {a} ~^\\") == (
        r"50 \% \& \$x\_1\$ \#2 \{a\} \textasciitilde{}\textasciicircum{}\textbackslash{}"
    )
    assert escape("81.27 ± 0.10, ε ≥ 1") == r"81.27 $\pm$ 0.10, $\varepsilon$ $\geq$ 1"
    assert escape("one\n\n line") == "one line"


@needs_tex
def test_the_table_compiles_whatever_its_cells_say(tmp_path: Path, make_findings: Any) -> None:
    write(make_findings(figures=()), tmp_path)
    log = compiled(tmp_path, r"\input{table1.tex} See \ref{tab:table1}.")
    assert "Undefined control sequence" not in log
    assert "Missing character" not in log


@needs_tex
def test_every_sign_that_is_replaced_compiles(tmp_path: Path) -> None:
    from airchoir.report.latex import _ALL

    assert "Missing character" not in compiled(tmp_path, " ".join(map(escape, _ALL)))


@needs_tex
def test_the_figure_compiles_and_fits_its_column(tmp_path: Path, make_figure: Any) -> None:
    for panels, place in ((1, "figure"), (3, "figure*")):
        (tmp_path / "figure.pgf").write_bytes(figures.render(make_figure(panels), "pgf"))
        log = compiled(tmp_path, rf"\begin{{{place}}}\input{{figure.pgf}}\end{{{place}}}")
        assert "Overfull" not in log


@needs_tex
def test_the_figure_compiles_whatever_its_labels_say(tmp_path: Path, nasty: str) -> None:
    from airchoir.report.findings import Curve, Figure, Panel

    panel = Panel(nasty, nasty, nasty, (Curve(nasty, (1.0,), (1.0,)),), x_ticks=(1.0,), x_tick_labels=(nasty,))
    (tmp_path / "figure.pgf").write_bytes(figures.render(Figure("f", "", (panel,)), "pgf"))
    compiled(tmp_path, r"\input{figure.pgf}")
