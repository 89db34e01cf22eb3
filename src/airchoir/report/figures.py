"""Figures for a two-column paper: colour-blind safe, readable in grey, the same bytes from the same findings."""

import io
import math
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airchoir.report.findings import Curve, Figure, Panel
from airchoir.report.latex import escape

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

Text = Callable[[str], str]
"""How a label is written: as it is, or as LaTeX."""

INK = "#1a1a1a"
"""Axes and words. On the page it becomes the colour of the page's text, light or dark."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a7a7a")
"""Okabe and Ito's, which the colour-blind tell apart, without their yellow, which white paper swallows."""
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (9, 2)),
    (0, (3, 1.2, 1.2, 1.2, 1.2, 1.2)),
    (0, (2.5, 2.5)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
COLUMN_INCHES, PAGE_INCHES = 3.4, 7.0
_MARKS = 12
"""About how many markers a curve wears."""
_METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
"""Nothing that differs from day to day or between versions."""
_STYLE: dict[str, Any] = {
    "font.family": ["STIXGeneral", "DejaVu Sans"],
    "mathtext.fontset": "stix",
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "axes.grid": True,
    "grid.color": "#808080",
    "grid.alpha": 0.25,
    "grid.linewidth": 0.4,
    "axes.axisbelow": True,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "legend.columnspacing": 1.4,
    "legend.labelspacing": 0.35,
    "pdf.fonttype": 42,  # publishers refuse Type 3
    "svg.fonttype": "path",
    "svg.hashsalt": "airchoir",
    "pgf.rcfonts": False,  # the document's own fonts
}


class NoTex(Exception):  # noqa: N818  (not an error: PGF is left out)
    """PGF cannot be made here, and why."""


def render(figure: Figure, kind: str) -> bytes:
    """The figure as a file of a kind: pdf, svg, png or pgf (which needs TeX)."""
    if kind == "pgf" and tex_system() is None:
        raise NoTex("it needs TeX, and no pdflatex, lualatex or xelatex is installed")
    options: dict[str, Any] = {"metadata": _METADATA[kind]} if kind in _METADATA else {}
    buffer: Any = io.StringIO() if kind == "pgf" else io.BytesIO()
    with _style(kind):
        drawing = _draw(figure, escape if kind == "pgf" else str)
        try:
            drawing.savefig(buffer, format=kind, dpi=200, transparent=kind == "svg", **options)
        except RuntimeError as error:
            if kind != "pgf":
                raise
            raise NoTex(f"{tex_system()} could not set it ({str(error).splitlines()[0]})") from None
    content = buffer.getvalue()
    return content.encode() if isinstance(content, str) else content


def tex_system() -> str | None:
    """The TeX that matplotlib can ask how wide words are, or None where none is installed."""
    return next((name for name in ("pdflatex", "lualatex", "xelatex") if shutil.which(name)), None)


@contextmanager
def _style(kind: str) -> Iterator[None]:
    try:
        import matplotlib
        import matplotlib.style
    except ImportError:
        raise ValueError("figures need matplotlib, which is not installed; pip install 'airchoir[demo]'") from None
    system = {"pgf.texsystem": tex_system()} if kind == "pgf" else {}
    with matplotlib.style.context("default"), matplotlib.rc_context({**_STYLE, **system}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a sign that no font has is drawn as a box
        yield


def _draw(figure: Figure, text: Text) -> "matplotlib.figure.Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    rows, columns = _grid(len(figure.panels))
    width = COLUMN_INCHES if columns == 1 else PAGE_INCHES
    height = rows * (2.2 if columns < 3 else 1.95)
    drawing = Drawing(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(drawing)  # can say how wide words are
    grid = drawing.subplots(rows, columns, squeeze=False)
    for index, axes in enumerate(grid.flat):
        if index >= len(figure.panels):
            axes.set_axis_off()
            continue
        _draw_panel(axes, figure.panels[index], text)
        letter = f"({chr(ord('a') + index)}) " if len(figure.panels) > 1 else ""
        axes.set_title(text(letter + figure.panels[index].title), parse_math=False)
    _legends(drawing, list(grid.flat), figure.panels, text)
    return drawing


def _grid(panels: int) -> tuple[int, int]:
    columns = {1: 1, 2: 2, 4: 2}.get(panels, 3)
    return -(-panels // columns), columns


def _draw_panel(axes: "matplotlib.axes.Axes", panel: Panel, text: Text) -> None:
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    for curve in panel.curves:
        _draw_curve(axes, curve)
    axes.set_xlabel(text(panel.x_label), parse_math=False)
    axes.set_ylabel(text(panel.y_label), parse_math=False)
    if panel.x_ticks:
        axes.set_xticks(panel.x_ticks, [text(label) for label in panel.x_tick_labels] or None)
        axes.minorticks_off()


def _draw_curve(axes: "matplotlib.axes.Axes", curve: Curve) -> None:
    colour = COLOURS[curve.style % len(COLOURS)]
    if curve.low:
        axes.fill_between(curve.x, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0, zorder=1.5)
    axes.plot(curve.x, curve.y, **_looks(curve), markevery=_marked(curve))


def _marked(curve: Curve) -> tuple[int, int]:
    step = max(1, math.ceil(len(curve.x) / _MARKS))
    return (curve.style % step, step)


def _looks(curve: Curve, *, colour: str | None = None) -> dict[str, Any]:
    """How a curve is drawn, in the panel and in the legend."""
    looks: dict[str, Any] = {
        "color": colour or COLOURS[curve.style % len(COLOURS)],
        "gid": "published" if curve.published else "ours",
    }
    marker = MARKERS[curve.style % len(MARKERS)]
    if curve.published:
        faint = {"alpha": 0.35, "zorder": 1.0}
        if curve.line:
            return {**looks, **faint, "linewidth": 2.2, "linestyle": DASHES[curve.style % len(DASHES)]}
        return {**looks, **faint, "linestyle": "none", "marker": marker, "markersize": 5.5}
    looks |= {"marker": marker, "zorder": 2.5}
    return {**looks, "linestyle": DASHES[curve.style % len(DASHES)] if curve.line else "none"}


def _legends(
    drawing: "matplotlib.figure.Figure", grid: "Sequence[matplotlib.axes.Axes]", panels: Sequence[Panel], text: Text
) -> None:
    """One legend below all panels."""
    entries: dict[tuple[str, bool], list[Curve]] = {}
    for curve in sorted((curve for panel in panels for curve in panel.curves), key=lambda curve: curve.published):
        entries.setdefault((curve.label, curve.published), []).append(curve)
    if not entries:
        return
    from matplotlib.lines import Line2D

    handles = []
    for (label, _), curves in entries.items():
        same = len({(curve.style, curve.line) for curve in curves}) == 1
        looks = _looks(curves[0], colour=None if same else INK)
        handles.append(Line2D([], [], **looks, label=text(label)))
    renderer: Any = drawing.canvas.get_renderer()  # type: ignore[attr-defined]
    columns = len(handles)
    while True:
        legend = drawing.legend(handles=handles, loc="outside lower center", ncols=columns)
        for words in legend.get_texts():
            words.set_parse_math(False)
        wide = legend.get_window_extent(renderer).width > drawing.bbox.width
        if not wide or columns == 1:
            break
        legend.remove()
        columns -= 1
    rows = -(-len(handles) // columns)
    width, height = drawing.get_size_inches()
    drawing.set_size_inches(width, height + 0.14 * rows)
