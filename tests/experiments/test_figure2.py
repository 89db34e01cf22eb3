"""Figure 2 and its halves: every point is what `evaluate` says, the paper's curves lie behind, and every sentence is true."""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

from airchoir import Awgn, BeliefSum, MajorityVote, OverTheAir, Privacy, Scheme, ScoreBank, evaluate
from airchoir.experiments import Experiment
from airchoir.experiments.choirs import Choir, tolerance_for
from airchoir.experiments.figure2 import Figure2
from airchoir.experiments.participation import Participation
from airchoir.experiments.snr import Snr
from airchoir.report.findings import Findings, Panel

MakeBank = Callable[..., ScoreBank]
MINUS = "\N{MINUS SIGN}"
LINES = {
    "Majority Voting (ε = ∞)": (MajorityVote(), math.inf),
    "Belief Summation (ε = ∞)": (BeliefSum(), math.inf),
    "Majority Voting (ε = 1)": (MajorityVote(), 1.0),
    "Belief Summation (ε = 1)": (BeliefSum(), 1.0),
}
SNRS = (-2.0, 0.0, 10.0, 20.0)
SHARES = (0.1, 0.3, 1.0)


def choir(*banks: ScoreBank, task: str = "cifar10") -> Choir:
    return Choir(task, (), banks)


def direct(label: str, bank: ScoreBank, *, snr_db: float = 10.0, participation: float = 1.0) -> float:
    rule, epsilon = LINES[label]
    scheme = Scheme(rule, OverTheAir(), Awgn(snr_db), Privacy(epsilon), participation)
    return evaluate(scheme, bank, tolerance=tolerance_for(bank)).macro_f1


def ours(panel: Panel) -> dict[str, tuple[tuple[float, ...], tuple[float, ...]]]:
    return {curve.label: (curve.x, curve.y) for curve in panel.curves if not curve.published}


def numbers(sentence: str) -> list[float]:
    sentence = sentence.replace("CIFAR-10", "").replace("macro-F1", "").replace(MINUS, "-")
    return [float(word) for word in re.findall(r"[+-]?\d+(?:\.\d+)?", sentence)]


@pytest.fixture
def findings(make_bank: MakeBank) -> Callable[..., Findings]:
    def run(experiment: Experiment, **options: object) -> Findings:
        return experiment.run([choir(make_bank(**options))])

    return run


# --- the grids


def test_the_grids_are_the_papers() -> None:
    assert Snr().snrs_db == tuple(float(snr) for snr in range(-2, 21, 2))
    assert Participation().participations == pytest.approx([tenths / 10 for tenths in range(1, 11)], abs=1e-15)
    assert (Snr().participation, Participation().snr_db, Snr().delta, Participation().delta) == (1.0, 10.0, 1e-6, 1e-6)
    assert Snr().accountant == Participation().accountant == "paper"


# --- points


def test_every_point_of_the_left_panel_is_what_evaluate_says(make_bank: MakeBank) -> None:
    bank = make_bank()
    (figure,) = Snr(snrs_db=SNRS).run([choir(bank)]).figures
    found = ours(figure.panels[0])
    assert list(found) == list(LINES)
    for label, (x, y) in found.items():
        assert x == SNRS
        np.testing.assert_allclose(y, [100 * direct(label, bank, snr_db=snr) for snr in SNRS], rtol=1e-12)


def test_every_point_of_the_right_panel_is_what_evaluate_says(make_bank: MakeBank) -> None:
    bank = make_bank()
    (figure,) = Participation(participations=SHARES).run([choir(bank)]).figures
    for label, (x, y) in ours(figure.panels[0]).items():
        assert x == SHARES
        np.testing.assert_allclose(y, [100 * direct(label, bank, participation=p) for p in SHARES], rtol=1e-12)


def test_the_figure_is_both_halves(make_bank: MakeBank) -> None:
    banks = [choir(make_bank())]
    snr, participation = Snr(snrs_db=SNRS), Participation(participations=SHARES)
    whole = Figure2(snr, participation).run(banks)
    left, right = snr.run(banks), participation.run(banks)
    assert [panel.curves for panel in whole.figures[0].panels] == [
        left.figures[0].panels[0].curves,
        right.figures[0].panels[0].curves,
    ]
    assert whole.rows == (*left.rows, *right.rows)
    assert whole.summary == (*left.summary, *right.summary)


def test_the_tables_hold_the_points(make_bank: MakeBank) -> None:
    bank, other = make_bank(), make_bank(seed=4)
    table = Snr(snrs_db=SNRS).run([choir(bank), choir(other, task="digits")]).tables[0]
    assert table.header == ("Task", "SNR (dB)", *LINES)
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [row[:2] for row in rows] == [
        [task, f"{snr:g}".replace("-", MINUS)] for task in ("CIFAR-10", "Digits") for snr in SNRS
    ]
    told = [float(row[2].split(" ± ")[0]) for row in rows]
    label = "Majority Voting (ε = ∞)"
    wanted = [100 * direct(label, each, snr_db=snr) for each in (bank, other) for snr in SNRS]
    np.testing.assert_allclose(told, wanted, atol=0.0051)
    assert table.sections == (len(SNRS),)


