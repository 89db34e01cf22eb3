"""How much noise a promise takes: known values, the definitions at every place of the grid, and true sentences."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from airchoir import ScoreBank
from airchoir.experiments.choirs import Choir
from airchoir.experiments.noise import CONTENDERS, Noise
from airchoir.participation import Participation
from airchoir.privacy import sigma_for
from airchoir.report.findings import Findings
from airchoir.rules import SIMPLEX

MakeBank = Callable[..., ScoreBank]
SMALL = Noise(epsilons=(0.5, 1.0), participations=(0.1, 0.5, 1.0))


def up(value: float, digits: int) -> str:
    """Rounded up: who adds as much keeps the promise."""
    return f"{math.ceil(value * 10**digits) / 10**digits:.{digits}f}"


def rows(findings: Findings, contender: str, epsilon: float) -> list[dict[str, float]]:
    return [dict(r) for r in findings.rows if (r["contender"], r["epsilon"]) == (contender, epsilon)]


def test_without_a_bank_there_are_20_clients_and_everyones_noise_is_known() -> None:
    findings = SMALL.run([])
    for contender in CONTENDERS:
        last = rows(findings, contender, 1.0)[-1]
        assert last["clients"] == 20
        assert last["sigma"] == pytest.approx(5.9745981819573, rel=1e-12)  # known answer of Theorem 1
        assert last["client_noise"] == pytest.approx(5.9745981819573 / math.sqrt(20), rel=1e-12)


def test_half_taking_part_needs_the_papers_known_sigma() -> None:
    assert rows(SMALL.run([]), "over the air, paper", 1.0)[1]["sigma"] == pytest.approx(3.9989, abs=5e-5)  # METHOD


@pytest.mark.parametrize("accountant", ["paper", "tight", "counted"])
def test_over_the_air_a_client_adds_its_share_of_the_rounds_it_is_in(accountant: str) -> None:
    n, p = 20, 0.1
    found = rows(SMALL.run([]), f"over the air, {accountant}", 0.5)[0]
    law = Participation(n, p)
    sigma = sigma_for(0.5, 1e-6, accountant=accountant, geometry=SIMPLEX, hidden=law)
    assert found["sigma"] == pytest.approx(sigma, rel=1e-12)
    inverse = (1 - (1 - p) ** n) / (n * p)  # E[1/|P_t| given that i takes part], METHOD
    assert found["client_noise"] == pytest.approx(sigma * math.sqrt(inverse), rel=1e-12)


def test_always_on_every_client_adds_the_same_in_every_round() -> None:
    found = rows(SMALL.run([]), "always-on, tight", 1.0)
    sigma = sigma_for(1.0, 1e-6, accountant="tight", geometry=SIMPLEX, hidden=Participation(20, 0.5, at_least=0))
    assert found[1]["sigma"] == pytest.approx(sigma, rel=1e-12)
    assert [r["client_noise"] for r in found] == pytest.approx([r["sigma"] / math.sqrt(20) for r in found])


def test_every_accountant_has_its_curve_in_every_panel_of_both_figures() -> None:
    findings = SMALL.run([])
    assert [figure.name for figure in findings.figures] == ["noise_sigma", "noise_client"]
    for figure, what in zip(findings.figures, ("sigma", "client_noise"), strict=True):
        assert [panel.title for panel in figure.panels] == ["ε = 0.5", "ε = 1"]
        for panel, epsilon in zip(figure.panels, SMALL.epsilons, strict=True):
            assert [curve.label for curve in panel.curves] == list(CONTENDERS)
            for curve in panel.curves:
                assert curve.x == SMALL.participations
                assert curve.y == pytest.approx([r[what] for r in rows(findings, curve.label, epsilon)])


def test_the_table_holds_both_noises() -> None:
    findings = SMALL.run([])
    (table,) = findings.tables
    assert [row[:2] for row in ([c.text for c in row] for row in table.rows)] == [
        [f"{epsilon:g}", f"{p:g}"] for epsilon in SMALL.epsilons for p in SMALL.participations
    ]
    one = rows(findings, "over the air, counted", 1.0)[0]
    assert table.rows[3][4].text == f"{up(one['sigma'], 3)} ({up(one['client_noise'], 3)})"


def test_the_banks_say_how_many_clients_there_are(make_bank: MakeBank) -> None:
    choirs = [Choir(f"task {n}", (), (make_bank(clients=n),)) for n in (7, 4, 7)]
    findings = SMALL.run(choirs)
    assert [table.name for table in findings.tables] == ["noise_4_clients", "noise_7_clients"]
    assert len({figure.name for figure in findings.figures}) == 4
    assert {r["clients"] for r in findings.rows} == {4, 7}
    assert SMALL.run(choirs[:1]).tables[0].name == "noise"


def test_progress_counts_every_calibration() -> None:
    seen: list[tuple[int, int]] = []
    SMALL.run([], progress=lambda done, total: seen.append((done, total)))
    total = len(CONTENDERS) * 6
    assert seen == [(done, total) for done in range(1, total + 1)]


@pytest.mark.parametrize("experiment", [SMALL, Noise(epsilons=(0.1, 10.0), participations=(0.3, 0.8), clients=3)])
def test_every_sentence_is_true(experiment: Noise) -> None:
    findings = experiment.run([])
    epsilon = min(experiment.epsilons, key=lambda value: abs(value - 1))
    ends = max(experiment.participations), min(experiment.participations)
    at = {(r["contender"], r["epsilon"], r["participation"]): r for r in findings.rows}
    few, many, own, *ratios = findings.summary
    for sentence, p in ((many, ends[0]), (few, ends[1])):
        assert f"{experiment.clients} clients needs at ε = {epsilon:g}, p = {p:g}:" in sentence
        for contender in CONTENDERS:
            assert f"{contender} {up(at[contender, epsilon, p]['sigma'], 2)}" in sentence
    for contender in CONTENDERS:
        values = [at[contender, epsilon, p]["client_noise"] for p in ends]
        assert f"{contender} {up(values[0], 2)} and {up(values[1], 2)}" in own
    cases = [("over the air, paper", "sigma"), ("over the air, counted", "sigma"), ("always-on, tight", "client_noise")]
    for sentence, (contender, what) in zip(ratios, cases, strict=True):
        quotients = {
            (e, p): at[contender, e, p][what] / at["over the air, tight", e, p][what]
            for e in experiment.epsilons
            for p in experiment.participations
        }
        told = re.search(r"([\d.]+) to ([\d.]+) times .* at ε = ([\d.]+), p = ([\d.]+)\.$", sentence)
        assert told
        low, high, e, p = map(float, told.groups())
        assert [low, high] == pytest.approx([min(quotients.values()), max(quotients.values())], abs=0.0051)
        assert quotients[e, p] == pytest.approx(max(quotients.values()), rel=1e-9)


def test_no_promise_takes_no_noise() -> None:
    findings = Noise(epsilons=(math.inf,), participations=(0.5, 1.0)).run([])
    assert all(r["sigma"] == r["client_noise"] == 0.0 for r in findings.rows)
    assert len(findings.summary) >= 3


def test_more_noise_is_never_asked_by_the_tight_accountant_than_by_the_papers() -> None:
    findings = Noise(epsilons=(0.5, 2.0), participations=tuple(np.linspace(0.05, 1, 8))).run([])
    for epsilon in (0.5, 2.0):
        for paper, tight in zip(
            rows(findings, "over the air, paper", epsilon), rows(findings, "over the air, tight", epsilon), strict=True
        ):
            assert tight["sigma"] <= paper["sigma"] * (1 + 1e-9)
