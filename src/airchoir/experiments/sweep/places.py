"""Where in a TOML file a key is written: tomllib tells only where it stops understanding."""

import tomllib
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
"""Keys, and positions in arrays of tables, from the outside in."""


class Places:
    """The lines of a TOML file's statements.

    A statement is complete where the text up to the end of its last line is valid TOML and is not before: no line within an
    array or a string that goes on can end a valid file. So what a prefix of lines holds, and the one before does not, is
    written in the lines between them.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._statements: list[tuple[int, dict[str, Any]]] = []
        """The line on which a statement begins, and what the file says up to its end."""
        self._begun = 0
        """After how many lines the first statement begins that is not complete yet."""

    def line(self, path: Path) -> int:
        """The line, from 1, on which what lies at `path` begins; 1 where nothing does."""
        for line, known in self._statements or list(self._read()):
            if _holds(known, path):
                return line
        return 1

    def last_begun(self) -> int:
        """The line, from 1, on which the first statement begins that never ends."""
        list(self._read())
        return min(self._begun + 1, len(self._lines))

    def _read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        self._begun = 0
        for end in range(1, len(self._lines) + 1):
            if _says_nothing(self._lines[end - 1]) and self._begun == end - 1:
                self._begun = end
                continue
            try:
                known = tomllib.loads("\n".join(self._lines[:end]) + "\n")
            except tomllib.TOMLDecodeError:
                continue
            self._statements.append((self._begun + 1, known))
            self._begun = end
            yield self._statements[-1]


def _says_nothing(line: str) -> bool:
    return line.strip(" \t\r").partition("#")[0] == ""


def _holds(known: Any, path: Path) -> bool:
    for step in path:
        if step not in (range(len(known)) if isinstance(known, list) else known if isinstance(known, dict) else ()):
            return False
        known = known[step]
    return True
