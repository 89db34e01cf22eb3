"""`airchoir evaluate`: the library's numbers, DESIGN's keys and defaults, and one clear line for everything that is wrong."""

import inspect
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from rich.console import Console
from safetensors.numpy import save_file

import airchoir as ac
from airchoir import provenance
from airchoir.access import Access
from airchoir.channels import Channel
from airchoir.cli import app
from airchoir.cli import evaluate as evaluate_module
from airchoir.privacy import Accountant
from airchoir.registry import plugins
from airchoir.rules import Rule

BankFile = Callable[..., Path]

PROMISED = {
    "macro_f1",
    "macro_f1_std",
    "macro_f1_se",
    "accuracy",
    "sigma",
    "channel_noise_variance",
    "channel_uses",
    "accountant",
}
"""What DESIGN promises of `evaluate --json`, and of each of its `banks`."""

DEFAULTS = {
    "--rule": "vote",
    "--access": "over-the-air",
    "--epsilon": math.inf,
    "--delta": 1e-6,
    "--snr-db": 10.0,
    "--participation": 1.0,
    "--channel": "awgn",
    "--threshold": None,
    "--accountant": "paper",
    "--queries": 1,
    "--lost": 0,
    "--method": "exact",
    "--repeats": 200,
    "--seed": 0,
    "--tolerance": 5e-4,
    "--out": None,
    "--json": False,
}
"""DESIGN's options of `evaluate`; the last numbers are those of the library's `simulate` and `evaluate`."""


def options(*words: str) -> dict[str, Any]:
    command: Any = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
    return {option.opts[0]: option.default for option in command.params if option.param_type_name == "option"}


# --- options and defaults


def test_evaluate_has_designs_options_with_designs_defaults() -> None:
    found = options("evaluate")
    assert found.items() >= DEFAULTS.items()
    parameters = {**inspect.signature(ac.evaluate).parameters, **inspect.signature(ac.simulate).parameters}
    for name in ("repeats", "seed", "tolerance"):
        assert found[f"--{name}"] == parameters[name].default


def test_a_bank_alone_is_evaluated_with_designs_defaults(read_json: Any, bank_file: BankFile) -> None:
    path = bank_file()
    scheme = ac.Scheme(
        rule=ac.MajorityVote(),
        access=ac.OverTheAir(),
        channel=ac.Awgn(snr_db=10.0),
        privacy=ac.Privacy(epsilon=math.inf, delta=1e-6, accountant="paper", queries=1),
        participation=1.0,
    )
    expected, found = ac.evaluate(scheme, ac.ScoreBank.load(path)), read_json("evaluate", path)
    assert {name: found[name] for name in PROMISED} == {name: getattr(expected, name) for name in PROMISED}


BELIEF, VOTE = ac.BeliefSum(), ac.MajorityVote()
TO_THE_LIBRARY: list[tuple[str, ac.Scheme, Callable[..., ac.Estimate], dict[str, Any]]] = [
    ("--rule belief", ac.Scheme(BELIEF), ac.evaluate, {}),
    ("--epsilon 1", ac.Scheme(privacy=ac.Privacy(1.0)), ac.evaluate, {}),
    ("--epsilon 0 --delta 0.1", ac.Scheme(privacy=ac.Privacy(0.0, 0.1)), ac.evaluate, {}),
    ("--rule belief --epsilon 2.5 --delta 1e-9", ac.Scheme(BELIEF, privacy=ac.Privacy(2.5, 1e-9)), ac.evaluate, {}),
    ("--snr-db -3.5", ac.Scheme(channel=ac.Awgn(-3.5)), ac.evaluate, {}),
    ("--snr-db inf", ac.Scheme(channel=ac.Awgn(math.inf)), ac.evaluate, {}),
    ("--participation 0.3", ac.Scheme(participation=0.3), ac.evaluate, {}),
    ("--access best-client --epsilon 8", ac.Scheme(access=ac.BestClient(), privacy=ac.Privacy(8.0)), ac.evaluate, {}),
    ("--epsilon 2 --queries 7", ac.Scheme(privacy=ac.Privacy(2.0, queries=7)), ac.evaluate, {}),
    ("--epsilon 2 --lost 2", ac.Scheme(privacy=ac.Privacy(2.0, lost=2)), ac.evaluate, {}),
    ("--channel rayleigh --participation 0.5", ac.Scheme(channel=ac.Rayleigh(), participation=0.5), ac.evaluate, {}),
    (
        "--channel rayleigh --participation 0.4 --threshold 0.2 --snr-db 3",
        ac.Scheme(channel=ac.Rayleigh(3.0, threshold=0.2), participation=0.4),
        ac.evaluate,
        {},
    ),
    (
        "--rule belief --access orthogonal --participation 0.6 --tolerance 0.02 --seed 5",
        ac.Scheme(BELIEF, ac.Orthogonal(), participation=0.6),
        ac.evaluate,
        {"tolerance": 0.02, "seed": 5},
    ),
    ("--method simulate", ac.Scheme(), ac.simulate, {}),
    (
        "--method simulate --repeats 3 --seed 9 --rule belief --epsilon 3",
        ac.Scheme(BELIEF, privacy=ac.Privacy(3.0)),
        ac.simulate,
        {"repeats": 3, "seed": 9},
    ),
]


