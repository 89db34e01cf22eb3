"""`airchoir list`: what there is to choose from."""

import inspect
import re

from airchoir.access import Access
from airchoir.channels import Channel
from airchoir.cli.options import Json
from airchoir.cli.output import console, print_json, table
from airchoir.experiments import Experiment
from airchoir.privacy import Accountant
from airchoir.registry import plugins
from airchoir.rules import Rule
from airchoir.tasks import Task

EXAMPLES = "Example: airchoir list --json"
ROOMS = {
    "rule": Rule,
    "access": Access,
    "channel": Channel,
    "accountant": Accountant,
    "task": Task,
    "experiment": Experiment,
}


def show(json: Json = False) -> None:
    """Every rule, access, channel, accountant, task and experiment that is installed."""
    known = {
        room: {name: _first_line(plugin) for name, plugin in plugins(base).items()} for room, base in ROOMS.items()
    }
    if json:
        print_json(known)
        return
    listing = table("kind", "name", "what it does")
    for column in listing.columns[1:]:
        column.justify = "left"
    listing.columns[-1].no_wrap = False
    for room, members in known.items():
        for name, line in members.items():
            listing.add_row(room, name, line)
    console().print(listing)


def _first_line(plugin: type) -> str:
    """What its file says, or its class where a file holds several."""
    module = inspect.getmodule(plugin)
    alone = (
        module is not None and sum("name" in vars(item) for item in vars(module).values() if inspect.isclass(item)) == 1
    )
    documented = module.__doc__ if module is not None and alone else plugin.__doc__
    return re.sub(r" \[[^]]*\]", "", (documented or "").strip().split("\n")[0])  # without its citation
