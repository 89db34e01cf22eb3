"""Find the plug-ins of an open room: every concrete class in a package that carries a ``name``.

A room is a package whose ``__init__`` holds one abstract base class. Adding a plug-in is adding one file.
"""

import dataclasses
import difflib
import importlib
import inspect
import pkgutil
from functools import cache
from typing import Any, TypeGuard


@cache
def plugins(base: type) -> dict[str, type]:
    """The concrete subclasses of `base` found in the files of its package, by name, in alphabetical order."""
    room = importlib.import_module(base.__module__)
    found: dict[str, type] = {}
    for module_info in pkgutil.iter_modules(room.__path__):
        module = importlib.import_module(f"{room.__name__}.{module_info.name}")
        for value in vars(module).values():
            if _is_plugin(value, base) and value.__module__ == module.__name__:
                _check_complete(value, base)
                _add(found, value)
    return dict(sorted(found.items()))


def _is_plugin(value: object, base: type) -> TypeGuard[type]:
    """Whether it is concrete, or meant to be: what has no name and no body for every method is a helper."""
    return (
        inspect.isclass(value) and issubclass(value, base) and (not inspect.isabstract(value) or "name" in vars(value))
    )


def _check_complete(plugin: type, base: type) -> None:
    missing = ", ".join(sorted(getattr(plugin, "__abstractmethods__", ())))
    if missing:
        place = f"{plugin.__module__}.{plugin.__qualname__}"
        raise TypeError(f"{place} lacks {missing}; write what {base.__name__} leaves abstract")


def _add(found: dict[str, type], plugin: type) -> None:
    name = getattr(plugin, "name", None)
    if not (isinstance(name, str) and name):
        raise TypeError(f"{plugin.__module__}.{plugin.__qualname__} has no name; give it a class attribute `name`")
    if name in found:
        raise TypeError(f"two plug-ins are called {name!r}: {found[name].__module__} and {plugin.__module__}")
    found[name] = plugin


def lookup(base: type, name: str) -> type:
    """The plug-in called `name`; a ValueError that lists the known ones and suggests the nearest otherwise."""
    known = plugins(base)
    if name in known:
        return known[name]
    kind = base.__name__.lower()
    raise ValueError(f"unknown {kind} {name!r}; {suggestion(name, list(known))}")


def build(base: type, name: str, **options: Any) -> Any:
    """The plug-in called `name`, given those of the options that it declares as dataclass fields."""
    plugin = lookup(base, name)
    declared = {field.name for field in dataclasses.fields(plugin)} if dataclasses.is_dataclass(plugin) else set()
    return plugin(**{option: value for option, value in options.items() if option in declared})


def suggestion(name: str, known: list[str]) -> str:
    """What to offer instead of an unknown name.

    >>> suggestion("votes", ["belief", "vote"])
    "did you mean 'vote'? Known: belief, vote"
    """
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4)
    listed = f"Known: {', '.join(known)}" if known else "none is known"
    return f"did you mean {near[0]!r}? {listed}" if near else listed
