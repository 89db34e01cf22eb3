"""Figures for a two-column paper, and their parts for the page: the same bytes from the same findings."""

import io
import math
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airchoir.report.findings import Curve, Figure, Panel
from airchoir.report.latex import escape
from airchoir.report.looks import NEUTRAL, STYLE, colour, looks, marked

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.axis
    import matplotlib.figure

Text = Callable[[str], str]
"""How a label is written: as it is, or as LaTeX."""

COLUMN_INCHES, PAGE_INCHES = 3.4, 7.0
_LEGEND_SHARE = 0.96
"""Of the width: letters are not as wide at every resolution."""
_METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    "png": {"Software": None},
}
"""Nothing that differs from day to day or between versions."""


class NoTex(Exception):  # noqa: N818  (not an error: PGF is left out)
    """PGF cannot be made here, and why."""


def render(figure: Figure, kind: str) -> bytes:
    """The figure as a file of a kind: pdf, svg, png or pgf (which needs TeX)."""
    if kind == "pgf":
        return _render_pgf(figure)
    with _style(kind):
        return _save(_draw(figure, kind), kind)


def _render_pgf(figure: Figure) -> bytes:
    """TeX says how wide words are: without one, or with one that fails, there is no PGF, and no harm."""
    if tex_system() is None:
        raise NoTex("it needs TeX, and no pdflatex, lualatex or xelatex is installed")
    with _style("pgf"):
        from matplotlib.backends.backend_pgf import LatexError

        try:
            return _save(_draw(figure, "pgf"), "pgf")
        except (LatexError, RuntimeError, OSError, ValueError) as error:  # the last one where it lacks a sign
            reason = " ".join(str(error).split())[:120]
            raise NoTex(f"{tex_system()} could not measure its words ({reason})") from None


def panel_svg(panel: Panel) -> str:
    """One panel alone, without a legend, to stand in a page of any width and colour."""
    with _style("svg"):
        drawing = _blank(COLUMN_INCHES, 2.3, "svg")
        _draw_panel(drawing.subplots(), panel, str)
        return _bare(_save(drawing, "svg", transparent=True))


def sample_svg(curve: Curve) -> str:
    """A short piece of the curve, for a legend."""
    from matplotlib.lines import Line2D

    with _style("svg"):
        drawing = _blank(0.42, 0.12, "svg")
        drawing.set_layout_engine("none")
        drawing.add_artist(Line2D([0.04, 0.5, 0.96], [0.5] * 3, **looks(curve), markevery=[1]))
        return _bare(_save(drawing, "svg", transparent=True))


def legend(panels: Sequence[Panel]) -> list[Curve]:
    """A curve for every label, ours before the paper's; a label that several looks share stands for none of them."""
    entries: dict[tuple[bool, str], Curve] = {}
    for panel in panels:
        for curve in panel.curves:
            first = entries.setdefault((curve.published, curve.label), curve)
            if first.style != curve.style:
                entries[curve.published, curve.label] = replace(first, style=NEUTRAL)
    return [entries[key] for key in sorted(entries, key=lambda key: key[0])]


def tex_system() -> str | None:
    """The TeX that matplotlib can ask how wide words are, or None where none is installed."""
    return next((name for name in ("pdflatex", "lualatex", "xelatex") if shutil.which(name)), None)


def check_installed() -> None:
    """A ValueError where matplotlib is missing."""
    try:
        import matplotlib.style  # noqa: F401
    except ImportError:
        raise ValueError("figures need matplotlib, which is not installed; run: pip install 'airchoir[demo]'") from None


