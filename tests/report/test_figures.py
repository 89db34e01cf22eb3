import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

matplotlib = pytest.importorskip("matplotlib")

from airchoir.report import figures
from airchoir.report.findings import Curve, Figure, Panel
from airchoir.report.looks import COLOURS, DASHES, MARKERS, looks, marked

KINDS = ("pdf", "svg", "png")
PUBLISHED = "stroke-opacity: 0.35"


def drawn(figure: Figure) -> Any:
    """The drawing with everything in its place."""
    with figures._style("png"):
        drawing = figures._draw(figure, "png")
        drawing.draw_without_rendering()
    return drawing


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_figure_gives_the_same_bytes_whatever_the_user_has_set(kind: str, make_figure: Any) -> None:
    first = figures.render(make_figure(), kind)
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.hashsalt": "other", "axes.grid": False}):
        assert figures.render(make_figure(), kind) == first


@pytest.mark.parametrize("kind", KINDS)
def test_no_date_is_in_the_file(kind: str, make_figure: Any) -> None:
    content = figures.render(make_figure(), kind)
    assert not re.search(rb"CreationDate|<dc:date>|tIME|20\d\d-\d\d-\d\d", content)


def test_the_users_own_settings_are_left_alone(make_figure: Any) -> None:
    before = dict(matplotlib.rcParams)
    figures.render(make_figure(), "svg")
    assert dict(matplotlib.rcParams) == before


