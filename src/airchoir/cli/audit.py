"""`airchoir privacy audit`: what attacks on the real mechanism prove, beside what is claimed."""

import math
from typing import Annotated, Any

import typer

from airchoir.access import Access
from airchoir.audit import Audit, audit_privacy
from airchoir.cli import options
from airchoir.cli.output import ASKED, add_terms, console, number, print_json, progress, table
from airchoir.cli.setting import Setting
from airchoir.privacy import Privacy
from airchoir.registry import build
from airchoir.rules import Rule
from airchoir.scheme import Scheme

EXAMPLE = "Example: airchoir privacy audit --epsilon 1 --delta 1e-6 --clients 20"
_VIOLATED = 1


def audit(
    epsilon: Annotated[
        float | None,
        typer.Option(
            parser=options.real,
            metavar="E",
            help="The claim. Without it what --sigma costs, else 1.",
            show_default=False,
        ),
    ] = None,
    delta: options.Delta = 1e-6,
    sigma: Annotated[
        float | None,
        typer.Option(
            parser=options.real,
            metavar="S",
            help="Noise to audit. Without it what the claim needs.",
            show_default=False,
        ),
    ] = None,
    clients: options.Clients = 20,
    participation: options.Participation = 1.0,
    queries: options.Queries = 1,
    accountant: options.Accountant = "paper",
    access: options.Access = "over-the-air",
    lost: options.Lost = 0,
    rule: options.Rule = "vote",
    classes: options.Classes = 10,
    repeats: Annotated[
        int | None,
        typer.Option(
            parser=options.whole,
            metavar="R",
            help="Measured runs of each choir. Without it enough for 400000 queries, at least 10000.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(parser=options.real, metavar="C", help="With which all lower bounds hold together.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(parser=options.whole, metavar="N", help="Seed of whatever is drawn.")] = 0,
    json: options.Json = False,
) -> None:
    """Attack the real mechanism: a lower bound on epsilon, beside the claim. Exit status 1 if the claim is VIOLATED, else 0.

    Two neighbouring choirs, who differ in one client's model, are heard many times, without the receiver's noise. One bound
    assumes nothing. Where no amplification is claimed (participation 1) another assumes a Gaussian trade-off.
    """
    if epsilon is None:
        epsilon = 1.0 if sigma is None else math.inf
    setting = Setting.of(access, rule, clients=clients, participation=participation, classes=classes, lost=lost)
    scheme = Scheme(
        rule=build(Rule, rule),
        access=build(Access, access),
        privacy=Privacy(epsilon, delta, accountant=accountant, queries=queries, lost=lost),
        participation=participation,
    )
    with progress("auditing") as report:
        found = audit_privacy(
            scheme,
            clients=clients,
            classes=classes,
            sigma=sigma,
            repeats=repeats,
            confidence=confidence,
            seed=seed,
            progress=report,
        )
    record = {**vars(found), "theorem": setting.theorem(accountant), **setting.asked, "seed": seed}
    if json:
        print_json({**record, "violated": found.violated, "verdict": found.verdict})
    else:
        _show(found, record)
    if found.violated:
        raise typer.Exit(_VIOLATED)


def _show(found: Audit, record: dict[str, Any]) -> None:
    printer, made = console(), table("what", "value")
    add_terms(made, record, "delta", "sigma", *ASKED, "repeats")
    made.add_section()
    made.add_row("epsilon claimed", number(found.epsilon))
    made.add_row("epsilon at least, assuming nothing", number(found.lower_bound))
    gaussian = found.gaussian_lower_bound
    made.add_row("epsilon at least, if Gaussian", "not stated" if gaussian is None else number(gaussian))
    printer.print(made)
    printer.print(f"Attack: {found.attack}.", soft_wrap=True)
    printer.print(_sentence(found), soft_wrap=True)


def _sentence(found: Audit) -> str:
    proved, condition = found.lower_bound, ""
    if found.gaussian_lower_bound is not None and found.gaussian_lower_bound > proved:
        proved, condition = found.gaussian_lower_bound, " if its trade-off is Gaussian"
    sure = f"with {100 * found.confidence:g} % confidence epsilon is at least {number(proved, 4)}{condition}"
    claimed = f"{'but only' if found.violated else 'and'} {number(found.epsilon, 4)} is claimed"
    return f"{found.verdict}: {sure}, {claimed}."
