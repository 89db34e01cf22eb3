"""Findings below a folder -> one HTML page that stands alone: no network, no scripts, any screen, any printer."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airchoir.files import write_atomically
from airchoir.report import figures
from airchoir.report.findings import Curve, Figure, Findings, Panel, Table
from airchoir.report.looks import COLOURS, FAINT, INK
from airchoir.report.tables import numeric_columns

if TYPE_CHECKING:
    from markupsafe import Markup

FIRST = ("table1", "figure2", "snr", "participation", "noise")
"""The paper's own evaluation comes before what goes beyond it."""
_MARK = '"airchoir findings '
_CHECKSUM_CHARACTERS = 16


@dataclass(frozen=True)
class Gathered:
    """The findings below a folder with the files that hold them, in the page's order, and one line for each damaged file."""

    found: tuple[tuple[Path, Findings], ...]
    complaints: tuple[str, ...]


def gather(folder: Path) -> Gathered:
    """All findings below `folder`; JSON files of others are passed over."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; give the one that `airchoir experiment ... --out` wrote")
    found: list[tuple[Path, Findings]] = []
    complaints = []
    for path in sorted(folder.rglob("*.json")):
        try:
            found += [(path, findings) for findings in _findings(path)]
        except ValueError as error:
            complaints.append(str(error))
        except OSError as error:
            complaints.append(f"{path}: {error.strerror}; check your rights")
    return Gathered(tuple(sorted(found, key=_place_in_line)), tuple(complaints))


def write_page(found: Sequence[tuple[Path, Findings]], folder: Path) -> Path:
    """Where the page of these findings was written: `folder`/report.html."""
    page = folder / "report.html"
    content = html(found, folder).encode()
    write_atomically(page, lambda temporary: temporary.write_bytes(content))
    return page


def html(found: Sequence[tuple[Path, Findings]], folder: Path) -> str:
    """The page; the same findings give the same text."""
    check_installed()
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    room = resources.files("airchoir.report")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["together"] = _together
    template = environment.from_string(room.joinpath("page.html").read_text(encoding="utf-8"))
    style = Markup(room.joinpath("page.css").read_text(encoding="utf-8"))
    chapters = [_chapter(index, path, findings, folder) for index, (path, findings) in enumerate(found)]
    return template.render(chapters=chapters, style=style)


def _together(text: str) -> str:
    """The text with every number kept on one line with what belongs to it.

    >>> _together("p = 1 gives 90.4 %").split(" ")
    ['p\\xa0=\\xa01', 'gives', '90.4\\xa0%']
    """
    return re.sub(r"(?<=\w) (?=[=±%])|(?<=\d) (?=dB\b)|(?<=[=±]) (?=\S)", "\N{NO-BREAK SPACE}", text)


def check_installed() -> None:
    """A ValueError where jinja2 is missing."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise ValueError("the report needs jinja2, which is not installed; run: pip install 'airchoir[demo]'") from None


def _findings(path: Path) -> Iterator[Findings]:
    """The findings in a file; none where it is somebody else's."""
    content = path.read_bytes() if path.is_file() else b""
    if _MARK.encode() not in content:
        return
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error}); make it again") from None
    if isinstance(record, dict) and str(record.get("format")).startswith(_MARK.strip('"')):
        yield Findings.of_record(record, path)


def _place_in_line(each: tuple[Path, Findings]) -> tuple[int, str, str]:
    path, findings = each
    return FIRST.index(findings.name) if findings.name in FIRST else len(FIRST), findings.name, str(path)


def _chapter(index: int, path: Path, findings: Findings, folder: Path) -> dict[str, Any]:
    """What the template shows of one experiment."""
    key = f"experiment-{index + 1}"
    place = path.parent.relative_to(folder)
    return {
        "key": key,
        "findings": findings,
        "place": "" if place == Path() else str(place),
        "tables": [_table(f"{key}-table-{number}", table) for number, table in enumerate(findings.tables, 1)],
        "drawings": [_drawing(f"{key}-figure-{number}", figure) for number, figure in enumerate(findings.figures, 1)],
        "origin": list(_origin(findings)),
    }


def _table(key: str, table: Table) -> dict[str, Any]:
    """The table and what each column holds: numbers, words, or the name of the row (the last words before the numbers)."""
    numeric = numeric_columns(table)
    leading = numeric.index(True) if True in numeric else len(numeric)
    kinds = [
        "number" if number else "name" if index == leading - 1 else "words" for index, number in enumerate(numeric)
    ]
    return {"key": key, "table": table, "kinds": kinds}


def _drawing(key: str, figure: Figure) -> dict[str, Any]:
    """The panels as SVG, each free to find its place, and a legend in HTML, whose words wrap."""
    return {
        "caption": figure.caption,
        "panels": [
            _inline(figures.panel_svg(panel), f"{key}-panel-{number}", _in_words(panel))
            for number, panel in enumerate(figure.panels, 1)
        ],
        "legend": [
            (curve.label, _inline(figures.sample_svg(curve), f"{key}-sample-{number}", ""))
            for number, curve in enumerate(figures.legend(figure.panels), 1)
        ],
    }


def _inline(svg: str, key: str, words: str) -> "Markup":
    """An SVG element with ids of its own in the page and colours that the page may change; without words it is decoration."""
    from markupsafe import Markup, escape

    svg = re.sub(r'\bid="', f'id="{key}-', svg)
    svg = re.sub(r'href="#', f'href="#{key}-', svg)
    svg = svg.replace("url(#", f"url(#{key}-").replace(INK, "currentColor")
    for index, colour in enumerate(COLOURS):
        svg = svg.replace(colour, f"var(--curve-{index}, {colour})")
    svg = svg.replace(f"opacity: {FAINT}", "opacity: var(--faint)")
    role = f'role="img" aria-label="{escape(words)}"' if words else 'aria-hidden="true"'
    return Markup(svg.replace("<svg", f"<svg {role}", 1))


def _in_words(panel: Panel) -> str:
    """What a panel shows, for those who do not see it."""
    curves = "; ".join(dict.fromkeys(map(_curve_in_words, panel.curves)))
    return f"{panel.title + ': ' if panel.title else ''}{panel.y_label} against {panel.x_label}. {curves}"


def _curve_in_words(curve: Curve) -> str:
    if not curve.x:
        return curve.label
    return f"{curve.label}: {curve.y[0]:.4g} at {curve.x[0]:.4g} to {curve.y[-1]:.4g} at {curve.x[-1]:.4g}"


def _origin(findings: Findings) -> Iterator[tuple[str, str]]:
    """Names and words: commit, versions, machine, then what the rows say of accountants, tasks, seeds and banks."""
    for name, value in findings.source.items():
        yield name.replace("_", " "), _words(value) or "unknown"
    accountants = sorted({str(row["accountant"]) for row in findings.rows if row.get("accountant")})
    if accountants:
        yield "accountant", ", ".join(accountants)
    banks: dict[str, dict[str, None]] = {}
    for row in findings.rows:
        seeds, checksums = row.get("seeds"), row.get("banks")
        if isinstance(seeds, list | tuple) and isinstance(checksums, list | tuple):
            members = banks.setdefault(str(row.get("task", "?")), {})
            members.update(dict.fromkeys(_bank(*pair) for pair in zip(seeds, checksums, strict=False)))
    for task, members in banks.items():
        yield f"banks, {task}", "; ".join(members)


def _bank(seed: object, checksum: object) -> str:
    return f"seed {seed or '?'}, checksum {str(checksum)[:_CHECKSUM_CHARACTERS] or 'unknown'}"


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    return str(value)
