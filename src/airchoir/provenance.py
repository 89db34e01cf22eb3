"""Where a number comes from: scheme, package versions, commit, machine. Everything written down for others carries it."""

import math
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from airchoir.scheme import Scheme


def describe(scheme: Scheme) -> dict[str, Any]:
    """The scheme in plain values."""
    return {
        "rule": scheme.rule.name,
        "access": scheme.access.name,
        "channel": {"name": scheme.channel.name, **vars(scheme.channel)},
        "privacy": vars(scheme.privacy),
        "participation": scheme.participation,
    }


def plain(value: Any) -> Any:
    """The value in JSON's own types; infinity is the string "inf".

    >>> plain({"epsilon": math.inf, "f1": np.array([0.5, 1.0])})
    {'epsilon': 'inf', 'f1': [0.5, 1.0]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(float(value))
    return value


def versions(*packages: str) -> dict[str, str]:
    """The versions of Python, airchoir and `packages` as installed.

    >>> sorted(versions("numpy"))
    ['airchoir', 'numpy', 'python']
    """
    return {"python": platform.python_version(), **{name: _version(name) for name in ("airchoir", *packages)}}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def commit() -> str:
    """The git commit that this code runs from, "-dirty" with local changes; empty outside a checkout."""
    here = Path(__file__).resolve().parents[2]
    if not (here / ".git").exists():
        return ""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=here,
            env={name: value for name, value in os.environ.items() if not name.startswith("GIT_")},  # not a hook's own
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return described.stdout.strip()


def machine() -> str:
    """Processor architecture and operating system."""
    return f"{platform.machine()} {platform.system()}"
