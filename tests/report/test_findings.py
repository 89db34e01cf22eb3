import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airchoir.report.findings import Cell, Curve, Figure, Findings, Panel, Table
from airchoir.report.writing import record

TEXT = st.text(max_size=12)
NUMBER = st.floats(allow_nan=False)
WHERE = Path("some.json")


@st.composite
def a_curve(draw: Any) -> Curve:
    points = draw(st.integers(0, 3))
    x, y, low, high = (tuple(draw(NUMBER) for _ in range(points)) for _ in range(4))
    band = draw(st.booleans())
    return Curve(
        draw(TEXT),
        x,
        y,
        low if band else (),
        high if band else (),
        draw(st.integers(0, 20)),
        published=draw(st.booleans()),
        line=draw(st.booleans()),
    )


@st.composite
def a_table(draw: Any) -> Table:
    header = draw(st.lists(TEXT, min_size=1, max_size=3))
    width = len(header)
    rows = draw(st.lists(st.lists(st.builds(Cell, TEXT, st.booleans()), min_size=width, max_size=width), max_size=3))
    notes, sections = draw(st.lists(TEXT, max_size=2)), draw(st.lists(st.integers(0, 3), max_size=2))
    return Table(draw(TEXT), draw(TEXT), tuple(header), tuple(map(tuple, rows)), tuple(sections), tuple(notes))


def several(what: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(what, max_size=2).map(tuple)


PANEL = st.builds(
    Panel,
    TEXT,
    TEXT,
    TEXT,
    several(a_curve()),
    st.booleans(),
    st.booleans(),
    st.just((1.0, 2.0)),
    st.just(("a", "b")),
    st.just(()) | st.just((0.0, 1.0)),
)
JSON = st.recursive(st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=2))
FINDINGS = st.builds(
    Findings,
    TEXT,
    TEXT,
    several(TEXT),
    several(a_table()),
    several(st.builds(Figure, TEXT, TEXT, several(PANEL))),
    several(st.dictionaries(TEXT, JSON, max_size=2)),
    several(TEXT),
    st.dictionaries(TEXT, JSON, max_size=2),
)


@given(FINDINGS)
def test_what_is_written_as_json_is_read_back_the_same(findings: Findings) -> None:
    written = json.loads(record(findings), parse_constant=pytest.fail)
    assert Findings.of_record(written, WHERE) == findings


def test_infinity_and_gaps_survive_as_words() -> None:
    curve = Curve("c", (1.0, math.inf, 3.0), (-math.inf, 2.0, math.nan))
    written = json.loads(record(Findings("a", "A", (), figures=(Figure("f", "", (Panel("", "", "", (curve,)),)),))))
    assert written["figures"][0]["panels"][0]["curves"][0]["x"] == [1.0, "inf", 3.0]
    again = Findings.of_record(written, WHERE).figures[0].panels[0].curves[0]
    assert again.x == curve.x
    assert again.y[:2] == curve.y[:2]
    assert math.isnan(again.y[2])


def damaged(record: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(record))
    place = copy
    for step in path[:-1]:
        place = place[step]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return copy  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("title",), 5, "title cannot be 5"),
        (("title",), KeyError, "lacks 'title'"),
        (("summary",), "one sentence", "summary cannot be 'one sentence'"),
        (("summary", 1), None, "summary[1] cannot be None"),
        (("tables", 0, "rows", 0, 1, "text"), 5, "tables[0].rows[0][1].text cannot be 5"),
        (("tables", 0, "rows", 0, 1, "bold"), "yes", "tables[0].rows[0][1].bold cannot be 'yes'"),
        (("tables", 0, "rows", 0), [], "row 0 of table 'table1' has 0 cells under 3 headings"),
        (("tables", 0, "sections"), [True], "tables[0].sections[0] cannot be True"),
        (("figures", 0, "panels", 0, "curves", 0, "y"), [1.0], "3 x, 1 y"),
        (("figures", 0, "panels", 0, "curves", 0, "y", 0), "high", "cannot be 'high'"),
        (("figures", 0, "panels", 0, "colour"), "red", "unknown 'colour'"),
        (("figures", 0), None, "figures[0] cannot be None"),
        (("rows", 0), [], "rows[0] cannot be []"),
        (("source",), "here", "source cannot be 'here'"),
    ],
)
def test_a_damaged_record_is_refused_with_the_place(path: Any, value: Any, complaint: str, make_findings: Any) -> None:
    record = make_findings().record()
    assert Findings.of_record(json.loads(json.dumps(record)), WHERE) == make_findings()
    with pytest.raises(ValueError, match=r"^some\.json .*; make it again$") as caught:
        Findings.of_record(damaged(record, *path, value=value), WHERE)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("other", [{"format": "airchoir findings 2"}, {"format": None}, {}, [], "text", None])
def test_another_format_is_refused_with_advice(other: Any) -> None:
    with pytest.raises(
        ValueError, match=re.escape("some.json holds no 'airchoir findings 1'") + ".*; upgrade airchoir"
    ):
        Findings.of_record(other, WHERE)


def test_uneven_curves_ticks_and_rows_are_refused_where_they_are_made() -> None:
    with pytest.raises(ValueError, match="2 x, 1 y"):
        Curve("c", (1.0, 2.0), (1.0,))
    with pytest.raises(ValueError, match="1 low and 0 high"):
        Curve("c", (1.0,), (1.0,), (1.0,))
    with pytest.raises(ValueError, match="2 ticks but 1 labels"):
        Panel("p", "x", "y", (), x_ticks=(1.0, 2.0), x_tick_labels=("a",))
    with pytest.raises(ValueError, match=r"y_limits .*; give the lowest and the highest"):
        Panel("p", "x", "y", (), y_limits=(1.0,))
    with pytest.raises(ValueError, match="row 0 of table 't' has 1 cells under 2 headings"):
        Table("t", "", ("a", "b"), ((Cell("1"),),))
