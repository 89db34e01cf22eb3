"""What curves look like: apart for the colour-blind by colour, in grey by dash and marker."""

import math
from typing import Any

from airchoir.report.findings import Curve

INK = "#1a1a1a"
"""Axes and words. On the page it becomes the colour of the page's text, light or dark."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a7a7a")
"""Okabe and Ito's, which the colour-blind tell apart, but grey for black and no yellow, which white paper swallows."""
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
"""One more than colours: the eighth curve has the first one's colour, but not its marker."""
NEUTRAL = -1
"""The style of a legend's entry that stands for curves of several styles."""
FAINT = 0.35
"""How opaque the paper's own curves are."""
_MARKS = 12
"""About how many markers a curve wears."""

STYLE: dict[str, Any] = {
    "font.family": ["STIXGeneral", "DejaVu Sans"],  # both come with matplotlib: the same letters everywhere
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
    "axes.formatter.useoffset": False,
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
    "legend.borderpad": 0.1,
    "legend.borderaxespad": 0.2,
    "legend.handlelength": 2.6,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.1,
    "legend.labelspacing": 0.35,
    "pdf.fonttype": 42,  # publishers refuse Type 3
    "svg.fonttype": "path",
    "svg.hashsalt": "airchoir",
    "pgf.rcfonts": False,  # the document's own fonts
}


def colour(curve: Curve) -> str:
    """The curve's colour."""
    return INK if curve.style == NEUTRAL else COLOURS[curve.style % len(COLOURS)]


def looks(curve: Curve) -> dict[str, Any]:
    """How matplotlib draws a curve, in the panel and in the legend."""
    marker = MARKERS[curve.style % len(MARKERS)]
    dash = DASHES[max(curve.style, 0) % len(DASHES)] if curve.line else "none"
    made: dict[str, Any] = {"color": colour(curve), "linestyle": dash, "zorder": 2.5}
    if not curve.published or not curve.line:
        made["marker"] = marker
    if not curve.line:  # hollow, so that they are not taken for the marks on a line
        made |= {"markerfacecolor": "none", "markeredgewidth": 1.0, "markersize": 4.0}
    if curve.published:
        made |= {"alpha": FAINT, "zorder": 1.0, "linewidth": 2.4}
    return made


def marked(curve: Curve) -> tuple[int, int]:
    """The first point with a marker, and how many further each next one is: curves on top of one another still differ."""
    step = max(1, math.ceil(len(curve.x) / _MARKS)) if curve.line else 1  # a point that no line joins is all there is
    return curve.style % step, step
