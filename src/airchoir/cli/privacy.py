"""`airchoir privacy`: what noise buys what promise."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from airchoir.access import check_covers_lost
from airchoir.cli import audit, options, plan
from airchoir.cli.output import ASKED, add_terms, console, foldable, number, print_json, table
from airchoir.cli.setting import Setting
from airchoir.participation import Participation
from airchoir.privacy import Accountant, delta_for, epsilon_for, find_accountant, sigma_for
from airchoir.privacy.losses import remaining_sigma
from airchoir.registry import plugins

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
        setting = Setting.of(
            access,
            rule,
            clients=clients,
            participation=participation,
            classes=classes,
            lost=lost if answer == "sigma" else 0,  # delta and epsilon answer what unplanned losses leave
        )
        known = {"epsilon": epsilon, "delta": delta, "sigma": sigma}
        terms = Terms(setting, queries, unplanned=lost - setting.lost)
        solved = {**known, answer: terms.solve(answer, known, accountant)}
        record = {
            **solved,
            "accountant": accountant,
            "theorem": setting.theorem(accountant),
            **setting.asked,
            "queries": queries,
            "lost": lost,
        }
        if json:
            print_json(record)
        else:
            _show(answer, record)
            if answer == "sigma":
                _compare(terms, known, record)

    signature = inspect.signature(command)
    asked_for = [parameter for name, parameter in signature.parameters.items() if name != answer]
    command.__signature__ = signature.replace(parameters=asked_for)  # type: ignore[attr-defined]
    return command


@dataclass(frozen=True)
class Terms:
    """A setting, how many queries it covers, and how many clients were lost without a plan."""

    setting: Setting
    queries: int
    unplanned: int

    def solve(self, answer: str, known: dict[str, Any], accountant: str) -> float:
        """sigma, delta or epsilon from the other two."""
        rest: dict[str, Any] = {
            "accountant": accountant,
            "geometry": self.setting.geometry,
            "hidden": self.setting.hidden,
            "queries": self.queries,
        }
        check_covers_lost(self.setting.access, self.unplanned)
        if answer == "sigma":
            return sigma_for(known["epsilon"], known["delta"], **rest)
        left = remaining_sigma(_given(known["sigma"]), self.setting.law, self.unplanned)
        if answer == "delta":
            return delta_for(known["epsilon"], left, **rest)
        return epsilon_for(known["delta"], left, **rest)


def _given(sigma: float | None) -> float:
    if sigma is None:
        raise ValueError(
            "--sigma is missing: give the standard deviation of the aggregate noise, for example --sigma 5"
        )
    return sigma


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


app.command("plan", epilog=plan.EXAMPLE)(plan.plan)
app.command("audit", epilog=audit.EXAMPLE)(audit.audit)


def _show(answer: str, record: dict[str, Any]) -> None:
    made = table("what", "value")
    add_terms(made, record, "epsilon", "delta", "sigma", *ASKED)
    console().print(f"{answer} = {number(record[answer], 12)}")
    console().print(made)


def _compare(terms: Terms, known: dict[str, Any], record: dict[str, Any]) -> None:
    """Every accountant's sigma and what it rests on, so that nobody picks the smallest by accident."""
    ran = record["accountant"]
    made = table("accountant", "sigma", "assumption")
    made.columns[-1].justify = "left"
    foldable(made.columns[-1])
    for name in plugins(Accountant):
        try:
            sigma = record["sigma"] if name == ran else terms.solve("sigma", known, name)
            cells = number(sigma, 12), find_accountant(name).assumption
        except ValueError as reason:
            cells = "refused", str(reason)
        made.add_row(f"{name} *" if name == ran else name, *cells)
    printer = console()
    printer.print(made)
    printer.print(f"* ran: {ran} ({record['theorem']}); another accountant only with --accountant", soft_wrap=True)
    for remark in _what_does_not_matter(terms.setting.hidden):
        printer.print(remark, soft_wrap=True)


def _what_does_not_matter(hidden: Participation) -> list[str]:
    """Where the assumptions above are not needed, and why."""
    if hidden.certain:
        return ["No random participation is counted on here: every accountant is Theorem 1 and needs none of these."]
    if hidden.at_least == 0:
        return ["Everyone transmits in every round here: counting transmitters tells the server nothing about |P_t|."]
    return []
