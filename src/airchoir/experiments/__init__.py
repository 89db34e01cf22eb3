"""[open] The paper's evaluation and what goes beyond it: a grid, a table, a figure each.

To add an experiment, add a file here with one frozen dataclass that derives from `Experiment`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from airchoir.experiments.choirs import Choir
    from airchoir.report.findings import Findings

Progress = Callable[[int, int], None]
"""Called with (conditions done, conditions in all)."""


def silent(done: int, total: int) -> None:
    """Report progress to nobody."""


class Experiment(ABC):
    """A grid of schemes, evaluated on the banks of one or more tasks: what they say in sentences, tables and figures."""

    name: ClassVar[str]
    title: ClassVar[str]
    needs_banks: ClassVar[bool] = True
    """Whether it has nothing to say without a bank."""

    @abstractmethod
    def run(self, choirs: Sequence["Choir"], *, progress: Progress = silent) -> "Findings":
        """What the experiment finds on any number of banks, even one."""
