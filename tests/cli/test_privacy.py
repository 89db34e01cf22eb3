"""`airchoir privacy sigma|delta|epsilon`: the known answers, in all directions, as one JSON object or a table."""

import contextlib
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.access import Access
from airchoir.cli import app, main
from airchoir.privacy import Accountant
from airchoir.registry import plugins
from airchoir.rules import Rule

KNOWN = json.loads((Path(__file__).parents[1] / "known_answers" / "privacy.json").read_text())
ANSWERS = ("sigma", "delta", "epsilon")
PROMISED = {"sigma", "delta", "epsilon", "accountant"}


def known(start: str) -> list[list[float]]:
    """The rows of the known answers under the heading that starts so."""
    (heading,) = (name for name in KNOWN if name.startswith(start))
    return KNOWN[heading]


def given_the_rest(answer: str) -> list[str]:
    """What a command needs beside its defaults."""
    return [] if answer == "sigma" else ["--sigma", "5"]


def gaussian_delta(epsilon: float, mu: float) -> float:
    """delta(epsilon) of a Gaussian mechanism [Dong, Roth and Su, Corollary 2.13], with 40 digits."""
    with mpmath.workdps(40):
        shift, half = mpmath.mpf(epsilon) / mu, mpmath.mpf(mu) / 2
        return float(mpmath.ncdf(half - shift) - mpmath.exp(epsilon) * mpmath.ncdf(-half - shift))


# --- known answers


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), known("theorem1_sigma"))
@pytest.mark.parametrize("accountant", plugins(Accountant))
def test_full_participation_gives_theorem_1_in_all_directions_under_every_accountant(
    read_json: Any, accountant: str, epsilon: float, delta: float, sigma: float
) -> None:
    line = ["--accountant", accountant]
    found = read_json("privacy", "sigma", "--epsilon", epsilon, "--delta", delta, *line)
    assert found["sigma"] == pytest.approx(sigma, rel=2e-12)
    back = read_json("privacy", "delta", "--epsilon", epsilon, "--sigma", repr(found["sigma"]), *line)
    assert back["delta"] == pytest.approx(delta, rel=1e-12)
    back = read_json("privacy", "epsilon", "--delta", delta, "--sigma", repr(found["sigma"]), *line)
    assert back["epsilon"] == pytest.approx(epsilon, rel=1e-11)


@pytest.mark.parametrize(("epsilon", "sigma", "delta"), known("theorem1_delta"))
def test_theorem_1_bounds_delta(read_json: Any, epsilon: float, sigma: float, delta: float) -> None:
    found = read_json("privacy", "delta", "--epsilon", epsilon, "--sigma", sigma)
    assert found["delta"] == pytest.approx(delta, rel=1e-11)


@pytest.mark.parametrize(("participation", "_eta", "sigma"), known("theorem2_sigma"))
@pytest.mark.parametrize("rule", ["vote", "belief"])
def test_random_participation_over_the_air_gives_theorem_2(
    read_json: Any, rule: str, participation: float, _eta: float, sigma: float
) -> None:
    line = ["--epsilon", "1", "--delta", "1e-6", "--clients", "20", "--participation", participation, "--rule", rule]
    found = read_json("privacy", "sigma", *line)
    assert found["sigma"] == pytest.approx(sigma, rel=2e-12)
    assert found["theorem"] == ("Theorem 1" if participation == 1.0 else "Theorem 2")


@pytest.mark.parametrize(("queries", "epsilon"), known("composition delta=1e-6, p=1, sigma=5.974598181957"))
def test_queries_with_everyone_compose_as_one_gaussian(read_json: Any, queries: int, epsilon: float) -> None:
    found = read_json("privacy", "epsilon", "--queries", queries, "--sigma", "5.974598181957")["epsilon"]
    assert found == pytest.approx(epsilon, rel=1e-9)  # as far as the known answers go
    assert gaussian_delta(found, math.sqrt(2 * queries) / 5.974598181957) == pytest.approx(1e-6, rel=1e-12)
    sigma = read_json("privacy", "sigma", "--queries", queries, "--epsilon", repr(found))["sigma"]
    assert sigma == pytest.approx(5.974598181957, rel=1e-12)


