"""Where a number comes from: package versions, commit, machine. Everything written down for others carries it."""

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path


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