# --- the paper's


def test_the_papers_curves_lie_behind_ours_where_the_task_is_its_own(findings: Callable[..., Findings]) -> None:
    published = [curve for curve in findings(Snr()).figures[0].panels[0].curves if curve.published]
    assert [curve.style for curve in published] == [0, 1, 2, 3]
    assert published[2].y[:2] == pytest.approx((80.03, 80.49))
    right = findings(Participation()).figures[0].panels[0]
    assert [curve.y[0] for curve in right.curves if curve.published] == pytest.approx([87.61, 88.46, 38.54, 37.62])


def test_elsewhere_they_do_not(make_bank: MakeBank) -> None:
    found = Snr(snrs_db=SNRS).run([choir(make_bank(), task="digits")])
    assert not any(curve.published for curve in found.figures[0].panels[0].curves)
    assert [table.name for table in found.tables] == ["snr"]
    assert not any("paper" in sentence for sentence in found.summary)


@pytest.mark.parametrize(
    "experiment",
    [Snr(snrs_db=SNRS, participation=0.5), Snr(snrs_db=SNRS, delta=1e-3), Participation(SHARES, snr_db=0.0)],
)
def test_nor_where_the_setting_is_another(findings: Callable[..., Findings], experiment: Experiment) -> None:
    found = findings(experiment)
    assert not any(curve.published for curve in found.figures[0].panels[0].curves)
    assert len(found.tables) == 1


def test_at_another_epsilon_only_the_papers_open_lines_remain(findings: Callable[..., Findings]) -> None:
    published = [c for c in findings(Snr(snrs_db=SNRS, epsilon=2.0)).figures[0].panels[0].curves if c.published]
    assert [curve.style for curve in published] == [0, 1]


def test_the_difference_to_the_paper_is_told_point_by_point(make_bank: MakeBank) -> None:
    bank = make_bank()
    found = Participation(participations=(0.1, 0.15, 1.0)).run([choir(bank)])
    table = next(table for table in found.tables if table.name == "participation_paper")
    cells = [[cell.text.replace(MINUS, "-") for cell in row] for row in table.rows]
    assert [row[0] for row in cells] == ["0.1", "0.15", "1"]
    assert cells[1][1:] == ["\N{EN DASH}"] * 4
    label = "Majority Voting (ε = 1)"
    for row, p, said in ((cells[0], 0.1, 38.54), (cells[2], 1.0, 81.27)):
        assert float(row[3]) == pytest.approx(100 * direct(label, bank, participation=p) - said, abs=0.0051)
    row = next(r for r in found.rows if (r["rule"], r["epsilon"], r["participation"]) == ("vote", 1.0, 0.1))
    assert row["paper"] == 0.3854
    assert not any("paper" in r for r in found.rows if r["participation"] == 0.15)


def test_no_standard_error_is_larger_than_the_note_says(make_bank: MakeBank) -> None:
    for seed in range(3):
        findings = Participation(participations=(0.3, 0.7, 1.0)).run([choir(make_bank(seed=seed))])
        told = re.search(r"their standard error is at most ([\d.]+) points", findings.notes[0])
        assert told
        largest = max(100 * row["macro_f1_se"] for row in findings.rows)
        assert largest <= float(told[1]) < largest + 0.01


def test_it_says_that_participants_are_drawn_for_every_query(make_bank: MakeBank) -> None:
    for experiment in (Participation(SHARES), Figure2(Snr(SNRS), Participation(SHARES))):
        notes = experiment.run([choir(make_bank())]).notes
        assert any("every query" in note and "published figure" in note for note in notes)


# --- several tasks


def test_every_task_has_its_panel_and_its_figure_2(make_bank: MakeBank) -> None:
    choirs = [choir(make_bank(seed=seed), task=task) for seed, task in enumerate(("digits", "cifar10", "imdb"))]
    (figure,) = Snr(snrs_db=SNRS).run(choirs).figures
    assert [panel.title for panel in figure.panels] == ["Digits", "CIFAR-10", "IMDB"]
    figures = Figure2(Snr(SNRS), Participation(SHARES)).run(choirs).figures
    assert [each.name for each in figures] == ["figure2", "figure2_digits", "figure2_imdb"]
    assert figures[0].caption.startswith("CIFAR-10")
    assert all(len(each.panels) == 2 for each in figures)


def test_without_the_papers_task_the_first_has_the_plain_name(make_bank: MakeBank) -> None:
    choirs = [choir(make_bank(seed=seed), task=task) for seed, task in enumerate(("digits", "imdb"))]
    figures = Figure2(Snr(SNRS), Participation(SHARES)).run(choirs).figures
    assert [each.name for each in figures] == ["figure2", "figure2_imdb"]
    assert figures[0].caption.startswith("Digits")


def test_progress_counts_both_halves(make_bank: MakeBank) -> None:
    seen: list[tuple[int, int]] = []
    figure = Figure2(Snr(SNRS), Participation(SHARES))
    figure.run([choir(make_bank())], progress=lambda done, total: seen.append((done, total)))
    total = 4 * (len(SNRS) + len(SHARES))
    assert seen == [(done, total) for done in range(1, total + 1)]


