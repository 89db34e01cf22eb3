"""`airchoir doctor`: what is installed, on what machine, and whether the engine still agrees with its oracle."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import typer
from rich.console import Console

import airchoir
from airchoir import provenance
from airchoir.cli.options import Json
from airchoir.cli.output import console, number, print_json, table
from airchoir.cli.selftest import Check, self_test
from airchoir.report.figures import tex_system
from airchoir.training.compute import visible_devices

EXAMPLES = "Example: airchoir doctor --json"
_CORE = ("numpy", "scipy", "safetensors")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_REQUIREMENT = re.compile(
    r"""(?P<name>[\w.-]+)(?:[^;]*?>=\s*(?P<least>[\d.]+))?[^;]*;.*\bextra\s*==\s*["'](?P<extra>[\w.-]+)["'].*"""
)


@dataclass(frozen=True)
class Extra:
    """An extra of the package: its distributions with their versions, and those that are not there or too old."""

    installed: dict[str, str]
    missing: tuple[str, ...]
    install: str
    """The command that brings the missing ones."""


def doctor(json: Json = False) -> None:
    """Versions, machine, extras and devices, and a self-test of the engine in a second; status 1 where it fails."""
    checks = self_test()
    failed = [check for check in checks if not check.passed]
    found = _found()
    if json:
        print_json(
            {
                **found,
                "extras": {name: asdict(extra) for name, extra in found["extras"].items()},
                "checks": [{**asdict(check), "passed": check.passed} for check in checks],
                "healthy": not failed,
            }
        )
    else:
        _show(found, checks, console())
    if failed:
        words = "; ".join(f"{check.name} is off by {check.trouble or number(check.error)}" for check in failed)
        typer.echo(f"airchoir: the self-test failed: {words}; reinstall numpy and scipy, or report this", err=True)
        raise typer.Exit(1)


def _found() -> dict[str, Any]:
    return {
        "versions": {**provenance.versions(*_CORE), "airchoir": airchoir.__version__},
        "commit": provenance.commit(),
        "machine": provenance.machine(),
        "cores": os.cpu_count(),
        "threads": {name: os.environ[name] for name in _THREADS if name in os.environ},
        "devices": visible_devices(),
        "tex": tex_system(),
        "extras": extras(),
    }


def extras() -> dict[str, Extra]:
    """Every extra that the installed package offers; none where it runs without having been installed."""
    try:
        lines = metadata.requires("airchoir") or []
    except metadata.PackageNotFoundError:
        return {}
    needs: dict[str, dict[str, str]] = {}
    for line in lines:  # the build has written out what one extra takes from another
        if found := _REQUIREMENT.fullmatch(line):
            needs.setdefault(found["extra"], {})[found["name"]] = found["least"] or ""
    return {name: _extra(name, needs[name]) for name in sorted(needs)}


def _extra(name: str, needs: Mapping[str, str]) -> Extra:
    have = provenance.versions(*needs)
    installed = {package: have[package] for package in needs if _release(have[package])}
    missing = [
        package for package in needs if package not in installed or _release(have[package]) < _release(needs[package])
    ]
    return Extra(installed, tuple(missing), f"pip install 'airchoir[{name}]'")


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a release, without the zeros it may end in; nothing for what is not installed.

    >>> _release("2.15.0+cu130"), _release("3.0") == _release("3"), _release("not installed")
    ((2, 15), True, ())
    """
    leading = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, re.sub(r"(\.0+)+$", "", leading[0]).split("."))) if leading else ()


def _show(found: Mapping[str, Any], checks: list[Check], printer: Console) -> None:
    for name, words in {
        "versions": ", ".join(f"{name} {version}" for name, version in found["versions"].items()),
        "commit": found["commit"] or "not a checkout",
        "machine": f"{found['machine']}, {found['cores']} cores",
        "threads": ", ".join(f"{name}={count}" for name, count in found["threads"].items()) or "as many as cores",
        "devices": ", ".join(found["devices"]) or "no GPU (torch looks for them, where it is installed)",
        "TeX": found["tex"] or "none, so figures come without PGF",
    }.items():
        printer.print(f"{name:10}{words}", soft_wrap=True)
    if not found["extras"]:
        printer.print("extras    unknown: this airchoir was never installed")
    for name, extra in found["extras"].items():
        printer.print(f"{f'[{name}]':10}{_in_words(extra)}", soft_wrap=True)
    tested = table("self-test", "off by", "allowed", "")
    for check in checks:
        tested.add_row(check.name, number(check.error, 2), number(check.allowed), "ok" if check.passed else "FAILED")
    printer.print(tested)
    if all(check.passed for check in checks):
        printer.print("The engine agrees with its oracle.")


def _in_words(extra: Extra) -> str:
    installed = ", ".join(f"{name} {version}" for name, version in extra.installed.items())
    missing = f"missing or too old: {', '.join(extra.missing)}; run: {extra.install}" if extra.missing else ""
    return "; ".join(filter(None, (installed, missing)))