@pytest.mark.parametrize(
    ("line", "scheme", "engine", "settings"), TO_THE_LIBRARY, ids=[row[0] for row in TO_THE_LIBRARY]
)
def test_every_option_reaches_the_library(
    read_json: Any,
    bank_file: BankFile,
    line: str,
    scheme: ac.Scheme,
    engine: Callable[..., ac.Estimate],
    settings: dict[str, Any],
) -> None:
    path = bank_file()
    found = read_json("evaluate", path, *line.split())
    expected = vars(engine(scheme, ac.ScoreBank.load(path), **settings))
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
        np.testing.assert_array_equal(found["banks"][0][name], value, err_msg=name)


def test_the_cases_above_set_every_option_that_decides_a_number() -> None:
    used = {word for line, *_ in TO_THE_LIBRARY for word in line.split() if word.startswith("--")}
    assert used >= set(DEFAULTS) - {"--accountant", "--out", "--json"}


@pytest.mark.parametrize(("option", "base"), [("rule", Rule), ("access", Access), ("accountant", Accountant)])
def test_every_registered_plugin_is_chosen_by_its_name(
    read_json: Any, bank_file: BankFile, option: str, base: type
) -> None:
    path = bank_file()
    for name in plugins(base):
        found = read_json("evaluate", path, "--epsilon", "1", f"--{option}", name)
        assert (found["scheme"] | found["scheme"]["privacy"])[option] == name
        if base is Accountant:
            assert found["accountant"] == name


def test_every_registered_channel_is_chosen_by_its_name(read_json: Any, bank_file: BankFile) -> None:
    path = bank_file()
    for name in plugins(Channel):
        found = read_json("evaluate", path, "--participation", "0.5", "--snr-db", "4", "--channel", name)
        assert found["scheme"]["channel"]["name"] == name
        assert found["scheme"]["channel"]["snr_db"] == 4.0


# --- what comes out


def test_json_has_the_promised_keys_for_all_banks_together_and_for_each(read_json: Any, bank_file: BankFile) -> None:
    paths = [bank_file(f"{seed}.safetensors", seed=seed) for seed in range(3)]
    found = read_json("evaluate", *paths, "--epsilon", "1")
    assert found.keys() >= PROMISED | {"banks"}
    assert [bank["path"] for bank in found["banks"]] == [str(path) for path in paths]
    for bank in found["banks"]:
        assert bank.keys() >= PROMISED


def test_infinity_is_the_string_inf_in_json(run: Any, bank_file: BankFile) -> None:
    ran = run("evaluate", bank_file(), "--snr-db", "inf", "--json")
    scheme = json.loads(ran.out, parse_constant=pytest.fail)["scheme"]
    assert scheme["privacy"]["epsilon"] == "inf"
    assert scheme["channel"]["snr_db"] == "inf"