@pytest.mark.parametrize("access", ["orthogonal", "best-client"])
@pytest.mark.parametrize("participation", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("accountant", plugins(Accountant))
def test_who_is_heard_alone_gets_theorem_1_whatever_the_participation(
    read_json: Any, access: str, participation: float, accountant: str
) -> None:
    line = ["--access", access, "--participation", participation, "--accountant", accountant]
    assert read_json("privacy", "sigma", "--epsilon", "1", *line)["sigma"] == pytest.approx(5.9745981819573, rel=2e-12)
    found = read_json("privacy", "delta", "--epsilon", "1", "--sigma", "5", *line)
    assert found["delta"] == pytest.approx(2.3452915651207662e-05, rel=1e-11)
    assert read_json("privacy", "epsilon", "--sigma", "5.9745981819573", *line)["epsilon"] == pytest.approx(
        1, rel=1e-11
    )


@pytest.mark.parametrize("participation", [0.5, 1.0])
@pytest.mark.parametrize("access", plugins(Access))
def test_sigma_is_what_evaluate_uses(
    read_json: Any, bank_file: Callable[..., Path], access: str, participation: float
) -> None:
    path = bank_file(clients=4, classes=3)
    line = ["--epsilon", "2", "--delta", "1e-5", "--access", access, "--participation", participation]
    alone = read_json("privacy", "sigma", "--clients", "4", "--classes", "3", *line)
    used = read_json("evaluate", path, *line)
    assert alone["sigma"] == used["sigma"]
    assert alone["accountant"] == used["accountant"]
    assert alone["theorem"] == used["theorem"]


# --- what comes out


@pytest.mark.parametrize("answer", ANSWERS)
def test_json_has_the_promised_keys_and_what_was_asked(read_json: Any, answer: str) -> None:
    asked = {"clients": 7, "participation": 0.25, "accountant": "paper", "access": "orthogonal", "rule": "belief"}
    line = [word for name, value in asked.items() for word in (f"--{name}", value)]
    found = read_json("privacy", answer, *line, "--classes", "4", *given_the_rest(answer))
    assert found.keys() >= PROMISED
    assert found.items() >= {**asked, "classes": 4, "queries": 1, "lost": 0}.items()


def test_without_privacy_there_is_no_noise_and_infinity_is_the_string_inf(run: Any) -> None:
    found = json.loads(run("privacy", "sigma", "--json").out)
    assert (found["epsilon"], found["sigma"], found["delta"]) == ("inf", 0.0, 1e-6)
    found = json.loads(run("privacy", "epsilon", "--sigma", "0", "--json").out)
    assert (found["epsilon"], found["sigma"]) == ("inf", 0.0)
    found = json.loads(run("privacy", "delta", "--epsilon", "0", "--sigma", "inf", "--json").out)
    assert (found["delta"], found["sigma"]) == (0.0, "inf")


def test_a_delta_that_needs_no_epsilon_gives_exactly_zero(read_json: Any) -> None:
    assert read_json("privacy", "epsilon", "--delta", "0.12", "--sigma", "5")["epsilon"] == 0.0  # delta(0) = 0.1125
    assert read_json("privacy", "epsilon", "--delta", "0.11", "--sigma", "5")["epsilon"] > 0.0


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize(("participation", "theorem"), [("1", "Theorem 1"), ("0.5", "Theorem 2")])
def test_people_read_the_answer_first_and_then_the_theorem(
    run: Any, read_json: Any, answer: str, participation: str, theorem: str
) -> None:
    line = ["privacy", answer, "--participation", participation, *given_the_rest(answer)]
    line += ["--epsilon", "1"] if answer != "epsilon" else []
    ran = run(*line)
    assert (ran.status, ran.err) == (0, "")
    name, value = ran.out.splitlines()[0].split(" = ")
    assert name == answer
    assert float(value) == pytest.approx(read_json(*line)[answer], rel=1e-11)
    assert f"paper ({theorem})" in ran.out


# --- all accountants side by side


def side_by_side(out: str) -> dict[str, tuple[str, str]]:
    """sigma and assumption of each accountant in the second table, by the name with its mark."""
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in out.splitlines() if line.startswith("│")]
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}


