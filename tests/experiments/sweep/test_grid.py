"""Grid files: what they mean, and that everything wrong is refused with its place before anything runs."""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import airchoir as ac
from airchoir import ScoreBank
from airchoir.experiments.sweep.condition import Condition
from airchoir.experiments.sweep.grid import GridError, Plan, read_grid

ReadPlan = Callable[..., Plan]
Mistakes = Callable[..., list[str]]
Synthetic = Callable[..., ScoreBank]


@pytest.fixture
def plan(tmp_path: Path, synthetic: Synthetic) -> ReadPlan:
    """A function that makes the plan of a grid file's text for some banks, by default one of 5 clients."""

    def read(text: str, *banks: ScoreBank) -> Plan:
        path = tmp_path / "grid.toml"
        path.write_bytes(text.encode())
        known = [(Path(f"bank-{index}"), bank) for index, bank in enumerate(banks or [synthetic()])]
        return read_grid(path).plan(known)

    return read


@pytest.fixture
def mistakes(plan: ReadPlan, tmp_path: Path) -> Mistakes:
    """A function that returns what is wrong with a grid, without the file's name."""

    def read(text: str, *banks: ScoreBank) -> list[str]:
        with pytest.raises(GridError) as caught:
            plan(text, *banks)
        prefix = f"{tmp_path / 'grid.toml'}"
        assert all(mistake.startswith((prefix, "and ")) and "\n" not in mistake for mistake in caught.value.mistakes)
        return [mistake.removeprefix(prefix).removeprefix(", ") for mistake in caught.value.mistakes]

    return read


def conditions(plan: Plan) -> list[Condition]:
    assert {bank for bank, _ in plan.items} == {0}
    return [condition for _, condition in plan.items]


def settled(*given: Condition) -> list[Condition]:
    """Without what their methods do not look at."""
    idle = {"exact": "repeats", "simulate": "tolerance"}
    return [condition._replace(**{idle[condition.method]: None}) for condition in given]  # type: ignore[arg-type]


# --- what a grid means


def test_every_list_is_crossed_with_every_other(plan: ReadPlan) -> None:
    found = conditions(plan('[grid]\nrule = ["vote", "belief"]\nsnr_db = [0, 10]\nepsilon = ["inf", 1.0]'))
    expected = itertools.product(["vote", "belief"], [0.0, 10.0], [math.inf, 1.0])
    assert set(found) == set(settled(*(Condition(rule=r, snr_db=s, epsilon=e) for r, s, e in expected)))
    assert len(found) == 8


@pytest.mark.parametrize("text", ["snr_db = 3", "[grid]\nsnr_db = 3", "[[grid]]\nsnr_db = 3", "snr_db = 3\n[grid]"])
def test_a_grid_may_be_at_the_top_or_in_a_table(plan: ReadPlan, text: str) -> None:
    assert conditions(plan(text)) == settled(Condition(snr_db=3.0))


def test_a_file_may_have_windows_line_ends_and_a_byte_order_mark(plan: ReadPlan, mistakes: Mistakes) -> None:
    assert conditions(plan("\ufeffsnr_db = 3\r\nqueries = 2\r\n")) == settled(Condition(snr_db=3.0, queries=2))
    assert mistakes("\ufeffsnr_db = 3\r\nqueries = 0\r\n")[0].startswith("line 2: queries")


def test_blocks_are_united_and_what_they_share_is_evaluated_once(plan: ReadPlan) -> None:
    found = conditions(plan("[[grid]]\nsnr_db = [0, 10]\n[[grid]]\nsnr_db = [10, 20, 20.0]\nrepeats = 7"))
    assert found == settled(*(Condition(snr_db=db) for db in (0.0, 10.0, 20.0)))


def test_what_the_method_does_not_look_at_makes_no_difference(plan: ReadPlan) -> None:
    found = conditions(plan('method = ["exact", "simulate"]\nrepeats = [5, 6]\ntolerance = [0.1, 0.2]'))
    exact = [Condition(tolerance=tolerance) for tolerance in (0.1, 0.2)]
    simulated = [Condition(method="simulate", repeats=repeats) for repeats in (5, 6)]
    assert found == settled(*exact, *simulated)