@pytest.mark.parametrize(
    "line",
    ["--epsilon 1", "--method simulate --repeats 20 --epsilon 1", "--rule belief --participation 0.5 --tolerance 0.01"],
)
def test_several_banks_give_means_and_the_spread_of_one_run_on_a_random_bank(
    read_json: Any, bank_file: BankFile, line: str
) -> None:
    paths = [bank_file(f"{seed}.safetensors", seed=seed, skill=1.0 + seed) for seed in range(3)]
    found = read_json("evaluate", *paths, *line.split())
    own = [
        read_json("evaluate", path, *line.split(), "--seed", bank["seed"])
        for path, bank in zip(paths, found["banks"], strict=True)
    ]
    for bank, alone in zip(found["banks"], own, strict=True):
        assert {name: bank[name] for name in PROMISED} == {name: alone[name] for name in PROMISED}
    for name in PROMISED - {"macro_f1_std", "macro_f1_se", "accountant"}:
        assert found[name] == pytest.approx(sum(bank[name] for bank in own) / 3, rel=1e-12)
    f1 = [bank["macro_f1"] for bank in own]
    between = sum((value - sum(f1) / 3) ** 2 for value in f1) / 3
    within = sum(bank["macro_f1_std"] ** 2 for bank in own) / 3
    assert found["macro_f1_std"] == pytest.approx(math.sqrt(within + between), rel=1e-12)
    assert found["macro_f1_se"] == pytest.approx(
        math.sqrt(sum(bank["macro_f1_se"] ** 2 for bank in own)) / 3, rel=1e-12
    )


@pytest.mark.parametrize(
    "line", ["--method simulate --repeats 2 --epsilon 1", "--rule belief --participation 0.4 --tolerance 0.05"]
)
def test_what_is_drawn_for_one_bank_is_not_drawn_again_for_the_next(
    read_json: Any, bank_file: BankFile, line: str
) -> None:
    path = bank_file(queries=200)
    found = read_json("evaluate", path, path, path, "--seed", "4", *line.split())
    assert found["banks"][0]["macro_f1"] == read_json("evaluate", path, "--seed", "4", *line.split())["macro_f1"]
    assert len({bank["macro_f1"] for bank in found["banks"]}) == 3
    assert len({bank["seed"] for bank in found["banks"]}) == 3


