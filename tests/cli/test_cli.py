"""The command line as a whole: help, exit statuses, one-line complaints, pipes that close and keys that interrupt."""

import contextlib
import glob
import importlib.metadata
import io
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import airchoir
from airchoir.cli import app, main

Start = Callable[..., subprocess.CompletedProcess[str]]


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it, groups before their members."""
    yield words, group
    for name, member in getattr(group, "commands", {}).items():
        yield from commands(member, (*words, name))


COMMANDS = dict(commands(typer.main.get_command(app)))
LEAVES = {words: command for words, command in COMMANDS.items() if not hasattr(command, "commands")}


def title(words: tuple[str, ...]) -> str:
    return " ".join(("airchoir", *words))


# --- help


@pytest.mark.parametrize("words", COMMANDS, ids=title)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_of_every_command_is_printed_with_status_0(run: Any, words: tuple[str, ...], flag: str) -> None:
    ran = run(*words, flag)
    assert (ran.status, ran.err) == (0, "")
    assert f"Usage: {title(words)}" in ran.out


@pytest.mark.parametrize("words", [words for words in COMMANDS if words not in LEAVES], ids=title)
def test_a_group_called_alone_shows_its_commands(run: Any, words: tuple[str, ...]) -> None:
    ran = run(*words)
    assert (ran.status, ran.err) == (0, "")
    for member in (other for other in COMMANDS if other[:-1] == words and other):
        assert member[-1] in ran.out


@pytest.mark.parametrize("words", LEAVES, ids=title)
def test_help_of_every_command_shows_an_example_of_it(run: Any, words: tuple[str, ...]) -> None:
    assert f"Example: {title(words)} " in " ".join(run(*words, "--help").out.split())


def example(words: tuple[str, ...]) -> list[str]:
    """The arguments of the example in the help, file patterns filled in as a shell would."""
    line = LEAVES[words].epilog.removeprefix("Example: ").split(" && ")[0]
    called, *arguments = [name for word in shlex.split(line) for name in sorted(glob.glob(word)) or [word]]
    assert called == "airchoir"
    return arguments


@pytest.mark.parametrize("words", LEAVES, ids=title)
def test_the_example_in_the_help_of_every_command_is_one_that_it_understands(words: tuple[str, ...]) -> None:
    arguments = example(words)
    assert tuple(arguments[: len(words)]) == words
    LEAVES[words].make_context(words[-1], arguments[len(words) :])  # complains about unknown options and bad values


QUICK = [words for words in LEAVES if words[0] in ("demo", "doctor", "evaluate", "list", "bank")] + [
    ("privacy", answer) for answer in ("sigma", "delta", "epsilon", "plan")
]


@pytest.mark.parametrize("words", QUICK, ids=title)
def test_the_example_in_the_help_of_a_quick_command_runs(
    run: Any, bank_file: Callable[..., Path], folder: Path, words: tuple[str, ...]
) -> None:
    for seed in (0, 1):
        bank_file(f"results/banks/digits/seed-{seed}.safetensors", seed=seed)
    bank_file("airchoir-demo/banks/digits/seed-0.safetensors", seed=0)
    np.save(folder / "scores.npy", np.full((2, 3, 4), 0.25))
    np.save(folder / "labels.npy", np.array([0, 1, 2]))
    ran = run(*example(words))
    assert (ran.status, ran.err) == (0, "")
    assert ran.out


@pytest.mark.parametrize("words", LEAVES, ids=title)
def test_every_option_of_every_command_says_what_it_does(words: tuple[str, ...]) -> None:
    silent = [option.name for option in LEAVES[words].params if not option.help]
    assert silent == []


def test_the_version_is_the_installed_one(run: Any) -> None:
    ran = run("--version")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.split() == ["airchoir", airchoir.__version__]
    assert importlib.metadata.version("airchoir") == airchoir.__version__


# --- completion


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("airchoir doc", ["doctor"]),
        ("airchoir privacy s", ["sigma"]),
        ("airchoir evaluate --snr", ["--snr-db"]),
        ("airchoir --install", ["--install-completion"]),
    ],
)
def test_a_shell_completes_commands_and_options(start: Start, line: str, offered: list[str]) -> None:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_AIRCHOIR_COMPLETE": "complete_bash"}
    ended = start(env=words)
    assert (ended.returncode, ended.stdout.split()) == (0, offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_that_completes_is_shown(start: Start, shell: str) -> None:
    ended = start("--show-completion", shell, env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert ended.returncode == 0
    assert f"_AIRCHOIR_COMPLETE=complete_{shell}" in ended.stdout


# --- complaints about the command line itself


@pytest.mark.parametrize(
    ("line", "value", "remedy"),
    [
        ("evalute bank", "evalute", "evaluate"),
        ("privacy sigm", "sigm", "sigma"),
        ("bank imprt", "imprt", "import"),
        ("list --jsn", "--jsn", "--json"),
        ("evaluate", "BANK", "--help"),
        ("evaluate x --epsilonn 1", "--epsilonn", "--epsilon"),
        ("evaluate x --epsilon", "--epsilon", "--help"),
        ("evaluate x --epsilon one", "'one'", "0.5"),
        ("evaluate x --snr-db loud", "'loud'", "0.5"),
        ("evaluate x --repeats 2.5", "'2.5'", "20"),
        ("evaluate x --seed inf", "'inf'", "20"),
        ("privacy sigma --clients many", "'many'", "20"),
        ("privacy sigma 5", "5", "--help"),
        ("list everything", "everything", "--help"),
        ("bank check", "BANK", "--help"),
        ("bank import scores.npy labels.npy", "--out", "--help"),
        ("--epsilon 1", "--epsilon", "--help"),
    ],
)
def test_a_mistyped_command_line_is_answered_with_the_word_and_a_remedy(
    refused: Any, line: str, value: str, remedy: str
) -> None:
    complaint = refused(*line.split())
    assert value in complaint
    assert remedy in complaint.split(value, 1)[1]


def test_a_complaint_that_quotes_a_name_with_line_breaks_is_still_one_line(refused: Any) -> None:
    assert "two lines.safetensors does not exist" in refused("evaluate", "two\nlines.safetensors")


def test_numbers_beyond_all_bounds_are_refused_without_a_traceback(refused: Any) -> None:
    googol = "1" + "0" * 400
    refused("privacy", "sigma", "--epsilon", "1", "--participation", "0.5", "--clients", googol)
    refused("privacy", "sigma", "--epsilon", "1", "--queries", googol)


# --- as a process


@pytest.mark.parametrize("line", ["evaluate missing.safetensors", "nonsense"])
def test_bad_input_ends_the_process_with_status_2_and_one_line(start: Start, folder: Path, line: str) -> None:
    ended = start(*line.split())
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("airchoir: ")
    assert ended.stderr.count("\n") == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("line", ["list", "list --json"])
def test_a_reader_that_leaves_early_gets_no_traceback(start: Start, line: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = start(*line.split(), stdout=writer)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_full_disk_behind_standard_output_is_one_line(start: Start) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        ended = start("list", "--json", stdout=full)
    assert ended.returncode == 2
    assert ended.stderr.startswith("airchoir: ")
    assert ended.stderr.count("\n") == 1


INTERRUPTED = """
import os, signal, sys, threading
from airchoir.cli import main
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_ends_a_long_run_at_once_with_status_130_and_one_line(bank_file: Callable[..., Path]) -> None:
    path = bank_file(queries=500)
    before = path.read_bytes()
    line = ["evaluate", str(path), "--method", "simulate", "--repeats", "200000", "--epsilon", "1"]
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *line], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 128 + signal.SIGINT
    assert ended.stdout == ""
    assert ended.stderr.strip() == "airchoir: interrupted"
    assert time.monotonic() - started < 20.0, "it waited for the work that nobody wants any more"
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == before


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_an_output_of_any_encoding_gets_the_whole_table(bank_file: Callable[..., Path], encoding: str) -> None:
    path, written = bank_file(), io.BytesIO()
    with io.TextIOWrapper(written, encoding=encoding) as output, contextlib.redirect_stdout(output):
        assert main(["evaluate", str(path)]) == 0
        output.flush()
        text = written.getvalue().decode(encoding)
    assert text.count("spread of one run") == 2
    assert "channel uses" in text
    assert "±" in text or encoding == "ascii"