def test_what_is_above_the_blocks_holds_for_each_that_says_nothing_else(plan: ReadPlan) -> None:
    found = conditions(
        plan('rule = "belief"\nepsilon = [1, 2]\n[[grid]]\nsnr_db = 0\n[[grid]]\nepsilon = 3\nsnr_db = 1')
    )
    assert found == settled(
        *(Condition(rule="belief", epsilon=epsilon, snr_db=db) for epsilon, db in ((1.0, 0.0), (2.0, 0.0), (3.0, 1.0)))
    )


def test_a_plan_goes_bank_by_bank_and_rule_by_rule(plan: ReadPlan, synthetic: Synthetic) -> None:
    text = '[[grid]]\nsnr_db = [0, 1]\nrule = ["vote", "belief"]\n[[grid]]\nsnr_db = [2, 3]\nrule = ["belief", "vote"]'
    items = plan(text, synthetic(seed=0), synthetic(seed=1)).items
    assert [bank for bank, _ in items] == [0] * 8 + [1] * 8
    assert [condition.rule for _, condition in items] == (["vote"] * 4 + ["belief"] * 4) * 2
    assert items[:8] == tuple((0, condition) for _, condition in items[8:])


VALUES = {
    "rule": ["vote", "belief", "centred-vote"],
    "access": ["over-the-air", "orthogonal", "best-client", "always-on"],
    "channel": ["awgn", "rayleigh"],
    "participation": [0.25, 0.5, 1.0],
    "epsilon": [math.inf, 1.0, 0.5],
    "lost": [0, 1, 5],
    "snr_db": [0.0, math.inf],
    "threshold": [None, 0.5],
    "method": ["exact", "simulate"],
    "seed": [0, 1],
}


LISTS = {name: st.lists(st.sampled_from(each), max_size=2, unique=True) for name, each in VALUES.items()}


def toml(value: object) -> str:
    return "inf" if value == math.inf else json.dumps("none" if value is None else value)


@settings(deadline=None, max_examples=50)
@given(st.fixed_dictionaries({}, optional=LISTS))
def test_any_grid_is_the_product_of_its_lists_without_what_cannot_be(
    tmp_path_factory: pytest.TempPathFactory, synthetic: Synthetic, lists: dict[str, list[object]]
) -> None:
    lists = {name: values for name, values in lists.items() if values} or {"seed": [0]}
    path = tmp_path_factory.mktemp("grid") / "grid.toml"
    lines = [f"{name} = [{', '.join(map(toml, values))}]" for name, values in lists.items()]
    bank = synthetic(validation=False)
    possible = set()
    impossible = 0
    for values in itertools.product(*lists.values()):
        condition = Condition(**dict(zip(lists, values, strict=True)))  # type: ignore[arg-type]
        try:
            condition.scheme().link(bank)
        except ValueError:
            impossible += 1
        else:
            possible.update(settled(condition))
    path.write_text("\n".join(["skip_impossible = true", *lines]))
    if possible:
        plan = read_grid(path).plan([(Path("bank"), bank)])
        assert set(conditions(plan)) == possible
        assert (len(plan.items), plan.skipped) == (len(possible), impossible)
    else:
        with pytest.raises(ValueError, match=f"no possible condition.*{impossible} were skipped"):
            read_grid(path).plan([(Path("bank"), bank)])
    path.write_text("\n".join(lines))
    if impossible:
        with pytest.raises(GridError) as caught:
            read_grid(path).plan([(Path("bank"), bank)])
        for mistake in caught.value.mistakes:
            for line, name in [part.split(" (")[:2] for part in mistake.split(", line ")[1:] if " (" in part]:
                assert lines[int(line) - 1].startswith(name.split(" =")[0])
    else:
        assert set(conditions(read_grid(path).plan([(Path("bank"), bank)]))) == possible


