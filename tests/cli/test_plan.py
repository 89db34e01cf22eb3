"""`airchoir privacy plan`, and many queries, lost clients and always-on in `sigma|delta|epsilon`, against the library."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from airchoir.access import Access
from airchoir.access.always_on import AlwaysOn
from airchoir.access.over_the_air import OverTheAir
from airchoir.participation import Participation
from airchoir.privacy import Accountant, Privacy, delta_for, epsilon_for, sigma_for
from airchoir.privacy.ledger import Mechanism
from airchoir.registry import plugins
from airchoir.rules import SIMPLEX
from airchoir.rules.centred import centred_simplex

KNOWN = json.loads((Path(__file__).parents[1] / "known_answers" / "privacy.json").read_text())
ISSUE = ("--budget-epsilon", "8", "--delta", "1e-6", "--clients", "20", "--participation", "0.5")
ACCOUNTANTS = sorted(plugins(Accountant))


def terms(accountant: str, hidden: Participation, geometry: Any = SIMPLEX) -> dict[str, Any]:
    return {"accountant": accountant, "geometry": geometry, "hidden": hidden}


# --- plan, for programs


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_the_plan_is_the_librarys(read_json: Any, accountant: str) -> None:
    given = ("--queries", 1, "--queries", 30, "--sigma", 2.5, "--sigma", 1.25, "--accountant", accountant)
    found, law = read_json("privacy", "plan", *ISSUE, *given), Participation(20, 0.5)
    assert (
        found.items()
        >= {
            "budget_epsilon": 8.0,
            "delta": 1e-6,
            "accountant": accountant,
            "clients": 20,
            "participation": 0.5,
            "access": "over-the-air",
            "rule": "vote",
            "lost": 0,
        }.items()
    )
    assert found["theorem"].startswith("Theorem 2")
    assert [row["queries"] for row in found["noise_for_queries"]] == [1, 30]
    for row in found["noise_for_queries"]:
        assert row["sigma"] == sigma_for(8.0, 1e-6, queries=row["queries"], **terms(accountant, law))
        share = math.sqrt((1 - 0.5**20) / (20 * 0.5))  # E[1 / |P_t|], given that the client sings
        assert row["client_sigma"] == pytest.approx(row["sigma"] * share, rel=1e-12)
    assert [row["sigma"] for row in found["queries_for_noise"]] == [2.5, 1.25]
    for row in found["queries_for_noise"]:
        mechanism = Mechanism(sigma=row["sigma"], **terms(accountant, law))
        assert row["queries"] == mechanism.affordable(Privacy(8.0, 1e-6)) >= 2
        assert row["epsilon_per_query"] == mechanism.epsilon(1e-6)


def test_at_full_participation_the_plan_is_one_gaussian(read_json: Any) -> None:
    """sigma grows with sqrt(T), and a noise buys (sigma / sigma_1)^2 queries."""
    line = ("--budget-epsilon", 8, "--queries", 1, "--queries", 10_000, "--sigma", 0.93, "--sigma", 92.4)
    found = read_json("privacy", "plan", *line)
    (one, many), (some, more) = found["noise_for_queries"], found["queries_for_noise"]
    assert one["sigma"] == pytest.approx(0.92339007591268, rel=1e-12)  # Theorem 1's known answer
    assert many["sigma"] == pytest.approx(92.339007591268, rel=1e-12)
    assert (some["queries"], more["queries"]) == (1, math.floor((92.4 / 0.92339007591268) ** 2))


def test_without_numbers_the_plan_shows_powers_of_ten_and_the_noises_of_common_epsilons(read_json: Any) -> None:
    found = read_json("privacy", "plan", "--accountant", "tight", "--budget-epsilon", "8")
    assert [row["queries"] for row in found["noise_for_queries"]] == [1, 10, 100, 1_000, 10_000]
    noises = [row["sigma"] for row in found["noise_for_queries"]]
    assert noises == sorted(noises)
    assert [round(row["epsilon_per_query"], 9) for row in found["queries_for_noise"]] == [0.1, 0.25, 0.5, 1.0, 2.0]
    bought = [row["queries"] for row in found["queries_for_noise"]]
    assert bought == sorted(bought, reverse=True)
    assert bought[-1] >= 4, "basic composition would buy so many"


def test_what_a_number_of_queries_needs_buys_that_number(read_json: Any) -> None:
    needed = read_json("privacy", "plan", *ISSUE, "--queries", 17, "--sigma", 1)["noise_for_queries"][0]["sigma"]
    bought = read_json("privacy", "plan", *ISSUE, "--queries", 1, "--sigma", repr(needed))["queries_for_noise"]
    assert bought[0]["queries"] == 17


def test_a_noise_that_is_too_small_for_one_query_buys_none(read_json: Any) -> None:
    found = read_json("privacy", "plan", "--budget-epsilon", "0.1", "--queries", 1, "--sigma", 5, "--sigma", 0)
    assert [row["queries"] for row in found["queries_for_noise"]] == [0, 0]
    assert found["queries_for_noise"][1]["epsilon_per_query"] == "inf"


@pytest.mark.parametrize(
    ("options", "hidden", "geometry", "share"),
    [
        (("--access", "always-on", "--lost", 5), Participation(20, 0.5, at_least=0), SIMPLEX, 15**-0.5),
        (("--access", "orthogonal"), Participation(1, 1.0), SIMPLEX, 1.0),
        (("--access", "best-client"), Participation(1, 1.0), SIMPLEX, 1.0),
        (
            ("--rule", "centred-vote", "--classes", 2, "--access", "always-on"),
            Participation(20, 0.5, 0),
            None,
            20**-0.5,
        ),
    ],
    ids=["lost", "orthogonal", "best client", "centred"],
)
def test_the_plan_follows_the_setting(
    read_json: Any, options: Any, hidden: Participation, geometry: Any, share: float
) -> None:
    line = (*ISSUE, "--accountant", "tight", "--queries", 3, "--sigma", 2, *options)
    found = read_json("privacy", "plan", *line)
    known_terms = terms("tight", hidden, geometry or centred_simplex(2))
    (needed,), (bought,) = found["noise_for_queries"], found["queries_for_noise"]
    assert needed["sigma"] == sigma_for(8.0, 1e-6, queries=3, **known_terms)
    assert needed["client_sigma"] == pytest.approx(needed["sigma"] * share, rel=1e-12)
    assert bought["queries"] == Mechanism(sigma=2.0, **known_terms).affordable(Privacy(8.0, 1e-6))


def test_lost_clients_over_the_air_plan_by_theorem_1(read_json: Any) -> None:
    found = read_json("privacy", "plan", *ISSUE, "--lost", 3, "--queries", 1, "--sigma", 1, "--accountant", "tight")
    assert found["theorem"] == "Theorem 1"
    assert found["noise_for_queries"][0]["sigma"] == pytest.approx(0.92339007591268, rel=1e-12)
    m = range(4, 21)
    weight = [math.comb(20, size) * size for size in m]  # at p = 1/2, given that the client sings
    mean = sum(w / (size - 3) for w, size in zip(weight, m, strict=True)) / sum(weight)
    expected = found["noise_for_queries"][0]["sigma"] * math.sqrt(mean)
    assert found["noise_for_queries"][0]["client_sigma"] == pytest.approx(expected, rel=1e-12)


# --- plan, for people


def test_people_see_the_budget_the_theorem_and_two_tables(run: Any) -> None:
    ran = run("privacy", "plan", *ISSUE, "--accountant", "tight", "--queries", 10_000, "--sigma", 3.5)
    assert (ran.status, ran.err) == (0, "")
    bought = Mechanism(sigma=3.5, **terms("tight", Participation(20, 0.5))).affordable(Privacy(8.0, 1e-6))
    needed = sigma_for(8.0, 1e-6, queries=10_000, **terms("tight", Participation(20, 0.5)))
    first = ran.out.splitlines()[0]
    for word in (
        "epsilon 8",
        "1e-06",
        "20 clients",
        "participation 0.5",
        "over-the-air",
        "tight",
        "Theorem 2, tightened",
    ):
        assert word in first
    for word in ("10,000", f"{needed:.6g}", "3.5", f"{bought:,}", "queries it buys", "noise sigma they need"):
        assert word in ran.out


# --- plan, bad input


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--budget-epsilon", "inf"), ("budget-epsilon", "inf")),
        (("--budget-epsilon", "nan"), ("budget-epsilon", "nan")),
        (("--budget-epsilon", "-1"), ("budget-epsilon", "-1")),
        (("--delta", "0"), ("delta", "0")),
        (("--delta", "1"), ("delta", "1")),
        (("--queries", "0"), ("queries", "0")),
        (("--queries", "10", "--queries", "-3"), ("queries", "-3")),
        (("--queries", "1.5"), ("'1.5'",)),
        (("--sigma", "-2"), ("sigma", "-2")),
        (("--sigma", "nan"), ("sigma", "nan")),
        (("--clients", "0"), ("clients", "0")),
        (("--participation", "0"), ("participation", "0")),
        (("--participation", "1.1"), ("participation", "1.1")),
        (("--classes", "1"), ("classes", "1")),
        (("--lost", "-1"), ("lost", "-1")),
        (("--lost", "20"), ("lost", "20")),
        (("--lost", "1", "--access", "orthogonal"), ("lost", "orthogonal")),
        (("--lost", "1", "--access", "best-client"), ("lost", "best-client")),
        (("--accountant", "loose"), ("loose", "tight")),
        (("--access", "telepathy"), ("telepathy", "always-on")),
        (("--rule", "oracle"), ("oracle", "vote")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_bad_input_is_one_line(refused: Any, options: tuple[str, ...], words: tuple[str, ...]) -> None:
    complaint = refused("privacy", "plan", *options)
    for word in words:
        assert word in complaint


# --- sigma, delta and epsilon: many queries


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("way", [("over-the-air", 1), ("always-on", 0)], ids=lambda way: way[0])
def test_the_three_commands_answer_for_many_queries_as_the_library_does(
    read_json: Any, accountant: str, way: tuple[str, int]
) -> None:
    access, least = way
    line = ("--clients", 20, "--participation", 0.3, "--queries", 40, "--accountant", accountant, "--access", access)
    known_terms = terms(accountant, Participation(20, 0.3, at_least=least))
    found = read_json("privacy", "sigma", "--epsilon", 2, "--delta", 1e-5, *line)
    assert found["sigma"] == sigma_for(2.0, 1e-5, queries=40, **known_terms)
    assert found.items() >= {"queries": 40, "access": access, "accountant": accountant, "lost": 0}.items()
    found = read_json("privacy", "delta", "--epsilon", 2, "--sigma", 9, *line)
    assert found["delta"] == delta_for(2.0, 9.0, queries=40, **known_terms)
    found = read_json("privacy", "epsilon", "--delta", 1e-5, "--sigma", 9, *line)
    assert found["epsilon"] == epsilon_for(1e-5, 9.0, queries=40, **known_terms)


def rows(start: str) -> list[list[float]]:
    (heading,) = (name for name in KNOWN if name.startswith(start))
    return KNOWN[heading]


@pytest.mark.parametrize(("accountant", "sigma"), [("tight", 3.2130581), ("counted", 4.3774173459763)])
def test_known_compositions(read_json: Any, accountant: str, sigma: float) -> None:
    for queries, epsilon in rows(f"composition delta=1e-6, n=20, p=0.5, {accountant}"):
        line = ("--participation", 0.5, "--accountant", accountant, "--sigma", repr(sigma), "--queries", int(queries))
        found = read_json("privacy", "epsilon", "--delta", "1e-6", *line)["epsilon"]
        assert epsilon * (1 - 1e-8) <= found <= epsilon * (1 + 1e-4)


# --- sigma, delta and epsilon: lost clients, always-on


@pytest.mark.parametrize("accountant", ["tight", "counted"])
@pytest.mark.parametrize("lost", [0, 7])
def test_known_sigmas_of_always_on_with_or_without_a_plan_for_losses(
    read_json: Any, accountant: str, lost: int
) -> None:
    for p, sigma in rows("always_on_tight_sigma"):
        line = ("--access", "always-on", "--epsilon", 1, "--participation", p, "--accountant", accountant)
        found = read_json("privacy", "sigma", *line, "--lost", lost)
        assert found["sigma"] == pytest.approx(sigma, rel=5e-11)
        assert found["lost"] == lost


@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_a_plan_for_losses_over_the_air_is_theorem_1s_aggregate(read_json: Any, participation: float) -> None:
    for accountant in ACCOUNTANTS:
        line = ("--epsilon", 1, "--participation", participation, "--lost", 5, "--accountant", accountant)
        found = read_json("privacy", "sigma", *line)
        assert found["sigma"] == pytest.approx(5.9745981819573, rel=1e-12)
        assert found["theorem"] == "Theorem 1"


@pytest.mark.parametrize(("lost", "epsilon"), [(0, 1.0), (1, 1.028), (2, 1.0585), (5, 1.168), (10, 1.455)])
def test_unplanned_losses_cost_what_is_known(read_json: Any, lost: int, epsilon: float) -> None:
    line = ("--sigma", 5.974598181958, "--lost", lost)
    found = read_json("privacy", "epsilon", *line)
    assert found["epsilon"] == pytest.approx(epsilon, abs=0.0005)
    assert (found["sigma"], found["lost"]) == (5.974598181958, lost)
    back = read_json("privacy", "delta", "--epsilon", repr(found["epsilon"]), *line)["delta"]
    assert back == pytest.approx(1e-6, rel=1e-11)
    left = 5.974598181958 * math.sqrt((20 - lost) / 20)
    alone = read_json("privacy", "epsilon", "--sigma", repr(left))["epsilon"]
    assert found["epsilon"] == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_unplanned_losses_always_on_have_an_answer_at_any_participation(read_json: Any, accountant: str) -> None:
    line = ("--access", "always-on", "--participation", 0.3, "--accountant", accountant, "--lost", 5, "--sigma", 4)
    law, left = Participation(20, 0.3, at_least=0), 4.0 * math.sqrt(15 / 20)
    for queries in (1, 12):
        found = read_json("privacy", "epsilon", *line, "--queries", queries)["epsilon"]
        assert found == pytest.approx(epsilon_for(1e-6, left, queries=queries, **terms(accountant, law)), rel=1e-9)
        found = read_json("privacy", "delta", "--epsilon", 1, *line, "--queries", queries)["delta"]
        assert found == pytest.approx(delta_for(1.0, left, queries=queries, **terms(accountant, law)), rel=1e-9)


@pytest.mark.parametrize("answer", ["delta", "epsilon"])
def test_unplanned_losses_over_the_air_at_random_participation_are_refused_with_the_reason(
    refused: Any, answer: str
) -> None:
    complaint = refused("privacy", answer, "--sigma", 5, "--lost", 2, "--participation", 0.5)
    for word in ("lost = 2", "0.5", "|P_t|", "always-on"):
        assert word in complaint


def test_the_two_accesses_that_share_noise_are_the_ones_tested_here() -> None:
    assert {type(access()) for access in plugins(Access).values() if access.covers_lost} == {OverTheAir, AlwaysOn}
