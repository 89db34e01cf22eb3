"""`airchoir privacy plan`: how many queries a noise buys, and how much noise a number of queries needs."""

import math
from typing import Annotated, Any

import typer

from airchoir.cli import options
from airchoir.cli.output import console, number, print_json, progress, table
from airchoir.cli.setting import Setting
from airchoir.exact import Progress
from airchoir.privacy import Privacy, sigma_for
from airchoir.privacy.ledger import Mechanism

EXAMPLE = "Example: airchoir privacy plan --budget-epsilon 8 --delta 1e-6 --clients 20 --participation 0.5"
_QUERIES = (1, 10, 100, 1_000, 10_000)
_EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)


def plan(
    budget_epsilon: Annotated[
        float, typer.Option(parser=options.real, metavar="E", help="What all queries together may cost each client.")
    ] = 8.0,
    delta: options.Delta = 1e-6,
    clients: options.Clients = 20,
    participation: options.Participation = 1.0,
    accountant: options.Accountant = "paper",
    access: options.Access = "over-the-air",
    lost: options.Lost = 0,
    rule: options.Rule = "vote",
    classes: options.Classes = 10,
    queries: Annotated[
        list[int] | None,
        typer.Option(parser=options.whole, metavar="T", help="Numbers of queries to find the noise for; repeatable."),
    ] = None,
    sigma: Annotated[
        list[float] | None,
        typer.Option(parser=options.real, metavar="S", help="Aggregate noises to count the queries of; repeatable."),
    ] = None,
    json: options.Json = False,
) -> None:
    """How many queries a given noise buys within a budget, and how much noise a given number of queries needs."""
    if not 0.0 <= budget_epsilon < math.inf:
        raise ValueError(f"budget-epsilon must be >= 0 and finite, got {budget_epsilon!r}; a budget has an end")
    budget = Privacy(budget_epsilon, delta, accountant=accountant)
    setting = Setting.of(access, rule, clients=clients, participation=participation, classes=classes, lost=lost)
    with progress("planning") as report:
        needed, bought = _solve(setting, budget, list(queries or _QUERIES), sigma, report)
    record: dict[str, Any] = {
        "budget_epsilon": budget_epsilon,
        "delta": delta,
        "accountant": accountant,
        "theorem": setting.theorem(accountant),
        **setting.asked,
        "noise_for_queries": needed,
        "queries_for_noise": bought,
    }
    if json:
        print_json(record)
    else:
        _show(record)


def _solve(
    setting: Setting, budget: Privacy, queries: list[int], sigmas: list[float] | None, report: Progress
) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """The noise for each number of queries, and the number of queries for each noise."""
    steps = len(queries) + (len(sigmas) if sigmas else len(_EPSILONS))
    known: dict[str, Any] = {"accountant": budget.accountant, "geometry": setting.geometry, "hidden": setting.hidden}
    needed = []
    for count in queries:
        sigma = sigma_for(budget.epsilon, budget.delta, queries=count, **known)
        share = setting.client_noise(sigma)
        needed.append({"queries": count, "sigma": sigma, "client_sigma": share})
        report(len(needed), steps)
    bought = []
    for sigma in sigmas or [sigma_for(epsilon, budget.delta, **known) for epsilon in _EPSILONS]:
        mechanism = Mechanism(sigma=sigma, **known)
        count = mechanism.affordable(budget)
        bought.append({"sigma": sigma, "epsilon_per_query": mechanism.epsilon(budget.delta), "queries": count})
        report(len(needed) + len(bought), steps)
    return needed, bought


def _show(record: dict[str, Any]) -> None:
    printer = console()
    budget = f"epsilon {record['budget_epsilon']:g} at delta {record['delta']:g}"
    printer.print(
        f"A budget of {budget}; {record['clients']} clients, participation {record['participation']:g}, "
        f"{record['access']}; {record['accountant']} ({record['theorem']})",
        soft_wrap=True,
    )
    needed = table("queries", "noise sigma they need", "each client adds (r.m.s.)")
    for row in record["noise_for_queries"]:
        needed.add_row(f"{row['queries']:,}", number(row["sigma"]), number(row["client_sigma"]))
    printer.print(needed)
    bought = table("noise sigma", "epsilon of one query", "queries it buys")
    for row in record["queries_for_noise"]:
        bought.add_row(number(row["sigma"]), number(row["epsilon_per_query"], 4), f"{row['queries']:,}")
    printer.print(bought)