@contextmanager
def _style(kind: str) -> Iterator[None]:
    """Our style on matplotlib's defaults, whatever the user's own settings are; they are as before afterwards."""
    check_installed()
    import matplotlib
    import matplotlib.style

    system = {"pgf.texsystem": tex_system()} if kind == "pgf" else {}
    with matplotlib.style.context("default"), matplotlib.rc_context({**STYLE, **system}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a sign that no font has is drawn as a box
        yield


def _save(drawing: "matplotlib.figure.Figure", kind: str, *, transparent: bool = False) -> bytes:
    buffer: Any = io.StringIO() if kind == "pgf" else io.BytesIO()
    options: dict[str, Any] = {"metadata": _METADATA[kind]} if kind in _METADATA else {}
    drawing.savefig(buffer, format=kind, dpi=200, transparent=transparent, **options)
    content = buffer.getvalue()
    return content.encode() if isinstance(content, str) else content


def _bare(svg: bytes) -> str:
    """The element alone: no prologue, no metadata, no size of its own, nothing that names another address."""
    text = re.sub(r"<metadata>.*?</metadata>", "", svg.decode(), flags=re.DOTALL)
    text = re.sub(r'\s(xmlns(:\w+)?|version|width|height)="[^"]*"', "", text[text.index("<svg") :], count=5)
    return re.sub(r"\n\s*", "\n", text.replace("xlink:href=", "href=")).strip()


def _blank(width: float, height: float, kind: str) -> "matplotlib.figure.Figure":
    """An empty drawing whose canvas can say how wide words are."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(width, height), layout="constrained")
    if kind == "pgf":
        from matplotlib.backends.backend_pgf import FigureCanvasPgf

        FigureCanvasPgf(drawing)
    else:
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        FigureCanvasAgg(drawing)
    return drawing


def _draw(figure: Figure, kind: str) -> "matplotlib.figure.Figure":
    text: Text = escape if kind == "pgf" else str
    rows, columns = _grid(len(figure.panels))
    width = COLUMN_INCHES if columns == 1 else PAGE_INCHES
    drawing = _blank(width, rows * (2.1 if columns < 3 else 1.9), kind)
    grid = list(drawing.subplots(rows, columns, squeeze=False).flat)
    for index, (axes, panel) in enumerate(zip(grid, figure.panels, strict=False)):
        letter = f"({chr(ord('a') + index)}) " if len(figure.panels) > 1 else ""
        _draw_panel(axes, panel, text, letter=letter)
        if index % columns and panel.y_label == figure.panels[index - 1].y_label:
            axes.set_ylabel("")
    for axes in grid[len(figure.panels) :]:
        axes.set_axis_off()
    _draw_legend(drawing, legend(figure.panels), text)
    return drawing


def _grid(panels: int) -> tuple[int, int]:
    columns = {1: 1, 2: 2, 4: 2}.get(panels, 3)
    return max(1, -(-panels // columns)), columns


def _draw_panel(axes: "matplotlib.axes.Axes", panel: Panel, text: Text, *, letter: str = "") -> None:
    for curve in panel.curves:
        if curve.low:
            axes.fill_between(curve.x, curve.low, curve.high, color=colour(curve), alpha=0.15, linewidth=0, zorder=1.5)
        axes.plot(curve.x, curve.y, **looks(curve), markevery=marked(curve))
    axes.set_title(text(letter + panel.title), parse_math=False)
    axes.set_xlabel(text(panel.x_label), parse_math=False)
    axes.set_ylabel(text(panel.y_label), parse_math=False)
    for log, axis, name in ((panel.log_x, axes.xaxis, "x"), (panel.log_y, axes.yaxis, "y")):
        if log:
            axes.set(**{f"{name}scale": "log"})
            _plain_numbers(axis)
    if panel.x_ticks:
        labels = panel.x_tick_labels or [_number(value) for value in panel.x_ticks]
        axes.set_xticks(panel.x_ticks, list(map(text, labels)), parse_math=False)
        axes.xaxis.minorticks_off()
    if panel.y_limits:
        axes.set_ylim(*panel.y_limits)


def _number(value: float) -> str:
    return f"{value:,g}".replace("-", "\N{MINUS SIGN}")


def _plain_numbers(axis: "matplotlib.axis.Axis") -> None:
    """0.1, 1, 10 rather than powers of ten where they are as short; 2 and 5 too where there is room."""
    from matplotlib.ticker import FuncFormatter

    low, high = axis.get_view_interval()
    if low < 1e-3 or high > 1e5:
        return
    few = math.log10(high / low) < 1.4
    axis.set_major_formatter(FuncFormatter(lambda value, _: _number(value)))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: _number(value) if few and f"{value:e}"[0] in "25" else ""))


def _draw_legend(drawing: "matplotlib.figure.Figure", entries: Sequence[Curve], text: Text) -> None:
    """One legend below all panels, in as many columns as fit; the drawing grows by its height."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **looks(curve), label=text(curve.label)) for curve in entries]
    renderer: Any = drawing.canvas.get_renderer()  # type: ignore[attr-defined]
    rows = range(1, len(handles) + 1)
    for columns in sorted({-(-len(handles) // each) for each in rows}, reverse=True):  # as many in each row as can be
        made = drawing.legend(handles=handles, loc="outside lower center", ncols=columns)
        for words in made.get_texts():
            words.set_parse_math(False)
        extent = made.get_window_extent(renderer)
        if extent.width <= _LEGEND_SHARE * drawing.bbox.width or columns == 1:
            width, height = drawing.get_size_inches()
            drawing.set_size_inches(width, height + extent.height / drawing.dpi)
            return
        made.remove()