# --- sentences


KINDS = {"small": {}, "skilled": {"skill": 5.0, "queries": 150}, "two classes": {"classes": 2, "seed": 3}}


@pytest.mark.parametrize("kind", KINDS)
def test_every_sentence_about_the_snr_is_true(make_bank: MakeBank, kind: str) -> None:
    bank = make_bank(**KINDS[kind])
    votes, beliefs, spans, price, ahead, receiver, beside = Snr(snrs_db=SNRS).run([choir(bank)]).summary
    at = {label: [100 * direct(label, bank, snr_db=snr) for snr in SNRS] for label in LINES}
    for sentence, label in ((votes, "Majority Voting (ε = 1)"), (beliefs, "Belief Summation (ε = 1)")):
        assert numbers(sentence) == [1, round(at[label][0], 1), -2, round(at[label][-1], 1), 20]
    told = [number for number in numbers(spans) if number != 1]
    assert told == pytest.approx([max(y) - min(y) for y in at.values()], abs=0.0051)
    usual = SNRS.index(10.0)
    costs = [
        at[f"{rule} (ε = 1)"][usual] - at[f"{rule} (ε = ∞)"][usual] for rule in ("Majority Voting", "Belief Summation")
    ]
    assert numbers(price)[:2] == [1, 10]
    assert numbers(price)[2:] == pytest.approx(costs, abs=0.0051)
    won = [v > b for v, b in zip(at["Majority Voting (ε = 1)"], at["Belief Summation (ε = 1)"], strict=True)]
    check_ahead(ahead, SNRS, won)
    shares = []
    for snr in (-2.0, 20.0):
        found = evaluate(Scheme(MajorityVote(), OverTheAir(), Awgn(snr), Privacy(1.0)), bank)
        shares.append(100 * found.channel_noise_variance / (found.sigma**2 + found.channel_noise_variance))
    assert numbers(receiver) == pytest.approx([1, shares[0], -2, shares[1], 20], abs=0.051)
    check_beside(beside, at, {"Majority Voting (ε = 1)": (80.03, 80.49, 81.27, 81.34)})


@pytest.mark.parametrize("kind", KINDS)
def test_every_sentence_about_participation_is_true(make_bank: MakeBank, kind: str) -> None:
    bank = make_bank(**KINDS[kind])
    *ends, best, ahead, reason, beside = Participation(participations=SHARES).run([choir(bank)]).summary
    at = {label: [100 * direct(label, bank, participation=p) for p in SHARES] for label in LINES}
    for sentence, label in zip(ends, [*list(LINES)[2:], *list(LINES)[:2]], strict=True):
        assert numbers(sentence.replace("ε = 1:", ":")) == [round(at[label][0], 1), 0.1, round(at[label][-1], 1), 1]
    for p in SHARES:
        told = re.search(rf"(?:10|,) {p:g} for ((?:(?!, \d).)*)", best)
        names = told[1] if told else ""
        assert [label for label in LINES if label in names] == [
            k for k, y in at.items() if max(y) == y[SHARES.index(p)]
        ]
    won = [v > b for v, b in zip(at["Majority Voting (ε = 1)"], at["Belief Summation (ε = 1)"], strict=True)]
    check_ahead(ahead, SHARES, won)
    clients = bank.clients
    voices = 0.1 * clients / (1 - 0.9**clients)
    sigma = evaluate(Scheme(privacy=Privacy(1.0), participation=0.1), bank).sigma
    wanted = [clients, 1, sigma, voices, 0.1, voices / sigma, 5.9745981819573, clients, 1, clients / 5.9745981819573]
    assert numbers(reason) == pytest.approx(wanted, abs=0.051)
    check_beside(beside, at, {"Belief Summation (ε = 1)": (37.62, 57.84, 80.13)})


def check_ahead(sentence: str, x: tuple[float, ...], won: list[bool]) -> None:
    told = sentence.replace(MINUS, "-").rpartition("CIFAR-10 ")[2].rstrip(".")
    if all(won) or not any(won):
        assert told == ("everywhere" if all(won) else "nowhere")
        return
    covered = set()
    for run in re.split(r", | and ", told):
        low, _, high = run.partition(" to ")
        covered |= {value for value in x if float(low) <= value <= float(high or low)}
    assert covered == {value for value, one in zip(x, won, strict=True) if one}


def check_beside(sentence: str, at: dict[str, list[float]], said: dict[str, tuple[float, ...]]) -> None:
    for label, theirs in said.items():
        found = re.search(re.escape(label) + r" (\S+) to ([^,\s]+?)[.,]*(?: |$)", sentence.replace(MINUS, "-"))
        assert found
        off = [own - their for own, their in zip(at[label], theirs, strict=True)]
        assert [float(found[1]), float(found[2])] == pytest.approx([min(off), max(off)], abs=0.0051)


@pytest.mark.parametrize("experiment", [Snr(), Participation(), Figure2()])
def test_without_a_bank_it_says_so(experiment: Experiment) -> None:
    with pytest.raises(ValueError, match="needs at least one score bank, got none"):
        experiment.run([])
