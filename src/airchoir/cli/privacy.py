"""`airchoir privacy`: what noise buys what promise."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from airchoir.access import Access
from airchoir.cli import options
from airchoir.cli.output import console, number, print_json, table
from airchoir.participation import Participation
from airchoir.privacy import check_lost, delta_for, epsilon_for, find_accountant, sigma_for
from airchoir.registry import build
from airchoir.rules import Geometry, Rule

_HELP = "What noise buys what promise: sigma, delta or epsilon from the others."
app = typer.Typer(help=_HELP, invoke_without_command=True)

_OptionalSigma = Annotated[
    float | None,
    typer.Option(
        parser=options.real, metavar="S", help="Standard deviation of the aggregate noise.", show_default=False
    ),
]


@app.callback(help=_HELP)
def root(context: typer.Context) -> None:
    """Without a command, help."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@dataclass(frozen=True)
class Setting:
    """Everything but sigma, epsilon and delta that a promise depends on."""

    accountant: str
    geometry: Geometry
    hidden: Participation
    """The law of P_t as far as the server cannot see it."""
    queries: int

    def theorem(self) -> str:
        """The statement that applies."""
        return find_accountant(self.accountant).theorem(self.hidden)


def _solve(answer: str) -> Callable[..., None]:
    """The command that computes `answer`, one of sigma, delta and epsilon, from the other two."""

    def command(
        epsilon: options.Epsilon = math.inf,
        delta: options.Delta = 1e-6,
        sigma: _OptionalSigma = None,
        clients: options.Clients = 20,
        participation: options.Participation = 1.0,
        queries: options.Queries = 1,
        accountant: options.Accountant = "paper",
        access: options.Access = "over-the-air",
        lost: options.Lost = 0,
        rule: options.Rule = "vote",
        classes: options.Classes = 10,
        json: options.Json = False,
    ) -> None:
        if classes < 2:
            raise ValueError(f"classes must be >= 2, got {classes}; deciding needs a choice")
        way = build(Access, access)
        check_lost(lost, clients)
        law = way.participation(clients, participation, lost)
        geometry = build(Rule, rule).geometry(classes)
        setting = Setting(accountant, geometry, way.hidden(law, lost), queries)
        known = {"epsilon": epsilon, "delta": delta, "sigma": sigma}
        solved = {**known, answer: _ANSWERS[answer](setting, known)}
        asked = {"access": access, "rule": rule, "clients": clients, "participation": participation, "classes": classes}
        record = {
            **solved,
            "accountant": accountant,
            "theorem": setting.theorem(),
            **asked,
            "queries": queries,
            "lost": lost,
        }
        if json:
            print_json(record)
        else:
            _show(answer, record)

    signature = inspect.signature(command)
    asked_for = [parameter for name, parameter in signature.parameters.items() if name != answer]
    command.__signature__ = signature.replace(parameters=asked_for)  # type: ignore[attr-defined]
    return command


def _sigma(setting: Setting, known: dict[str, Any]) -> float:
    return sigma_for(known["epsilon"], known["delta"], **vars(setting))


def _delta(setting: Setting, known: dict[str, Any]) -> float:
    return delta_for(known["epsilon"], _given(known["sigma"]), **vars(setting))


def _epsilon(setting: Setting, known: dict[str, Any]) -> float:
    return epsilon_for(known["delta"], _given(known["sigma"]), **vars(setting))


def _given(sigma: float | None) -> float:
    if sigma is None:
        raise ValueError(
            "--sigma is missing: give the standard deviation of the aggregate noise, for example --sigma 5"
        )
    return sigma


_ANSWERS: dict[str, Callable[[Setting, dict[str, Any]], float]] = {
    "sigma": _sigma,
    "delta": _delta,
    "epsilon": _epsilon,
}

app.command(
    "sigma",
    help="The aggregate noise that buys (epsilon, delta), rounded up.",
    epilog="Example: airchoir privacy sigma --epsilon 1 --delta 1e-6 --clients 20 --participation 0.5",
)(_solve("sigma"))
app.command(
    "delta",
    help="The probability with which epsilon may fail under noise sigma, rounded up.",
    epilog="Example: airchoir privacy delta --epsilon 1 --sigma 5",
)(_solve("delta"))
app.command(
    "epsilon",
    help="The smallest epsilon that noise sigma buys at delta, rounded up.",
    epilog="Example: airchoir privacy epsilon --delta 1e-6 --sigma 5",
)(_solve("epsilon"))


def _show(answer: str, record: dict[str, Any]) -> None:
    made = table("what", "value")
    for name in (
        "epsilon",
        "delta",
        "sigma",
        "clients",
        "participation",
        "queries",
        "lost",
        "access",
        "rule",
        "classes",
    ):
        value = record[name]
        made.add_row(name, value if isinstance(value, str) else number(value, 12))
    made.add_row("accountant", f"{record['accountant']} ({record['theorem']})")
    console().print(f"{answer} = {number(record[answer], 12)}")
    console().print(made)