def test_the_standard_error_over_banks_is_what_repetition_shows(
    read_json: Any, bank_file: BankFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Banks of one test set share their hard queries, so errors would add up if they shared the noise as well."""
    monkeypatch.setattr(provenance, "commit", lambda: "")  # it takes longer than everything else here
    paths = [bank_file(name, queries=60, skill=skill) for name, skill in (("a.st", 2.0), ("b.st", 2.05), ("c.st", 2.1))]
    line = ["--method", "simulate", "--repeats", "6", "--epsilon", "1"]
    found = [read_json("evaluate", *paths, *line, "--seed", seed) for seed in range(40)]
    claimed = math.sqrt(sum(one["macro_f1_se"] ** 2 for one in found) / len(found))
    shown = float(np.std([one["macro_f1"] for one in found], ddof=1))
    assert abs(shown / claimed - 1.0) < 4.0 / math.sqrt(2 * (len(found) - 1))  # relative error of a standard deviation


def test_drawing_keeps_to_the_tolerance_and_says_so(read_json: Any, run: Any, bank_file: BankFile) -> None:
    line = ["evaluate", bank_file(), "--rule", "belief", "--participation", "0.5", "--tolerance", "0.004"]
    assert 0.0 < read_json(*line)["macro_f1_se"] <= 0.004
    assert "standard error" in run(*line).out
    exact = ["evaluate", *line[1:2], "--participation", "0.5"]
    assert read_json(*exact)["macro_f1_se"] == 0.0
    assert "standard error" not in run(*exact).out


def test_people_read_the_same_numbers_in_percent(run: Any, read_json: Any, bank_file: BankFile) -> None:
    paths = [bank_file(f"{seed}.safetensors", seed=seed) for seed in range(2)]
    line = ["evaluate", *paths, "--epsilon", "1"]
    found, ran = read_json(*line), run(*line)
    assert (ran.status, ran.err) == (0, "")
    for one in (found, *found["banks"]):
        assert f"{100 * one['macro_f1']:.2f} ± {100 * one['macro_f1_std']:.2f}" in ran.out
        assert f"{100 * one['accuracy']:.2f} ± " in ran.out
    rows = {line.strip("│ \n").split("│")[0].strip(): line for line in ran.out.splitlines() if line.startswith("│")}
    assert f"{found['sigma']:.6g}" in rows["aggregate privacy noise sigma"]
    assert f"{found['channel_noise_variance']:.6g}" in rows["receiver's noise variance in the decision"]
    assert f"{found['channel_uses']:.6g} " in rows["channel uses per query"]
    assert "paper (Theorem 1)" in rows["accountant"]


def test_rows_stay_unbroken_where_the_output_is_no_terminal(
    run: Any, bank_file: BankFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = bank_file("/".join(["a-folder-with-a-long-name-" + "x" * 60] * 5) + "/seed-0.safetensors")
    lines = run("evaluate", path, path).out.splitlines()
    assert sum(str(path) in line and "±" in line for line in lines) == 2
    assert not any("…" in line for line in lines)


def test_on_a_terminal_of_80_columns_no_number_is_cut(
    run: Any, bank_file: BankFile, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate_module, "console", lambda: Console(width=80, highlight=False))
    path = bank_file("folder-with-a-long-name/another-folder-with-a-long-name/seed-0.safetensors").relative_to(folder)
    shown = run("evaluate", path, path, "--epsilon", "1").out
    assert len(re.findall(r"\d+\.\d\d ± \d+\.\d\d ", shown)) == 3 * 2
    assert "…" not in shown
    assert max(len(line) for line in shown.splitlines() if line.startswith("│")) <= 80


# --- --out

OUT = {"probabilities", "labels", "bank", "confusion", "scheme"}


@pytest.mark.parametrize(
    "line",
    [
        "--epsilon 1",
        "--rule belief --epsilon 1",
        "--participation 0.4 --epsilon 3",
        "--rule belief --participation 0.4 --tolerance 0.01 --seed 3",
        "--access best-client",
        "--snr-db inf",
    ],
)
def test_out_keeps_probabilities_and_the_confusion_that_they_expect(
    read_json: Any, bank_file: BankFile, folder: Path, line: str
) -> None:
    paths = [bank_file(f"{seed}.safetensors", seed=seed, queries=40 + seed, classes=4) for seed in range(2)]
    found = read_json("evaluate", *paths, "--out", "new/kept.npz", *line.split())
    with np.load(folder / "new" / "kept.npz", allow_pickle=False) as archive:
        kept = dict(archive)
    assert set(kept) == OUT
    assert kept["probabilities"].shape == (81, 4)
    assert kept["probabilities"].min() >= 0.0
    np.testing.assert_allclose(kept["probabilities"].sum(axis=1), 1.0, rtol=0.0, atol=4e-6)  # each within 1e-6
    banks = [ac.ScoreBank.load(path) for path in paths]
    np.testing.assert_array_equal(kept["labels"], np.concatenate([bank.test_labels for bank in banks]))
    np.testing.assert_array_equal(kept["bank"], [0] * 40 + [1] * 41)
    confusion = np.zeros((4, 4))
    for label, row in zip(kept["labels"], kept["probabilities"], strict=True):
        confusion[label] += row
    np.testing.assert_allclose(kept["confusion"], confusion, rtol=0.0, atol=1e-12)
    for index, bank in enumerate(found["banks"]):
        own = kept["bank"] == index
        right = kept["probabilities"][own, kept["labels"][own]]
        assert right.mean(dtype=np.float64) == pytest.approx(bank["accuracy"], abs=1e-12)
    assert json.loads(str(kept["scheme"])) == found["scheme"] | {"privacy": found["scheme"]["privacy"]}


def test_out_replaces_an_older_file(run: Any, bank_file: BankFile, folder: Path) -> None:
    (folder / "kept.npz").write_bytes(b"old")
    assert run("evaluate", bank_file(), "--out", "kept.npz").status == 0
    with np.load(folder / "kept.npz") as archive:
        assert set(archive) == OUT
    assert sorted(path.name for path in folder.iterdir()) == ["bank.safetensors", "kept.npz"]


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_disk_that_fills_up_leaves_out_as_it_was(
    refused: Any, bank_file: BankFile, folder: Path, monkeypatch: pytest.MonkeyPatch, old: bytes | None
) -> None:
    path = bank_file()
    if old is not None:
        (folder / "kept.npz").write_bytes(old)

    def fill_up(file: Any, **arrays: Any) -> None:
        file.write(b"half")
        raise OSError(28, "No space left on device", "kept.npz")

    monkeypatch.setattr(np, "savez_compressed", fill_up)
    assert "No space left" in refused("evaluate", path, "--out", "kept.npz")


# --- bad options

BAD: dict[str, list[tuple[str, str, str]]] = {
    "--rule": [("votes", "'votes'", "did you mean 'vote'"), ("xyzzy", "'xyzzy'", "Known: ")],
    "--access": [("orthogonol", "'orthogonol'", "did you mean 'orthogonal'"), ("", "''", "Known: ")],
    "--channel": [("agwn", "'agwn'", "did you mean 'awgn'"), ("xyzzy", "'xyzzy'", "Known: ")],
    "--accountant": [("papers", "'papers'", "did you mean 'paper'"), ("xyzzy", "'xyzzy'", "Known: ")],
    "--epsilon": [("-1", "-1", "inf"), ("nan", "nan", "inf"), ("-inf", "-inf", "inf"), ("-1e-300", "-1e-300", "inf")],
    "--delta": [(value, value, "1e-6") for value in ("0", "1", "-0.1", "1.5", "nan", "inf")],
    "--snr-db": [("nan", "nan", "10"), ("-inf", "-inf", "10"), ("-101", "-101", "10")],
    "--participation": [(value, value, "1 means") for value in ("0", "-0.5", "1.0001", "nan", "inf")],
    "--threshold": [(value, value, "power") for value in ("0", "-1", "nan", "inf")],
    "--queries": [("0", "0", "it is"), ("-3", "-3", "it is"), ("2.5", "'2.5'", "20")],
    "--lost": [("-1", "-1", "it is"), ("5", "5", "somebody"), ("1.5", "'1.5'", "20")],
    "--method": [("simulated", "'simulated'", "did you mean 'simulate'"), ("", "''", "Known: exact, simulate")],
    "--repeats": [("1", "1", "two"), ("0", "0", "two"), ("-5", "-5", "two"), ("1e3", "'1e3'", "20")],
    "--seed": [("-1", "-1", "any whole number"), ("0.5", "'0.5'", "20"), ("abc", "'abc'", "20")],
    "--tolerance": [("0", "0", "standard error"), ("-1", "-1", "standard error"), ("nan", "nan", "standard error")],
    "--out": [("kept.npy", "'kept.npy'", ".npz"), ("kept", "'kept'", ".npz")],
}
"""Per option bad values of a bank of 5 clients, what of them the complaint repeats, and a word of the remedy."""


def test_every_option_has_bad_values_below() -> None:
    assert set(BAD) == set(options("evaluate")) - {"--json", "--help"}


@pytest.mark.parametrize("method", ["exact", "simulate"])
@pytest.mark.parametrize("option", BAD)
def test_every_option_is_checked_even_where_it_has_no_effect(
    refused: Any, bank_file: BankFile, option: str, method: str
) -> None:
    path = bank_file(clients=5)
    for value, repeated, remedy in BAD[option]:
        complaint = refused("evaluate", path, "--method", method, option, value, "--json")
        assert option.strip("-").replace("-", "_") in complaint.replace("-", "_")
        assert repeated in complaint
        assert remedy in complaint.split(repeated, 1)[1]


@pytest.mark.parametrize("value", ["0", "inf"])
def test_epsilon_zero_and_infinity_are_valid(read_json: Any, bank_file: BankFile, value: str) -> None:
    found = read_json("evaluate", bank_file(), "--epsilon", value)
    assert (found["sigma"] == 0.0) == (value == "inf")


def test_an_out_that_goes_with_simulate_is_refused(refused: Any, bank_file: BankFile) -> None:
    complaint = refused("evaluate", bank_file(), "--method", "simulate", "--out", "kept.npz")
    assert "--method simulate" in complaint
    assert "--method exact" in complaint


def test_an_out_that_is_a_folder_is_refused(refused: Any, bank_file: BankFile, folder: Path) -> None:
    (folder / "folder.npz").mkdir()
    assert "folder.npz is a folder" in refused("evaluate", bank_file(), "--out", "folder.npz")


def test_an_out_below_a_file_is_refused(refused: Any, bank_file: BankFile, folder: Path) -> None:
    (folder / "file").write_bytes(b"content")
    assert "file" in refused("evaluate", bank_file(), "--out", "file/kept.npz")


@pytest.mark.parametrize("access", ["over-the-air", "best-client"])
def test_rayleigh_with_everyone_taking_part_is_refused(refused: Any, bank_file: BankFile, access: str) -> None:
    complaint = refused("evaluate", bank_file(), "--channel", "rayleigh", "--access", access)
    assert "participation 1 with Rayleigh" in complaint
    assert "below 1" in complaint


def test_rayleigh_with_a_threshold_that_forbids_the_participation_is_refused(refused: Any, bank_file: BankFile) -> None:
    complaint = refused(
        "evaluate", bank_file(), "--channel", "rayleigh", "--participation", "0.9", "--threshold", "0.5"
    )
    assert "0.5" in complaint
    assert f"{math.exp(-0.5):g}" in complaint
    assert "0.9" in complaint


# --- bad banks

EVEN = np.full((2, 3, 4), 0.25, dtype=np.float32)
LABELS = np.array([0, 1, 2])


def spoilt(row: list[float]) -> np.ndarray:
    scores = EVEN.copy()
    scores[1, 2] = row
    return scores


WRONG_TENSORS: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "NaN": ({"test_scores": spoilt([np.nan, 0.5, 0.25, 0.25])}, "client 1, query 2 hold NaN"),
    "negative": ({"test_scores": spoilt([-0.5, 0.5, 0.5, 0.5])}, "client 1, query 2 are negative in class 0 (-0.5)"),
    "not summing to 1": ({"test_scores": spoilt([0.5, 0.5, 0.5, 0.5])}, "client 1, query 2 sum to 2"),
    "rank 2": ({"test_scores": EVEN[0]}, "(3, 4)"),
    "rank 4": ({"test_scores": EVEN[None]}, "(1, 2, 3, 4)"),
    "float64 scores": ({"test_scores": EVEN.astype(np.float64)}, "F64"),
    "no clients": ({"test_scores": EVEN[:0]}, "0 clients"),
    "no queries": ({"test_scores": EVEN[:, :0], "test_labels": LABELS[:0]}, "0 queries"),
    "one class": ({"test_scores": np.ones((2, 3, 1), np.float32), "test_labels": 0 * LABELS}, "1 class"),
    "label too large": ({"test_labels": np.array([0, 4, 1])}, "query 1 is 4"),
    "label negative": ({"test_labels": np.array([0, 1, -1])}, "query 2 is -1"),
    "labels int32": ({"test_labels": LABELS.astype(np.int32)}, "I32"),
    "labels float": ({"test_labels": LABELS.astype(np.float32)}, "float32"),
    "too few labels": ({"test_labels": LABELS[:2]}, "(2,)"),
    "unknown tensor": ({"logits": EVEN}, "unknown logits"),
    "validation of other clients": ({"val_scores": EVEN[:1], "val_labels": LABELS}, "(1, 4)"),
    "validation labels missing": ({"val_scores": EVEN}, "val_labels"),
    "bad validation row": (
        {"val_scores": spoilt([1, 1, 1, 1]), "val_labels": LABELS},
        "val_scores of client 1, query 2",
    ),
}


def write_whole(path: Path) -> bytes:
    save_file({"test_scores": EVEN, "test_labels": LABELS}, path, metadata={"format": "1"})
    return path.read_bytes()


def newer(path: Path) -> None:
    save_file({"test_scores": EVEN, "test_labels": LABELS}, path, metadata={"format": "2"})


def no_bank(path: Path) -> None:
    save_file({"weights": EVEN}, path)


WRONG_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "does not exist"),
    "folder": (lambda path: path.mkdir(), "folder"),
    "empty": (lambda path: path.write_bytes(b""), "not a whole safetensors file"),
    "text": (lambda path: path.write_text("client,score\n0,1\n" * 9), "not a whole safetensors file"),
    "truncated": (lambda path: path.write_bytes(write_whole(path)[:-7]), "not a whole safetensors file"),
    "truncated header": (lambda path: path.write_bytes(write_whole(path)[:50]), "not a whole safetensors file"),
    "another safetensors file": (no_bank, "no score bank"),
    "newer version": (newer, "upgrade"),
}
READERS = ("evaluate", "bank check", "bank show")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("fault", WRONG_TENSORS)
def test_a_bank_with_wrong_contents_is_refused_by_file_and_place(
    refused: Any, folder: Path, fault: str, reader: str
) -> None:
    changes, what = WRONG_TENSORS[fault]
    path = folder / "bad.safetensors"
    save_file({"test_scores": EVEN, "test_labels": LABELS, **changes}, path, metadata={"format": "1"})
    complaint = refused(*reader.split(), path)
    assert complaint.startswith(str(path))
    assert what in complaint


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("fault", WRONG_FILES)
def test_a_file_that_is_no_whole_bank_is_refused_by_name(refused: Any, folder: Path, fault: str, reader: str) -> None:
    make, what = WRONG_FILES[fault]
    path = folder / "bad.safetensors"
    make(path)
    complaint = refused(*reader.split(), path)
    assert complaint.startswith(str(path))
    assert what in complaint


def test_one_bad_bank_among_good_ones_is_named(refused: Any, bank_file: BankFile, folder: Path) -> None:
    newer(folder / "bad.safetensors")
    assert refused("evaluate", bank_file(), folder / "bad.safetensors").startswith(f"{folder / 'bad.safetensors'} ")


@pytest.mark.parametrize(("what", "other"), [("clients", {"clients": 6}), ("classes", {"classes": 3})])
def test_banks_that_differ_in_clients_or_classes_are_refused_with_both_counts(
    refused: Any, bank_file: BankFile, what: str, other: dict[str, int]
) -> None:
    first, second = bank_file("first.safetensors", clients=5, classes=4), bank_file("second.safetensors", **other)
    complaint = refused("evaluate", first, second)
    for word in (str(first), str(second), what, str(other[what]), {"clients": "5", "classes": "4"}[what]):
        assert word in complaint


def test_banks_of_different_tasks_are_refused(refused: Any, bank_file: BankFile, folder: Path) -> None:
    ac.ScoreBank(EVEN, LABELS, metadata={"task": "digits"}).save(folder / "digits.safetensors")
    complaint = refused("evaluate", bank_file(clients=2, classes=4), folder / "digits.safetensors")
    assert "'digits'" in complaint
    assert "'synthetic'" in complaint


def test_banks_may_differ_in_the_number_of_queries(read_json: Any, bank_file: BankFile) -> None:
    paths = [bank_file(f"{queries}.safetensors", queries=queries) for queries in (30, 50)]
    assert len(read_json("evaluate", *paths)["banks"]) == 2


def test_the_best_client_without_validation_scores_is_refused(refused: Any, folder: Path) -> None:
    ac.ScoreBank(EVEN, LABELS).save(folder / "bank.safetensors")
    complaint = refused("evaluate", "bank.safetensors", "--access", "best-client")
    assert "no validation scores" in complaint
    assert "another access" in complaint


def test_more_lost_clients_than_there_are_is_refused_with_both_numbers(refused: Any, bank_file: BankFile) -> None:
    complaint = refused("evaluate", bank_file(clients=3), "--lost", "3", "--epsilon", "1")
    assert "3 client" in complaint
    assert "got 3" in complaint


def test_lost_clients_are_refused_where_nobody_elses_noise_covers_them(refused: Any, bank_file: BankFile) -> None:
    path = bank_file()
    uncovered = [name for name, access in plugins(Access).items() if not access.covers_lost]
    assert {"orthogonal", "best-client"} <= set(uncovered)
    for name in uncovered:
        assert name in refused("evaluate", path, "--access", name, "--lost", "1")


# --- small banks that must work


def test_one_client_alone_is_as_good_as_it_is(read_json: Any, bank_file: BankFile) -> None:
    path = bank_file(clients=1)
    bank = ac.ScoreBank.load(path)
    own = np.mean(bank.test_scores[0].argmax(axis=-1) == bank.test_labels)
    for access in plugins(Access):
        found = read_json("evaluate", path, "--snr-db", "inf", "--access", access)
        assert found["accuracy"] == pytest.approx(own, abs=1e-12)


def test_two_classes_under_noise_match_the_closed_form(read_json: Any, bank_file: BankFile) -> None:
    from scipy.stats import norm

    path = bank_file(clients=7, classes=2, queries=50)
    bank = ac.ScoreBank.load(path)
    found = read_json("evaluate", path, "--epsilon", "1", "--snr-db", "0")
    std = math.sqrt(found["sigma"] ** 2 + found["channel_noise_variance"])
    votes = 2 * (bank.test_scores.argmax(axis=-1) == bank.test_labels).sum(axis=0) - 7
    assert found["accuracy"] == pytest.approx(norm.cdf(votes / (math.sqrt(2.0) * std)).mean(), abs=2e-6)


def test_clients_that_never_vote_for_some_class_work(read_json: Any, folder: Path) -> None:
    scores = np.zeros((3, 8, 5), dtype=np.float32)
    scores[..., 1] = 1.0
    ac.ScoreBank(scores, np.array([0, 1, 1, 2, 3, 1, 4, 4])).save(folder / "one-sided.safetensors")
    found = read_json("evaluate", "one-sided.safetensors", "--snr-db", "inf")
    assert found["accuracy"] == 3 / 8
    assert found["per_class_f1"] == [0.0, pytest.approx(2 * 3 / (3 + 8)), 0.0, 0.0, 0.0]