@pytest.mark.parametrize("chosen", [None, *plugins(Accountant)])
@pytest.mark.parametrize("access", ["over-the-air", "always-on"])
def test_sigma_shows_every_accountant_with_its_assumption_and_marks_the_one_that_ran(
    run: Any, read_json: Any, chosen: str | None, access: str
) -> None:
    line = ["privacy", "sigma", "--epsilon", "1", "--participation", "0.5", "--access", access]
    ran = run(*line, *(["--accountant", chosen] if chosen else []))
    assert (ran.status, ran.err) == (0, "")
    shown, marked = side_by_side(ran.out), chosen or "paper"
    assert {name.removesuffix(" *") for name in shown} == set(plugins(Accountant))
    assert [name for name in shown if name.endswith(" *")] == [f"{marked} *"]
    for name, (sigma, assumption) in shown.items():
        accountant = name.removesuffix(" *")
        found = read_json(*line, "--accountant", accountant)
        assert float(sigma) == pytest.approx(found["sigma"], rel=1e-11)
        assert assumption == plugins(Accountant)[accountant].assumption
        if accountant == marked:
            assert f"* ran: {marked} ({found['theorem']})" in ran.out


def test_no_two_accountants_state_the_same_assumption() -> None:
    stated = [accountant.assumption for accountant in plugins(Accountant).values()]
    assert len(set(stated)) == len(stated)
    assert all("\n" not in sentence and 20 < len(sentence) < 90 for sentence in stated)


def test_an_accountant_that_refuses_says_why_and_the_others_still_answer(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise ValueError("not for this choir; use another")

    monkeypatch.setattr(plugins(Accountant)["tight"], "log_deltas", refuse)
    ran = run("privacy", "sigma", "--epsilon", "1", "--participation", "0.5")
    assert ran.status == 0
    shown = side_by_side(ran.out)
    assert shown["tight"] == ("refused", "not for this choir; use another")
    assert float(shown["counted"][0]) == pytest.approx(4.3774173460, rel=1e-9)


@pytest.mark.parametrize("line", [["--participation", "1"], ["--access", "orthogonal", "--participation", "0.5"]])
def test_where_no_participation_is_counted_on_the_assumptions_are_said_not_to_matter(run: Any, line: list[str]) -> None:
    ran = run("privacy", "sigma", "--epsilon", "1", *line)
    assert "every accountant is Theorem 1 and needs none of these" in ran.out
    assert len({sigma for sigma, _ in side_by_side(ran.out).values()}) == 1


def test_only_sigma_is_compared(run: Any) -> None:
    for answer in ("delta", "epsilon"):
        assert side_by_side(run("privacy", answer, "--sigma", "5").out) == {}


# --- bad input

BAD: dict[str, list[tuple[str, str, str]]] = {
    "--epsilon": [("-1", "-1", "inf"), ("nan", "nan", "inf"), ("-inf", "-inf", "inf")],
    "--delta": [(value, value, "1e-6") for value in ("0", "1", "-0.1", "2", "nan", "inf")],
    "--sigma": [(value, value, "standard deviation") for value in ("-1", "nan", "-inf")],
    "--clients": [("0", "0", "choir"), ("-2", "-2", "choir"), ("2.5", "'2.5'", "20")],
    "--participation": [(value, value, "1 means") for value in ("0", "-0.5", "1.5", "nan")],
    "--queries": [("0", "0", "it is"), ("-1", "-1", "it is"), ("1.5", "'1.5'", "20")],
    "--accountant": [("papr", "'papr'", "did you mean 'paper'"), ("xyzzy", "'xyzzy'", "Known: ")],
    "--access": [("over-air", "'over-air'", "did you mean 'over-the-air'"), ("xyzzy", "'xyzzy'", "Known: ")],
    "--lost": [("-1", "-1", "it is"), ("20", "20", ""), ("x", "'x'", "20")],
    "--rule": [("beliefs", "'beliefs'", "did you mean 'belief'"), ("xyzzy", "'xyzzy'", "Known: ")],
    "--classes": [("1", "1", "choice"), ("0", "0", "choice"), ("-3", "-3", "choice"), ("2.5", "'2.5'", "20")],
}
ASKED_FOR = {answer: set(BAD) - {f"--{answer}"} for answer in ANSWERS}


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_option_has_bad_values_above(answer: str) -> None:
    group: Any = typer.main.get_command(app)
    command = group.commands["privacy"].commands[answer]
    found = {option.opts[0] for option in command.params if option.param_type_name == "option"}
    assert found - {"--json", "--help"} == ASKED_FOR[answer]


@pytest.mark.parametrize("access", ["over-the-air", "orthogonal"])
@pytest.mark.parametrize(
    ("answer", "option"), [(answer, option) for answer in ANSWERS for option in sorted(ASKED_FOR[answer])]
)
def test_every_option_is_checked_even_where_it_has_no_effect(
    refused: Any, answer: str, option: str, access: str
) -> None:
    """Epsilon is infinite (no noise whatever delta) unless it is asked for; some accesses ignore the participation."""
    rest = [] if option == "--sigma" else given_the_rest(answer)
    way = [] if option == "--access" else ["--access", access]
    for value, repeated, remedy in BAD[option]:
        complaint = refused("privacy", answer, *rest, *way, option, value)
        if option == "--lost" and value == "20" and not plugins(Access)[access].covers_lost:
            assert access in complaint
            continue
        assert option.strip("-") in complaint
        assert repeated in complaint
        assert remedy in complaint.split(repeated, 1)[1]


@pytest.mark.parametrize("answer", ["delta", "epsilon"])
def test_a_missing_sigma_is_asked_for_with_an_example(refused: Any, answer: str) -> None:
    complaint = refused("privacy", answer)
    assert "--sigma is missing" in complaint
    assert "--sigma 5" in complaint


@pytest.mark.parametrize("answer", ANSWERS)
def test_lost_clients_are_refused_where_nobody_elses_noise_covers_them(refused: Any, answer: str) -> None:
    for name in (name for name, access in plugins(Access).items() if not access.covers_lost):
        assert name in refused("privacy", answer, "--access", name, "--lost", "1", *given_the_rest(answer))


# --- anything at all

NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.floats(0.0, 1.0).map(repr),
    st.sampled_from(["0", "1", "-0", "1e-15", "5e-324", "1e308", "inf", "nan", "", " ", "½", "1_0", "0x10"]),
    st.text(max_size=5),
)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    answer=st.sampled_from(ANSWERS),
    epsilon=NUMBERS,
    delta=NUMBERS,
    sigma=NUMBERS,
    participation=NUMBERS,
    clients=st.one_of(st.integers(-2, 1000).map(str), NUMBERS),
    access=st.sampled_from(sorted(plugins(Access))),
    rule=st.sampled_from(sorted(plugins(Rule))),
)
def test_any_words_at_all_end_in_an_answer_or_in_one_line(answer: str, **words: str) -> None:
    line = [word for name, value in words.items() if name != answer for word in (f"--{name}={value}",)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["privacy", answer, *line, "--json"])
    if status == 0:
        found = json.loads(out.getvalue(), parse_constant=pytest.fail)
        value = float(found[answer])
        assert value >= 0.0
        assert answer != "delta" or value <= 1.0
        assert err.getvalue() == ""
    else:
        assert status == 2
        assert out.getvalue() == ""
        assert err.getvalue().startswith("airchoir: ")
        assert err.getvalue().count("\n") == 1


