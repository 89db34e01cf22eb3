"""A grid of conditions in a TOML file: every list crossed with every other, checked before anything runs.

Keys are the options of `airchoir evaluate`; what is left out keeps their defaults. Keys above the first table hold for every
block. One `[grid]`, or several `[[grid]]`, whose conditions are united; without any, the keys at the top are the grid.
`skip_impossible = true` leaves combinations out that cannot be, instead of refusing the file.
"""

import itertools
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from airchoir.bank import ScoreBank
from airchoir.experiments.sweep import places
from airchoir.experiments.sweep.condition import IDLE, Condition, Reach, Value
from airchoir.experiments.sweep.places import Places
from airchoir.experiments.sweep.values import MOST, values
from airchoir.registry import suggestion

_GRID, _SKIP = "grid", "skip_impossible"
_KEYS = (*Condition._fields, _SKIP)
_MOST_TOLD = 20
_CHOICES = ("rule", "access", "channel", "accountant", "method")
_HARMLESS = Condition(participation=1e-6)
"""Values that go together with almost all others: whoever is to blame for an impossible combination is not one of them."""


class GridError(ValueError):
    """What is wrong with a grid file, one line per mistake."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        told = list(mistakes[:_MOST_TOLD])
        if len(mistakes) > _MOST_TOLD:
            told.append(f"and {len(mistakes) - _MOST_TOLD} more mistakes; mend these first")
        self.mistakes = tuple(told)
        super().__init__("\n".join(told))


@dataclass(frozen=True)
class Block:
    """Values that are crossed with each other, and where each list is written."""

    values: dict[str, list[Value]]
    written: dict[str, places.Path]
    skip_impossible: bool

    def conditions(self) -> Iterator[Condition]:
        """Every combination, without what its method does not look at."""
        lists: dict[str, list[Value]] = {
            name: self.values.get(name, [usual]) for name, usual in Condition._field_defaults.items()
        }
        for method in dict.fromkeys(lists["method"]):
            own: dict[str, list[Value]] = {"method": [method], **{name: [None] for name in IDLE[str(method)]}}
            yield from itertools.starmap(Condition, itertools.product(*({**lists, **own}).values()))


@dataclass(frozen=True)
class Plan:
    """What is to be evaluated: which condition on which bank, in the order in which it is cheapest."""

    items: tuple[tuple[int, Condition], ...]
    """The index of a bank and a condition, all different: bank by bank, and within a bank rule by rule."""
    skipped: int
    """Impossible combinations that were left out, as the file allows."""
    skip_impossible: bool
    """Whether it allows that everywhere."""


@dataclass(frozen=True)
class Grid:
    """The blocks of a grid file whose every value is fine by itself."""

    path: Path
    blocks: tuple[Block, ...]
    places: Places

    def plan(self, banks: Sequence[tuple[Path, ScoreBank]]) -> Plan:
        """Every possible condition on every bank; a GridError where one is impossible and the file does not skip it."""
        total = sum(prod(map(len, block.values.values())) for block in self.blocks) * len(banks)
        if total > MOST:
            raise ValueError(
                f"{self.path} makes {total:,} conditions on its banks; {MOST:,} are the most, so cut it up"
            )
        judge = _Judge(banks)
        impossible = _Impossible(self.path, self.places, judge)
        found: list[dict[Condition, None]] = [{} for _ in banks]
        skipped = 0
        for block in self.blocks:
            for condition in block.conditions():
                for index, reason in enumerate(judge.reasons(condition)):
                    if reason is None:
                        found[index][condition] = None
                    elif block.skip_impossible:
                        skipped += 1
                    else:
                        impossible.add(block, condition, index, reason)
        if impossible.mistakes:
            raise GridError(impossible.lines())
        items = [(index, condition) for index, each in enumerate(found) for condition in _by_rule(each)]
        if not items:
            raise ValueError(f"{self.path} holds no possible condition for these banks; all {skipped:,} were skipped")
        return Plan(tuple(items), skipped, all(block.skip_impossible for block in self.blocks))


def _by_rule(conditions: Iterable[Condition]) -> list[Condition]:
    """Rule by rule in the order of first appearance: a bank's sums and ballots are reused."""
    rules: dict[str, list[Condition]] = {}
    for condition in conditions:
        rules.setdefault(condition.rule, []).append(condition)
    return [condition for each in rules.values() for condition in each]


class _Judge:
    """Says why a condition is impossible on each bank, or None."""

    def __init__(self, banks: Sequence[tuple[Path, ScoreBank]]) -> None:
        self._banks = banks
        self._reached: dict[Reach, list[str | None]] = {}

    def reasons(self, condition: Condition) -> list[str | None]:
        """One for each bank."""
        reach = Reach.of(condition)
        if reach not in self._reached:
            self._reached[reach] = self._judged(reach)
        return self._reached[reach]

    def _judged(self, reach: Reach) -> list[str | None]:
        try:
            reach.check()
        except ValueError as error:
            return [str(error)] * len(self._banks)
        return [_missing(reach, *each) for each in self._banks]


def _missing(reach: Reach, path: Path, bank: ScoreBank) -> str | None:
    try:
        reach.check_on(bank)
    except ValueError as error:
        return f"{path}: {error}"
    return None