# --- what is refused


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("\n[grid]\nsnr-db = 1", 3, "unknown key 'snr-db'; did you mean 'snr_db'?"),
        ("girds = 1\nrule = 'vote'", 1, "unknown key 'girds'; did you mean 'grid'?"),
        ("[girds]\nrule = 'vote'", 1, "unknown key 'girds'; did you mean 'grid'?"),
        ("[grid]\n[grid.grid]\nrule = 'vote'", 2, "unknown key 'grid'"),
        ("[grid]\nrule = 'vote'\n[[grids]]\nx = 1", 3, "unknown key 'grids'; did you mean 'grid'?"),
        ("[grid]\n\n# rule\nrule = [\n 'vote',\n 'votes',\n]", 4, "unknown rule 'votes'; did you mean 'vote'?"),
        ("[[grid]]\nrule = 'vote'\n[[grid]]\nrule = 'votes'", 4, "unknown rule 'votes'"),
        ("[grid.snr_db]\nfrom = 0\nto = 3", 1, "snr_db is a range without a number for 'step'"),
        ("[grid]\nepsilon = 2024-01-01", 2, "epsilon must be a number"),
        ("[grid]\nskip_impossible = 1", 2, "skip_impossible must be true or false, got 1"),
        ("grid = 5", 1, "grid must be a table, got 5"),
        ("snr_db = 1\ngrid = [1]", 2, "grid must be a table, got [1]"),
        ("", 1, "there is no grid in it"),
        ("# nothing\n[grid]", 2, "there is no grid in it"),
        ("[[grid]]\n[[grid]]", 1, "there is no grid in it"),
    ],
)
def test_what_is_wrong_by_itself_is_refused_with_its_line(
    mistakes: Mistakes, text: str, line: int, complaint: str
) -> None:
    (found,) = mistakes(text)
    assert found.startswith(f"line {line}: ")
    assert complaint in found


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = \nb = 1", "line 1, column 5: this is no TOML (Invalid value); "),
        ("[grid]\nrule = vote", "line 2, column 8: this is no TOML"),
        ("[grid]\nrule = 'vote'\nrule = 'belief'", "line 3: this is no TOML (Cannot overwrite a value)"),
        ("[grid]\nrule = 'vote'\n\n# open\nsnr_db = [\n1,\n", "line 5: this is no TOML"),
        ("[grid]\nrule = 'vote'\nsnr_db", "line 3: this is no TOML"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_place(mistakes: Mistakes, text: str, place: str) -> None:
    (found,) = mistakes(text)
    assert place in found


def test_a_file_that_is_no_text_or_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_bytes(b"rule = '\xff'")
    with pytest.raises(GridError, match="is no text in UTF-8"):
        read_grid(path)
    with pytest.raises(ValueError, match="is a folder; "):
        read_grid(tmp_path)
    with pytest.raises(ValueError, match="does not exist; "):
        read_grid(tmp_path / "other.toml")


@pytest.mark.parametrize(
    ("text", "places", "complaint"),
    [
        (
            'channel = ["awgn", "rayleigh"]\nparticipation = 0.5\naccess = "always-on"',
            'line 1 (channel = "rayleigh"), line 3 (access = "always-on"): ',
            "always-on needs every client in every round",
        ),
        ("rule = 'vote'\nchannel = 'rayleigh'", 'line 2 (channel = "rayleigh"): ', "participation 1 with Rayleigh"),
        (
            "participation = [0.5, 1.0]\n\nchannel = 'rayleigh'",
            'line 1 (participation = 1.0), line 3 (channel = "rayleigh"): ',
            "participation 1 with Rayleigh",
        ),
        (
            "threshold = 2.0\nchannel = 'rayleigh'\nparticipation = 0.5",
            'line 1 (threshold = 2.0), line 2 (channel = "rayleigh"), line 3 (participation = 0.5): ',
            "probability at most 0.135335",
        ),
        (
            "lost = [0, 2]\naccess = 'orthogonal'",
            'line 1 (lost = 2), line 2 (access = "orthogonal"): ',
            "lost must be 0 with orthogonal, got 2",
        ),
        ("lost = 5", "line 1 (lost = 5): ", "bank-0: lost must be below the 5 client(s) there are, got 5"),
        (
            "rule = 'vote'\naccess = ['over-the-air', 'best-client']",
            'line 2 (access = "best-client"): ',
            "bank-0: the bank has no validation scores",
        ),
    ],
)
def test_impossible_combinations_are_refused_with_the_lines_that_matter(
    mistakes: Mistakes, synthetic: Synthetic, text: str, places: str, complaint: str
) -> None:
    (found,) = mistakes(text, synthetic(validation=False))
    assert found.startswith(places)
    assert complaint in found
    assert "; " in found


def test_an_impossible_combination_is_told_once_however_often_it_occurs(mistakes: Mistakes) -> None:
    text = "snr_db = { from = 0, to = 99, step = 1 }\naccess = 'orthogonal'\nlost = { from = 1, to = 3, step = 1 }"
    (found,) = mistakes(text)
    assert "(300 combinations are like this; skip_impossible = true leaves them out)" in found


def test_only_the_bank_that_lacks_something_is_named(mistakes: Mistakes, plan: ReadPlan, synthetic: Synthetic) -> None:
    text, banks = 'access = ["best-client", "over-the-air"]', (synthetic(seed=1), synthetic(validation=False))
    (found,) = mistakes(text, *banks)
    assert "bank-1: the bank has no validation scores" in found
    possible = plan(f"{text}\nskip_impossible = true", *banks)
    assert [(bank, condition.access) for bank, condition in possible.items] == [
        (0, "best-client"),
        (0, "over-the-air"),
        (1, "over-the-air"),
    ]
    assert possible.skipped == 1


def test_a_block_decides_for_itself_what_is_skipped(plan: ReadPlan, mistakes: Mistakes) -> None:
    one, other = "[[grid]]\nlost = [0, 9]\n", "[[grid]]\nlost = [1, 8]\n"
    assert plan("skip_impossible = true\n" + one + other).skipped == 2
    found = mistakes("skip_impossible = true\n" + one + other + "skip_impossible = false")
    assert [mistake[: len("line 5")] for mistake in found] == ["line 5"]
    found = mistakes(one + "skip_impossible = true\n" + other)
    assert [mistake[: len("line 5")] for mistake in found] == ["line 5"]


def test_every_mistake_is_told_up_to_a_screenful(mistakes: Mistakes) -> None:
    found = mistakes("\n".join(f"wrong{index} = 1" for index in range(30)))
    assert [f"line {index}" for index in range(1, 21)] == [mistake.split(":")[0] for mistake in found[:20]]
    assert found[20:] == ["and 10 more mistakes; mend these first"]


def test_a_grid_that_is_too_large_is_refused_before_it_fills_the_memory(plan: ReadPlan) -> None:
    million = (
        "snr_db = { from = 0, to = 99.99, step = 0.01 }\nepsilon = { from = 1, to = 100, step = 1 }\nqueries = [1, 2]"
    )
    with pytest.raises(ValueError, match="makes 2,000,000 conditions on its banks; 1,000,000 are the most"):
        plan(million)


def test_a_rule_that_a_theorem_does_not_cover_is_refused_where_it_matters(
    plan: ReadPlan, mistakes: Mistakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer symbols than Theorem 2 covers: a rule that somebody may add."""
    covered = ac.MajorityVote.geometry
    monkeypatch.setattr(
        ac.MajorityVote, "geometry", lambda self, classes: replace(covered(self, classes), largest_norm=9.0)
    )
    text = "participation = [0.5, 1.0]\nepsilon = {}"
    (found,) = mistakes(text.format("[1.0, 'inf']"))
    assert found.startswith("line 1 (participation = 0.5)")
    assert "Theorem 2 does not cover symbols of norm 9" in found
    assert len(plan(text.format("'inf'")).items) == 2