@settings(deadline=None, derandomize=True, max_examples=20)
@given(
    epsilon=st.floats(0.0, 1000.0),
    log_delta=st.floats(math.log(1e-15), math.log(0.99)),
    participation=st.floats(0.01, 1.0),
    clients=st.integers(1, 100),
)
def test_the_three_commands_invert_each_other(
    epsilon: float, log_delta: float, participation: float, clients: int
) -> None:
    def ask(answer: str, **values: float) -> float:
        line = [f"--{name}={value!r}" for name, value in {**values, **law}.items()]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert main(["privacy", answer, *line, "--json"]) == 0
        return float(json.loads(out.getvalue())[answer])

    law, delta = {"participation": participation, "clients": clients}, math.exp(log_delta)
    sigma = ask("sigma", epsilon=epsilon, delta=delta)
    assert ask("delta", epsilon=epsilon, sigma=sigma) <= delta * (1.0 + 1e-12), "the promise is kept"
    if sigma > 0.0:
        assert ask("delta", epsilon=epsilon, sigma=sigma * (1.0 - 1e-9)) > delta, "and no noise is wasted"
        back = ask("epsilon", delta=delta, sigma=sigma)
        assert ask("delta", epsilon=back, sigma=sigma) == pytest.approx(delta, rel=1e-12) or back == 0.0