@dataclass
class _Impossible:
    """Impossible combinations, told once for each cause."""

    path: Path
    places: Places
    judge: _Judge
    mistakes: dict[tuple[Any, ...], "_Mistake"] = field(default_factory=dict)
    _causes: dict[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)

    def add(self, block: Block, condition: Condition, bank: int, reason: str) -> None:
        """Another one."""
        kind = id(block), re.sub(r"\d[\d.e+-]*", "#", reason)  # the same complaint about another number is the same
        case = *kind, *(getattr(condition, name) for name in _CHOICES)
        if case not in self._causes:
            blamed = _blamed(condition, block, lambda other: self.judge.reasons(other)[bank] is not None)
            self._causes[case] = *kind, *((name, getattr(condition, name)) for name in blamed if name in _CHOICES)
            mistake = self.mistakes.setdefault(self._causes[case], _Mistake())
            if len(blamed) > len(mistake.places):
                lines = sorted((self.places.line(block.written[name]), _shown(condition, name)) for name in blamed)
                mistake.places = [f"line {line} ({shown})" for line, shown in lines]
                mistake.reason = reason
        self.mistakes[self._causes[case]].count += 1

    def lines(self) -> list[str]:
        """One for each cause."""
        return [f"{self.path}, {mistake}" for mistake in self.mistakes.values()]


@dataclass
class _Mistake:
    places: list[str] = field(default_factory=list)
    reason: str = ""
    count: int = 0

    def __str__(self) -> str:
        more = f" ({self.count:,} combinations are like this; {_SKIP} = true leaves them out)" if self.count > 1 else ""
        return f"{', '.join(self.places)}: {self.reason}{more}"


def _blamed(condition: Condition, block: Block, is_wrong: Callable[[Condition], bool]) -> list[str]:
    """The keys of the block that matter: with another value for any one of them the condition would be possible."""
    written = [name for name in Condition._fields if name in block.written]

    def matters(name: str) -> bool:
        others = {getattr(_HARMLESS, name), Condition._field_defaults[name]} - {getattr(condition, name)}
        return any(not is_wrong(condition._replace(**{name: other})) for other in others)

    return [name for name in written if matters(name)] or written


def _shown(condition: Condition, name: str) -> str:
    value = getattr(condition, name)
    return f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}"


def read_grid(path: Path) -> Grid:
    """The grid in a file; a GridError with every mistake that is one by itself."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give the name of a grid file")
    if not path.exists():
        raise ValueError(f"{path} does not exist; check the name")
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        document = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise GridError([f"{path} is no text in UTF-8 ({error.reason}); save it as UTF-8"]) from None
    except tomllib.TOMLDecodeError as error:
        raise GridError([_syntax(path, str(error), Places(text))]) from None
    return _Reader(path, document, Places(text)).grid()


def _syntax(path: Path, error: str, known: Places) -> str:
    """tomllib's complaint with its place in front: its own, or where it began to go on to the end of the file."""
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)", error)
    where = f"line {place[1]}, column {place[2]}" if place and place[1] else f"line {known.last_begun()}"
    complaint = error.replace(place[0], "") if place else error
    return f"{path}, {where}: this is no TOML ({complaint}); write key = value, and words in quotes"


class _Reader:
    """Reads blocks and collects what is wrong with them."""

    def __init__(self, path: Path, document: dict[str, Any], known: Places) -> None:
        self._path, self._document, self._places = path, document, known
        self._mistakes: dict[str, None] = {}

    def grid(self) -> Grid:
        """All blocks, or a GridError."""
        common = {name: value for name, value in self._document.items() if name != _GRID}
        tables = self._tables()
        shared = self._read(common, ())
        blocks = [self._united(shared, self._read(table, place)) for place, table in tables] if tables else [shared]
        if not self._mistakes and not common and not any(table for _, table in tables):
            self._complain((_GRID,), f"there is no grid in it; give some of {', '.join(Condition._fields)}")
        if self._mistakes:
            raise GridError(list(self._mistakes))
        return Grid(self._path, tuple(blocks), self._places)

    def _tables(self) -> list[tuple[places.Path, dict[str, Any]]]:
        given = self._document.get(_GRID, [])
        if isinstance(given, dict):
            return [((_GRID,), given)]
        if isinstance(given, list) and all(isinstance(table, dict) for table in given):
            return [((_GRID, index), table) for index, table in enumerate(given)]
        self._complain((_GRID,), f"grid must be a table, got {given!r}; write [grid] on a line, its keys below")
        return []

    def _read(self, table: dict[str, Any], place: places.Path) -> Block:
        found: dict[str, list[Value]] = {}
        written: dict[str, places.Path] = {}
        for name, given in table.items():
            written[name] = (*place, name)
            if name in Condition._fields:
                found[name], complaints = values(name, given)
                for complaint in complaints:
                    self._complain(written[name], complaint)
            elif name != _SKIP:
                known = [*_KEYS, *([] if place else [_GRID])]
                self._complain(written[name], f"unknown key {name!r}; {suggestion(name, known)}")
            elif not isinstance(given, bool):
                self._complain(
                    written[name], f"{_SKIP} must be true or false, got {given!r}; true leaves out what cannot be"
                )
        return Block(found, written, table.get(_SKIP) is True)

    def _united(self, shared: Block, own: Block) -> Block:
        """A block with what is common to all where it says nothing itself."""
        skip = own.skip_impossible if _SKIP in own.written else shared.skip_impossible
        return Block({**shared.values, **own.values}, {**shared.written, **own.written}, skip)

    def _complain(self, place: places.Path, complaint: str) -> None:
        self._mistakes[f"{self._path}, line {self._places.line(place)}: {complaint}"] = None
