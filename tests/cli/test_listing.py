"""`airchoir list`: everything that is registered, and nothing kept by hand."""

import importlib
import inspect
import json
import pkgutil
import sys
from typing import Any

import pytest

import airchoir
from airchoir import registry
from airchoir.cli import listing
from airchoir.registry import plugins


def open_rooms() -> dict[str, type]:
    """The base class of every package whose first line is marked [open], found by walking the source."""
    rooms = {}
    for module_info in pkgutil.iter_modules(airchoir.__path__):
        if module_info.ispkg:
            room = importlib.import_module(f"airchoir.{module_info.name}")
            if (room.__doc__ or "").startswith("[open]"):
                rooms |= {name.lower(): base for name, base in vars(room).items() if own_base(base, room.__name__)}
    return rooms


def own_base(value: object, room: str) -> bool:
    return inspect.isclass(value) and inspect.isabstract(value) and value.__module__ == room


def test_every_open_room_is_listed() -> None:
    rooms = open_rooms()
    assert {"rule", "access", "channel", "task"} <= set(rooms)
    assert listing.ROOMS.items() >= rooms.items()


def test_json_lists_every_registered_plugin_by_kind(read_json: Any) -> None:
    found = read_json("list")
    for kind, base in listing.ROOMS.items():
        assert list(found[kind]) == list(plugins(base))
        assert all(line.strip() for line in found[kind].values())


def test_the_table_has_one_unbroken_row_per_plugin(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    ran = run("list")
    assert (ran.status, ran.err) == (0, "")
    rows = [[cell.strip() for cell in line.split("│")[1:4]] for line in ran.out.splitlines() if line.startswith("│")]
    expected = json.loads(run("list", "--json").out)
    assert rows == [[kind, name, line] for kind, members in expected.items() for name, line in members.items()]
    assert not any("[" in line for _, _, line in rows), "citations are for readers of the source"


def test_a_newcomer_is_listed_without_another_edit(read_json: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Whisper(listing.ROOMS["channel"]):  # type: ignore[misc, name-defined]
        """Whispering, for once."""

        name = "whisper"

    Whisper.__module__ = "elsewhere"
    both = {**plugins(listing.ROOMS["channel"]), "whisper": Whisper}
    monkeypatch.setattr(
        listing, "plugins", lambda base: both if base is listing.ROOMS["channel"] else registry.plugins(base)
    )
    assert read_json("list")["channel"]["whisper"] == "Whispering, for once."


@pytest.mark.usefixtures("without_sklearn")
def test_tasks_are_listed_where_their_packages_are_missing(read_json: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("torch", "torchvision", "transformers", "matplotlib", "ray"):
        monkeypatch.setitem(sys.modules, package, None)
    assert "digits" in read_json("list")["task"]
