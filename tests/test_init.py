"""The public names: each resolves, is announced to people, to type checkers and to the lazy loader, and nothing else is."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import airchoir

NEEDS_MORE = "AirVotingClassifier"
"""What needs scikit-learn: public, but no star may ask a plain install for it."""
NAMES = [NEEDS_MORE, *(name for name in airchoir.__all__ if name != "__version__")]


def announced_to_type_checkers() -> dict[str, str]:
    """Name -> module, from the TYPE_CHECKING block."""
    tree = ast.parse(Path(airchoir.__file__).read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    assert len(blocks) == 1
    found = {}
    for statement in blocks[0].body:
        assert isinstance(statement, ast.ImportFrom)
        for alias in statement.names:
            assert alias.asname in (None, alias.name)
            found[alias.name] = str(statement.module)
    return found


def test_the_public_names_are_listed_once_and_in_order() -> None:
    assert len(set(airchoir.__all__)) == len(airchoir.__all__)
    capitals = [name for name in NAMES if name[0].isupper()]
    others = [name for name in NAMES if not name[0].isupper()]
    assert capitals == sorted(capitals)
    assert others == sorted(others)


def test_people_type_checkers_and_the_lazy_loader_know_the_same_names_in_the_same_places() -> None:
    lazy = {name: f"airchoir.{home}" for name, home in airchoir._HOMES.items()}
    assert set(lazy) == set(NAMES)
    assert announced_to_type_checkers() == lazy


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_the_object_of_its_home(name: str) -> None:
    home = import_module(f"airchoir.{airchoir._HOMES[name]}")
    value = getattr(airchoir, name)
    assert value is vars(home)[name]
    assert value.__module__ == home.__name__, "a name's home is where it is defined"
    assert value.__doc__, "a public name says what it is"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'airchoir' has no attribute 'Choir'"):
        airchoir.Choir  # noqa: B018
    with pytest.raises(ImportError, match="Choir"):
        from airchoir import Choir  # noqa: F401


def test_dir_offers_every_public_name_and_a_star_all_that_a_plain_install_has() -> None:
    assert sorted(dir(airchoir)) == sorted([NEEDS_MORE, *airchoir.__all__])
    everything: dict[str, object] = {}
    exec("from airchoir import *", everything)
    assert set(everything) - {"__builtins__"} == set(airchoir.__all__)


def test_the_version_is_that_of_the_installed_package() -> None:
    from importlib.metadata import version

    assert airchoir.__version__ == version("airchoir")
