"""The registry: a new file in a room is found by itself, and an unknown name is answered with what there is."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from airchoir.access import Access
from airchoir.channels import Channel
from airchoir.privacy import Accountant
from airchoir.registry import build, lookup, plugins, suggestion
from airchoir.rules import Rule

BASE = """
from abc import ABC, abstractmethod
from typing import ClassVar

class Voice(ABC):
    name: ClassVar[str]

    @abstractmethod
    def sing(self) -> str: ...
"""
ALTO = """
from dataclasses import dataclass
from {room} import Voice

@dataclass(frozen=True)
class Alto(Voice):
    name = "alto"
    loudness: float = 1.0

    def sing(self):
        return "la"
"""
MakeRoom = Callable[..., type]


@pytest.fixture
def make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRoom:
    """A function that makes a package with the base class `Voice` and the files given, and returns the base class."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))

    def make(**files: str) -> type:
        room = f"room_of_{tmp_path.name}"
        (tmp_path / room).mkdir(exist_ok=True)
        (tmp_path / room / "__init__.py").write_text(BASE)
        for name, content in files.items():
            (tmp_path / room / f"{name}.py").write_text(content.format(room=room))
        base: type = import_module(room).Voice
        return base

    return make


def test_the_papers_plugins_are_found_by_their_names_in_order() -> None:
    from airchoir import Awgn, BeliefSum, BestClient, MajorityVote, Orthogonal, OverTheAir, Rayleigh

    assert plugins(Rule).items() >= {"belief": BeliefSum, "vote": MajorityVote}.items()
    assert (
        plugins(Access).items()
        >= {
            "best-client": BestClient,
            "orthogonal": Orthogonal,
            "over-the-air": OverTheAir,
        }.items()
    )
    assert plugins(Channel).items() >= {"awgn": Awgn, "rayleigh": Rayleigh}.items()
    assert "paper" in plugins(Accountant)
    for base in (Rule, Access, Channel, Accountant):
        assert list(plugins(base)) == sorted(plugins(base))


@pytest.mark.parametrize("base", [Rule, Access, Channel, Accountant])
def test_every_plugin_is_concrete_and_carries_the_name_it_is_found_by(base: type) -> None:
    assert plugins(base), "an empty room"
    for name, plugin in plugins(base).items():
        assert plugin.name == name
        assert isinstance(plugin(), base), "a plug-in can be built with its defaults"


def test_a_new_file_dropped_into_a_room_is_found_without_another_edit(make_room: MakeRoom) -> None:
    base = make_room(alto=ALTO)
    assert list(plugins(base)) == ["alto"]
    assert lookup(base, "alto")().sing() == "la"


def test_abstract_helpers_imported_classes_and_strangers_are_no_plugins(make_room: MakeRoom) -> None:
    helper = "from {room} import Voice\nclass Low(Voice):\n    pitch = 'low'\nclass Stranger:\n    name = 'stranger'\n"
    copy = "from {room}.alto import Alto\n"
    assert list(plugins(make_room(alto=ALTO, helper=helper, copy=copy))) == ["alto"]


def test_a_plugin_that_forgot_a_method_is_refused_and_not_silently_left_out(make_room: MakeRoom) -> None:
    unfinished = "from {room} import Voice\nclass Low(Voice):\n    name = 'low'\n"
    with pytest.raises(TypeError, match=r"\.low\.Low lacks sing; "):
        plugins(make_room(low=unfinished))


def test_plugins_come_in_alphabetical_order_whatever_their_files_are_called(make_room: MakeRoom) -> None:
    bass = ALTO.replace("alto", "bass").replace("Alto", "Bass")
    assert list(plugins(make_room(zzz=ALTO, aaa=bass))) == ["alto", "bass"]


@pytest.mark.parametrize("second", [ALTO, "from {room}.alto import Alto\nclass Mine(Alto):\n    pass\n"])
def test_two_plugins_of_one_name_are_refused_naming_both_files(make_room: MakeRoom, second: str) -> None:
    base = make_room(alto=ALTO, again=second)
    with pytest.raises(TypeError, match=r"'alto': \S+\.again and \S+\.alto"):
        plugins(base)


@pytest.mark.parametrize("name", ["", "    name = ''\n", "    name = None\n", "    name = 7\n"])
def test_a_nameless_plugin_is_refused_saying_which(make_room: MakeRoom, name: str) -> None:
    nameless = f"from {{room}} import Voice\nclass Mute(Voice):\n{name}    def sing(self):\n        return ''\n"
    with pytest.raises(TypeError, match=r"\.mute\.Mute has no name"):
        plugins(make_room(mute=nameless))


@pytest.mark.parametrize(
    ("base", "asked", "nearest"),
    [
        (Rule, "votes", "vote"),
        (Rule, "beleif", "belief"),
        (Access, "over_the_air", "over-the-air"),
        (Access, "orthogonal ", "orthogonal"),
        (Channel, "raleigh", "rayleigh"),
        (Channel, "AWGN", "awgn"),
        (Access, "OverTheAir", "over-the-air"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_and_all_known(base: type, asked: str, nearest: str) -> None:
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as caught:
        lookup(base, asked)
    message = str(caught.value)
    assert message.startswith(f"unknown {base.__name__.lower()} {asked!r}; ")
    assert f"did you mean {nearest!r}?" in message
    assert message.endswith(f"Known: {', '.join(plugins(base))}")


def test_a_name_that_resembles_nothing_gets_the_list_alone() -> None:
    assert suggestion("xyzzy", ["belief", "vote"]) == "Known: belief, vote"
    assert suggestion("xyzzy", []) == "none is known"


def test_build_gives_a_plugin_the_options_it_declares_and_no_others() -> None:
    rayleigh = build(Channel, "rayleigh", snr_db=3.0, threshold=0.5)
    assert (rayleigh.snr_db, rayleigh.threshold) == (3.0, 0.5)
    awgn = build(Channel, "awgn", snr_db=3.0, threshold=0.5)
    assert vars(awgn) == {"snr_db": 3.0}
    assert build(Rule, "vote", snr_db=3.0) == plugins(Rule)["vote"]()
    with pytest.raises(ValueError, match="did you mean 'awgn'"):
        build(Channel, "agwn")
