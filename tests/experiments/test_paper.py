"""The paper's numbers as data are those of its LaTeX source, typed here by hand from it."""

import math

import pytest

from airchoir.experiments import paper
from airchoir.experiments.paper import Published

TASKS = ("cifar10", "cifar100", "fashion_mnist", "imdb")
TABLE = {
    (math.inf, "Best Client Model"): ("86.37 0.33", "44.73 1.60", "89.55 0.23", "89.31 0.31"),
    (math.inf, "Orthogonal Majority Voting"): ("89.97 0.14", "62.51 0.74", "91.92 0.15", "90.59 0.06"),
    (math.inf, "Orthogonal Belief Summation"): ("90.09 0.12", "63.85 0.60", "91.91 0.11", "90.64 0.05"),
    (math.inf, "Majority Voting with OAC"): ("89.96 0.14", "62.55 0.67", "91.92 0.13", "90.62 0.10"),
    (math.inf, "Belief Summation with OAC"): ("90.14 0.16", "63.83 0.59", "91.91 0.13", "90.64 0.07"),
    (1.0, "Best Client Model"): ("12.19 0.22", "1.20 0.05", "12.29 0.30", "53.58 0.32"),
    (1.0, "Orthogonal Majority Voting"): ("22.59 0.10", "2.41 0.14", "23.43 0.55", "65.29 0.23"),
    (1.0, "Orthogonal Belief Summation"): ("22.22 0.13", "2.22 0.12", "23.30 0.55", "64.94 0.24"),
    (1.0, "Majority Voting with OAC"): ("81.27 0.10", "24.24 0.21", "84.18 0.21", "89.32 0.07"),
    (1.0, "Belief Summation with OAC"): ("80.13 0.24", "20.04 0.24", "83.81 0.22", "89.15 0.08"),
}
SNRS = tuple(range(-2, 21, 2))
SNR_CURVES = {
    ("vote", math.inf): "8997 8996 8996 8996 8996 8996 8996 8996 8996 8996 8996 8996",
    ("belief", math.inf): "9016 9014 9014 9014 9013 9013 9014 9014 9013 9013 9013 9013",
    ("vote", 1.0): "8003 8049 8087 8107 8117 8127 8127 8129 8129 8131 8132 8134",
    ("belief", 1.0): "7875 7923 7964 7983 7999 8007 8013 8013 8016 8017 8017 8019",
}
PARTICIPATION_CURVES = {
    ("vote", math.inf): "8761 8864 8902 8921 8955 8975 8981 8992 8996 8996",
    ("belief", math.inf): "8846 8920 8935 8963 8985 8995 9004 9015 9015 9014",
    ("vote", 1.0): "3854 4956 5910 6007 6789 7578 7733 7923 8042 8127",
    ("belief", 1.0): "3762 4833 5784 5869 6664 7445 7611 7793 7918 8013",
}


@pytest.mark.parametrize(("epsilon", "method"), TABLE)
def test_table_1_is_the_papers(epsilon: float, method: str) -> None:
    for task, printed in zip(TASKS, TABLE[epsilon, method], strict=True):
        mean, std = map(float, printed.split())
        assert paper.in_table1(method, epsilon, task) == Published(mean, std)


@pytest.mark.parametrize("line", SNR_CURVES)
def test_the_left_panel_of_figure_2_is_the_papers(line: tuple[str, float]) -> None:
    curve = paper.in_figure2("snr", *line, "cifar10")
    assert curve is not None
    assert curve.x == SNRS
    assert [f"{10_000 * y:.0f}" for y in curve.y] == SNR_CURVES[line].split()


@pytest.mark.parametrize("line", PARTICIPATION_CURVES)
def test_the_right_panel_of_figure_2_is_the_papers(line: tuple[str, float]) -> None:
    curve = paper.in_figure2("participation", *line, "cifar10")
    assert curve is not None
    assert curve.x == pytest.approx([tenths / 10 for tenths in range(1, 11)], abs=1e-15)
    assert [f"{10_000 * y:.0f}" for y in curve.y] == PARTICIPATION_CURVES[line].split()


def test_what_the_paper_does_not_say_is_none() -> None:
    assert paper.in_table1("Majority Voting with OAC", 2.0, "cifar10") is None
    assert paper.in_table1("Majority Voting with OAC", 1.0, "digits") is None
    assert paper.in_table1("Majority Voting", 1.0, "cifar10") is None
    assert paper.in_figure2("snr", "vote", 1.0, "imdb") is None
    assert paper.in_figure2("snr", "vote", 2.0, "cifar10") is None


@pytest.mark.parametrize(("name", "place"), [("table1", "table 1"), ("figure2", "figure 2")])
def test_the_data_say_where_they_come_from(name: str, place: str) -> None:
    assert paper.source(name) == f"Over-the-Air Ensemble Inference with Model Privacy, arXiv 2202.03129, {place}"