def test_no_window_system_is_touched() -> None:
    code = (
        "import sys; from airchoir.report import figures; from airchoir.report.findings import *\n"
        "f = Figure('f', '', (Panel('', '', '', (Curve('c', (1.0,), (1.0,)),)),))\n"
        "[figures.render(f, kind) for kind in ('pdf', 'svg', 'png')]; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_every_curve_is_in_the_legend_once_ours_first(make_figure: Any) -> None:
    (legend,) = drawn(make_figure(3)).legends
    assert [text.get_text() for text in legend.get_texts()] == ["votes", "beliefs", "best client", "votes, published"]


def test_a_label_that_several_curves_share_is_in_the_legend_once_in_no_curves_colour() -> None:
    theirs = tuple(Curve("published", (0.0, 1.0), (1.0, 2.0), style=style, published=True) for style in (0, 1))
    (legend,) = drawn(Figure("f", "", (Panel("", "", "", theirs),))).legends
    (entry,) = legend.get_lines()
    assert entry.get_color() not in COLOURS


def test_every_word_is_on_the_figure(make_figure: Any) -> None:
    text = figures.render(make_figure(2), "svg").decode()
    for word in ("(a) Task 1", "(b) Task 2", "SNR (dB)", "macro-F1 (%)", "votes", "beliefs", "best client"):
        assert f"<!-- {word} -->" in text


@pytest.mark.parametrize("panels", [1, 2, 3, 4, 5, 7])
def test_nothing_covers_anything_and_nothing_is_cut(panels: int, make_figure: Any) -> None:
    drawing = drawn(make_figure(panels))
    (legend,) = drawing.legends
    boxes = [axes.get_tightbbox() for axes in drawing.axes if axes.axison] + [legend.get_window_extent()]
    assert len(boxes) == panels + 1
    for index, box in enumerate(boxes):
        assert box.x0 >= -0.5
        assert box.y0 >= -0.5
        assert box.x1 <= drawing.bbox.x1 + 0.5
        assert box.y1 <= drawing.bbox.y1 + 0.5
        for other in boxes[:index]:
            assert not (box.padded(-0.5).overlaps(other.padded(-0.5)))


@pytest.mark.parametrize(
    ("count", "grid"), [(1, (1, 1)), (2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (5, (2, 3)), (7, (3, 3))]
)
def test_panels_wrap_into_rows_of_a_column_or_a_page(count: int, grid: tuple[int, int], make_figure: Any) -> None:
    drawing = drawn(make_figure(count))
    shape = drawing.axes[0].get_gridspec()
    assert (shape.nrows, shape.ncols) == grid
    assert drawing.get_figwidth() == (3.4 if count == 1 else 7.0)


def test_long_labels_stay_on_the_paper() -> None:
    names = [f"A method with a rather long name and its number {index}, epsilon = 1" for index in range(6)]
    curves = tuple(Curve(name, (0.0, 1.0), (0.0, 1.0), style=index) for index, name in enumerate(names))
    drawing = drawn(Figure("f", "", (Panel("", "x", "y", curves),)))
    extent = drawing.legends[0].get_window_extent()
    assert extent.x0 >= 0
    assert extent.x1 <= drawing.bbox.x1


def test_the_papers_curves_are_faint_and_behind_ours(make_figure: Any) -> None:
    (axes,) = drawn(make_figure(1)).axes
    faint = [line for line in axes.lines if line.get_alpha()]
    ours = [line for line in axes.lines if not line.get_alpha()]
    assert (len(faint), len(ours)) == (1, 3)
    assert max(line.zorder for line in faint) < min(line.zorder for line in ours)
    svg = figures.render(make_figure(1), "svg").decode()
    panel = svg[: svg.index('id="legend_1"')]
    assert panel.index(PUBLISHED) < panel.index(f"stroke: {COLOURS[0]}; stroke-width: 1.1")


def test_a_file_has_white_paper_of_its_own_and_a_part_takes_the_pages(make_figure: Any) -> None:
    assert "fill: #ffffff" in figures.render(make_figure(1), "svg").decode()
    assert "fill: #ffffff" not in figures.panel_svg(make_figure(1).panels[0])


def test_points_that_are_not_joined_have_no_line(make_figure: Any) -> None:
    (axes,) = drawn(make_figure(1)).axes
    (alone,) = (line for line in axes.lines if len(line.get_xdata()) == 1)
    assert alone.get_linestyle() == "None"
    assert alone.get_marker() == "^"


def test_a_line_wears_some_marks_and_loose_points_are_all_shown() -> None:
    x = tuple(map(float, range(30)))
    assert marked(Curve("", x, x, style=5)) == (2, 3)
    assert marked(Curve("", x, x, style=5, line=False)) == (0, 1)
    assert marked(Curve("", (), ())) == (0, 1)


def luminance(colour: str) -> float:
    """How light a colour is in grey [Rec. 709]."""
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_curves_stand_out_from_white_paper() -> None:
    for colour in COLOURS:
        assert 1.05 / (luminance(colour) + 0.05) > 2.0


def test_curves_differ_without_colour() -> None:
    styles = [looks(Curve("", (), (), style=style)) for style in range(len(MARKERS))]
    assert len({(str(style["linestyle"]), style["marker"]) for style in styles}) == len(styles)
    assert len({style["marker"] for style in styles}) == len(styles)
    assert len(set(map(str, DASHES))) == len(DASHES)
    together = {tuple(map(str, looks(Curve("", (), (), style=style)).values())) for style in range(56)}
    assert len(together) == 56


def test_a_log_axis_is_marked_with_plain_numbers() -> None:
    panel = Panel("", "epsilon", "y", (Curve("c", (0.1, 1.0, 10.0), (1.0, 2.0, 3.0)),), log_x=True)
    drawing = drawn(Figure("f", "", (panel,)))
    assert {"0.1", "1", "10"} <= {label.get_text() for label in drawing.axes[0].get_xticklabels()}


def test_given_ticks_are_the_only_ones() -> None:
    curve = Curve("c", (0.1, 1.0, 10.0), (1.0, 2.0, 3.0))
    panel = Panel("", "", "", (curve,), log_x=True, x_ticks=(0.1, 1.0, 10.0), x_tick_labels=("0.1", "1", "∞"))
    axes = drawn(Figure("f", "", (panel,))).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.1", "1", "∞"]
    assert list(axes.get_xticks(minor=True)) == []


@pytest.mark.parametrize("log", [True, False])
def test_given_ticks_without_words_of_their_own_are_numbers(log: bool) -> None:
    curve = Curve("c", (0.5, 10000.0), (1.0, 3.0))
    axes = drawn(Figure("f", "", (Panel("", "", "", (curve,), log_x=log, x_ticks=(0.5, 2.0, 10000.0)),))).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.5", "2", "10,000"]


def test_given_limits_are_kept() -> None:
    panel = Panel("", "", "", (Curve("c", (1.0, 2.0), (0.9, 1.0)),), y_limits=(0.5, 1.05))
    assert drawn(Figure("f", "", (panel,))).axes[0].get_ylim() == (0.5, 1.05)


def test_words_are_taken_as_they_are() -> None:
    panel = Panel("$a_b$ & 50 %", r"\frac", "{x}", (Curve("$c$", (1.0,), (1.0,)),))
    svg = figures.render(Figure("f", "", (panel,)), "svg").decode()
    ElementTree.fromstring(svg)
    for words in ("$a_b$ &amp; 50 %", r"\frac", "{x}", "$c$"):
        assert f"<!-- {words} -->" in svg


def test_empty_panels_and_gaps_are_drawn() -> None:
    gap = Curve("gap", (1.0, 2.0, 3.0), (1.0, float("nan"), 3.0))
    for panels in ((), (Panel("", "", "", ()),), (Panel("", "", "", (gap, Curve("none", (), ()))),)):
        assert figures.render(Figure("f", "", panels), "svg")


@contextmanager
def fake_tex(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str | None) -> Iterator[None]:
    """A machine with this pdflatex and no other."""
    if script is not None:
        (folder / "pdflatex").write_text(script)
        (folder / "pdflatex").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(folder))
    yield


def test_without_tex_there_is_no_pgf_and_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_figure: Any
) -> None:
    with fake_tex(tmp_path, monkeypatch, None), pytest.raises(figures.NoTex, match="needs TeX"):
        figures.render(make_figure(), "pgf")


def test_a_tex_that_fails_is_a_reason_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_figure: Any) -> None:
    backend = pytest.importorskip("matplotlib.backends.backend_pgf")
    backend.LatexManager._get_cached_or_new_impl.cache_clear()  # it remembers a TeX that worked
    script = "#!/bin/sh\necho '! no pgf here'\nexit 1\n"
    with fake_tex(tmp_path, monkeypatch, script), pytest.raises(figures.NoTex, match="pdflatex could not"):
        figures.render(make_figure(), "pgf")


def test_a_sign_that_tex_lacks_is_a_reason_too(make_figure: Any) -> None:
    if figures.tex_system() is None:
        pytest.skip("no TeX is installed")
    figure = make_figure()
    strange = replace(figure, panels=tuple(replace(panel, title="数字") for panel in figure.panels))
    with pytest.raises(figures.NoTex, match="could not measure its words"):
        figures.render(strange, "pgf")


def test_without_matplotlib_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, make_figure: Any) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=r"matplotlib.*; run: pip install 'airchoir\[demo\]'"):
        figures.render(make_figure(), "svg")
