"""Findings like real ones, with every sign in them that some format takes for its own."""

import pytest

from airchoir.report.findings import Cell, Curve, Figure, Findings, Panel, Table

NASTY = r"""50 % of $x_1^2$ & {a|b} #1 ~ \n <b>"it's"</b> *bold* `code` [link](x) &amp; ε ≥ ±μ — ∞"""


def curves(*, published: bool = True) -> tuple[Curve, ...]:
    x = (0.0, 5.0, 10.0)
    ours = Curve("votes", x, (70.0, 75.0, 80.0), (69.0, 74.0, 79.0), (71.0, 76.0, 81.0), style=0)
    more = Curve("beliefs", x, (60.0, 65.0, 70.0), style=1)
    theirs = Curve("votes, published", x, (71.0, 76.0, 81.0), style=0, published=True)
    alone = Curve("best client", (10.0,), (50.0,), style=2, line=False)
    return (ours, more, alone, *([theirs] if published else []))


def figure(panels: int = 2, name: str = "figure2") -> Figure:
    titles = [f"Task {index + 1}" for index in range(panels)]
    made = tuple(Panel(title, "SNR (dB)", "macro-F1 (%)", curves()) for title in titles)
    return Figure(name, "Macro-F1 against SNR.", made)


def table(name: str = "table1") -> Table:
    return Table(
        name,
        f"Ten rows: {NASTY}",
        ("Method", "macro-F1 %", NASTY),
        (
            (Cell("Majority Voting with OAC"), Cell("81.27 ± 0.10", bold=True), Cell("10")),
            (Cell(NASTY), Cell("61.27 ± 0.10"), Cell("200")),
            (Cell("[1] best"), Cell("* 2"), Cell("")),
        ),
        sections=(1,),
        notes=(NASTY,),
    )


def findings(name: str = "table1", **parts: object) -> Findings:
    values = {
        "name": name,
        "title": f"Title of {name}",
        "summary": (f"First of {name}.", NASTY),
        "tables": (table(),),
        "figures": (figure(),),
        "rows": (
            {
                "task": "digits",
                "seeds": ["0"],
                "banks": ["abcdef0123456789abcdef"],
                "accountant": "paper",
                "epsilon": "inf",
            },
            {
                "task": "digits",
                "seeds": ["0"],
                "banks": ["abcdef0123456789abcdef"],
                "accountant": "tight",
                "epsilon": 1.0,
            },
        ),
        "notes": (NASTY,),
        "source": {"commit": "0123456789ab", "versions": {"python": "3.11.2"}, "machine": "x86_64 Linux"},
    }
    return Findings(**{**values, **parts})  # type: ignore[arg-type]


@pytest.fixture
def nasty() -> str:
    return NASTY


@pytest.fixture
def make_findings():  # type: ignore[no-untyped-def]
    """A function that makes findings of a name, with parts replaced."""
    return findings


@pytest.fixture
def make_figure():  # type: ignore[no-untyped-def]
    """A function that makes a figure of so many panels."""
    return figure


@pytest.fixture
def make_table():  # type: ignore[no-untyped-def]
    """A function that makes a table with every special sign."""
    return table
