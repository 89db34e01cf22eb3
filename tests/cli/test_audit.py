"""`airchoir privacy audit`: the claim beside what was proved, as a table or as JSON, and the verdict as exit status."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from airchoir import AlwaysOn, Privacy, Scheme, audit_privacy

Run = Callable[..., Any]
QUICK = ("--clients", "2", "--classes", "2", "--repeats", "20000")
TOO_QUIET = ("privacy", "audit", "--epsilon", "1", "--sigma", "4.2", *QUICK)
"""sigma is 30 % too small."""


def test_the_json_holds_the_claim_the_bounds_and_the_verdict(read_json: Callable[..., dict[str, Any]]) -> None:
    values = read_json("privacy", "audit", *QUICK)
    assert {"sigma", "delta", "epsilon", "accountant", "theorem", "attack", "lower_bound"} <= set(values)
    assert (values["epsilon"], values["delta"], values["queries"], values["lost"]) == (1.0, 1e-6, 1, 0)
    assert (values["repeats"], values["confidence"], values["clients"]) == (20000, 0.95, 2)
    assert (values["verdict"], values["violated"]) == ("consistent", False)
    assert 0.0 < values["lower_bound"] < values["gaussian_lower_bound"] < 1.0
    assert values["sigma"] == pytest.approx(5.974598181957, rel=1e-12)


def test_the_options_reach_the_mechanism(read_json: Callable[..., dict[str, Any]]) -> None:
    values = read_json(
        *("privacy", "audit", "--epsilon", "2", "--delta", "0.01", "--clients", "3", "--participation", "0.5"),
        *("--access", "always-on", "--accountant", "tight", "--lost", "1", "--classes", "4", "--repeats", "300"),
        *("--confidence", "0.9", "--seed", "8"),
    )
    privacy = Privacy(2.0, 0.01, accountant="tight", lost=1)
    scheme = Scheme(access=AlwaysOn(), privacy=privacy, participation=0.5)
    found = audit_privacy(scheme, clients=3, classes=4, repeats=300, confidence=0.9, seed=8)
    assert {name: values[name] for name in vars(found)} == vars(found)
    assert values["gaussian_lower_bound"] is None
    assert (values["access"], values["participation"], values["lost"], values["seed"]) == ("always-on", 0.5, 1, 8)


def test_sigma_alone_is_audited_against_what_it_costs(read_json: Callable[..., dict[str, Any]]) -> None:
    price = read_json("privacy", "epsilon", "--sigma", "4.2", "--queries", "3")["epsilon"]
    audited = read_json("privacy", "audit", "--sigma", "4.2", "--queries", "3", *QUICK)
    assert audited["epsilon"] == price
    assert audited["sigma"] == 4.2


def test_a_person_gets_a_table_that_ends_with_the_verdict(run: Run) -> None:
    ran = run("privacy", "audit", *QUICK)
    assert (ran.status, ran.err) == (0, "")
    for words in (
        "epsilon claimed",
        "assuming nothing",
        "if Gaussian",
        "paper (Theorem 1)",
        "20000",
        "Attack: client ",
    ):
        assert words in ran.out
    last = ran.out.splitlines()[-1]
    assert last.startswith("consistent: with 95 % confidence epsilon is at least 0.")
    assert last.endswith(" if its trade-off is Gaussian, and 1 is claimed.")


def test_with_sampling_the_gaussian_bound_is_not_stated(run: Run) -> None:
    ran = run("privacy", "audit", "--participation", "0.5", "--delta", "0.01", *QUICK[:-1], "1000")
    assert "not stated" in ran.out
    assert "if its trade-off is Gaussian" not in ran.out


def test_a_violation_is_status_1_in_words_and_in_json(run: Run) -> None:
    ran = run(*TOO_QUIET)
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.splitlines()[-1].startswith("VIOLATED: with 95 % confidence epsilon is at least 1.")
    assert ran.out.splitlines()[-1].endswith(", but only 1 is claimed.")
    ran = run(*TOO_QUIET, "--json")
    assert (ran.status, ran.err, ran.out.count("\n")) == (1, "", 1)
    assert (json.loads(ran.out)["verdict"], json.loads(ran.out)["violated"]) == ("VIOLATED", True)


def test_the_shell_sees_the_status_and_no_traceback(start: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    ran = start(*TOO_QUIET)
    assert (ran.returncode, ran.stderr) == (1, "")


def test_help_says_what_the_status_means(run: Run) -> None:
    ran = run("privacy", "audit", "--help")
    assert "Exit status 1" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--repeats", "99"), "repeats must be a whole number >= 100, got 99"),
        (("--repeats", "many"), "'many' is no whole number"),
        (("--confidence", "1"), "confidence must be in (0, 1), got 1.0"),
        (("--confidence", "0"), "confidence must be in (0, 1), got 0.0"),
        (("--seed", "-1"), "seed must be a whole number >= 0, got -1"),
        (("--epsilon", "inf"), "epsilon is inf, which promises nothing to audit"),
        (("--sigma", "0"), "epsilon is inf, which promises nothing to audit"),
        (("--sigma", "-2"), "sigma must be >= 0, got -2.0"),
        (("--epsilon", "-1"), "epsilon must be >= 0, got -1.0"),
        (("--delta", "0"), "delta must be in (0, 1), got 0.0"),
        (("--queries", "0"), "queries must be a whole number >= 1, got 0"),
        (("--participation", "0"), "participation must be in (0, 1], got 0.0"),
        (("--lost", "1", "--access", "orthogonal"), "lost must be 0 with orthogonal, got 1"),
        (("--lost", "20"), "lost must be below the 20 client(s) there are, got 20"),
        (("--classes", "1"), "classes must be >= 2, got 1"),
        (("--clients", "0"), "clients must be >= 1, got 0"),
        (("--access", "rayleigh"), "unknown access 'rayleigh'"),
    ],
)
def test_bad_input_is_one_line(refused: Callable[..., str], options: tuple[str, ...], complaint: str) -> None:
    assert complaint in refused("privacy", "audit", *options)
