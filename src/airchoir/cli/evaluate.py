"""`airchoir evaluate`: what a scheme achieves on score banks."""

import json as json_module
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from airchoir import provenance
from airchoir.access import Access
from airchoir.bank import ScoreBank
from airchoir.channels import Channel
from airchoir.channels.rayleigh import check_threshold
from airchoir.cli import options
from airchoir.cli.output import console, foldable, number, percent, print_json, progress, table
from airchoir.exact import Progress, check_tolerance, decisions
from airchoir.exact import evaluate as evaluate_exactly
from airchoir.experiments.choirs import check_alike, own_seeds
from airchoir.files import write_atomically
from airchoir.metrics import Estimate, pool
from airchoir.montecarlo import check_repeats, simulate
from airchoir.privacy import Privacy, find_accountant
from airchoir.provenance import describe, plain
from airchoir.registry import build, suggestion
from airchoir.rules import Rule
from airchoir.scheme import Scheme

EXAMPLES = "Example: airchoir evaluate airchoir-demo/banks/digits/seed-0.safetensors --epsilon 1 --participation 0.5"

_METHODS = ("exact", "simulate")


def evaluate(
    banks: options.Banks,
    rule: options.Rule = "vote",
    access: options.Access = "over-the-air",
    epsilon: options.Epsilon = math.inf,
    delta: options.Delta = 1e-6,
    snr_db: options.SnrDb = 10.0,
    participation: options.Participation = 1.0,
    channel: options.Channel = "awgn",
    threshold: options.Threshold = None,
    accountant: options.Accountant = "paper",
    queries: options.Queries = 1,
    lost: options.Lost = 0,
    method: Annotated[str, typer.Option(help="exact (quadrature) or simulate (Monte-Carlo).")] = "exact",
    repeats: Annotated[
        int, typer.Option(parser=options.whole, metavar="R", help="simulate: independent repeats.")
    ] = 200,
    seed: Annotated[int, typer.Option(parser=options.whole, metavar="S", help="Seed of whatever is drawn.")] = 0,
    tolerance: Annotated[
        float, typer.Option(parser=options.real, metavar="X", help="exact: largest standard error of macro-F1.")
    ] = 5e-4,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Keep decision probabilities and expected confusion.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Expected accuracy and macro-F1 of a scheme on one or more banks, and what the scheme spends."""
    check_threshold(threshold)
    engine = _engine(method, repeats=repeats, tolerance=tolerance)
    _check_seed(seed)
    if out is not None:
        _check_out(out, method)
    scheme = Scheme(
        rule=build(Rule, rule),
        access=build(Access, access),
        channel=build(Channel, channel, snr_db=snr_db, threshold=threshold),
        privacy=Privacy(epsilon, delta, accountant=accountant, queries=queries, lost=lost),
        participation=participation,
    )
    loaded = [ScoreBank.load(path) for path in banks]
    check_alike(banks, loaded)
    estimates = []
    seeds = own_seeds(seed, len(banks))
    for path, bank, own_seed in zip(banks, loaded, seeds, strict=True):
        with progress(path.name) as report:
            estimates.append(engine(scheme, bank, own_seed, report))
    if out is not None:
        _keep_decisions(out, scheme, loaded, estimates, seeds)
    outcome = Outcome(scheme, banks, loaded, estimates, seeds, method)
    if json:
        print_json(outcome.record())
    else:
        outcome.show()


@dataclass(frozen=True, eq=False)
class Outcome:
    """A scheme, the banks it was tried on, and what came out."""

    scheme: Scheme
    paths: list[Path]
    banks: list[ScoreBank]
    estimates: list[Estimate]
    seeds: list[int]
    method: str

    def record(self) -> dict[str, Any]:
        """The JSON object of `evaluate --json`."""
        triples = zip(self.paths, self.seeds, self.estimates, strict=True)
        return {
            **vars(pool(self.estimates)),
            "scheme": describe(self.scheme),
            "theorem": self.theorem(),
            "method": self.method,
            "banks": [{"path": str(path), "seed": seed, **vars(estimate)} for path, seed, estimate in triples],
            "versions": provenance.versions("numpy", "scipy"),
            "commit": provenance.commit(),
        }

    def theorem(self) -> str:
        """The privacy statement that set sigma."""
        mechanism = self.scheme.mechanism(self.banks[0])
        return find_accountant(mechanism.accountant).theorem(mechanism.hidden)

    def show(self) -> None:
        """Tables for a person."""
        pooled, printer = pool(self.estimates), console()
        if len(self.banks) > 1:
            per_bank = table("bank", "macro-F1 %", "accuracy %")
            foldable(per_bank.columns[0])
            for path, estimate in zip(self.paths, self.estimates, strict=True):
                per_bank.add_row(str(path), *_scores(estimate))
            printer.print(per_bank)
        macro_f1, accuracy = _scores(pooled)
        printer.print(_title(self.scheme), soft_wrap=True)
        made = table("what", "value")
        made.add_row("macro-F1 %, ± spread of one run", macro_f1)
        made.add_row("accuracy %, ± spread of one run", accuracy)
        if pooled.macro_f1_se > 0.0:
            made.add_row("standard error of macro-F1 (sets or runs were drawn)", f"{pooled.macro_f1_se:.1e}")
        made.add_row("aggregate privacy noise sigma", number(pooled.sigma))
        made.add_row("receiver's noise variance in the decision", number(pooled.channel_noise_variance))
        made.add_row("channel uses per query", number(pooled.channel_uses))
        if math.isfinite(self.scheme.privacy.epsilon):
            made.add_row("accountant", f"{self.scheme.privacy.accountant} ({self.theorem()})")
        printer.print(made)
        printer.print(self.total_cost(), soft_wrap=True)

    def total_cost(self) -> str:
        """What answering every query of the largest bank would cost each client."""
        privacy, bank = self.scheme.privacy, max(self.banks, key=lambda bank: bank.queries)
        if privacy.epsilon == math.inf:
            return "No privacy is promised (epsilon inf), for one query or for all."
        total = self.scheme.mechanism(bank).epsilon(privacy.delta, queries=bank.queries)
        promised = f"{privacy.queries:,} queries" if privacy.queries > 1 else "one query"
        return (
            f"epsilon {privacy.epsilon:g} covers {promised}; all {bank.queries:,} queries of a bank together would cost each "
            f"client epsilon {total:.4g} at delta {privacy.delta:g}."
        )


def _title(scheme: Scheme) -> str:
    privacy = scheme.privacy
    promise = f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}" if privacy.epsilon < math.inf else "no privacy"
    return (
        f"{scheme.rule.name}, {scheme.access.name}, {scheme.channel.name} at {scheme.channel.snr_db:g} dB, "
        f"participation {scheme.participation:g}, {promise}"
    )


def _scores(estimate: Estimate) -> tuple[str, str]:
    return (
        percent(estimate.macro_f1, estimate.macro_f1_std),
        percent(estimate.accuracy, estimate.accuracy_std),
    )


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise ValueError(f"seed must be >= 0, got {seed}; any whole number names a reproducible run")


def _engine(method: str, *, repeats: int, tolerance: float) -> Callable[[Scheme, ScoreBank, int, Progress], Estimate]:
    """How an estimate is made; the options of both methods are checked whichever is used."""
    check_repeats(repeats)
    check_tolerance(tolerance)
    if method == "exact":
        return lambda scheme, bank, seed, report: evaluate_exactly(
            scheme, bank, tolerance=tolerance, seed=seed, progress=report
        )
    if method == "simulate":
        return lambda scheme, bank, seed, report: simulate(scheme, bank, repeats=repeats, seed=seed, progress=report)
    raise ValueError(f"unknown method {method!r}; {suggestion(method, list(_METHODS))}")


def _check_out(out: Path, method: str) -> None:
    if out.suffix != ".npz":
        raise ValueError(f"--out writes an .npz file, got {str(out)!r}; end the name in .npz")
    if out.is_dir():
        raise ValueError(f"{out} is a folder; give the name of a file")
    if method != "exact":
        raise ValueError(f"--out keeps exact decision probabilities, got --method {method}; use --method exact")


def _keep_decisions(
    out: Path, scheme: Scheme, banks: list[ScoreBank], estimates: list[Estimate], seeds: list[int]
) -> None:
    """All banks' queries one after the other, with the index of their bank, and their expected confusion, added up."""
    kept = [
        decisions(scheme, bank, draws=estimate.draws, seed=seed)
        for bank, estimate, seed in zip(banks, estimates, seeds, strict=True)
    ]
    arrays = {
        "probabilities": np.concatenate([one.probabilities for one in kept]),
        "labels": np.concatenate([one.labels for one in kept]),
        "bank": np.repeat(np.arange(len(kept)), [len(one.labels) for one in kept]),
        "confusion": np.sum([one.confusion for one in kept], axis=0),
        "scheme": np.array(json_module.dumps(plain(describe(scheme)))),
    }

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:  # given a name, numpy would append .npz to it
            np.savez_compressed(file, **arrays)

    write_atomically(out, write)
