"""`airchoir doctor`: what is there, what is missing and how to get it, and a verdict on the engine."""

import json
import os
import platform
from importlib import metadata
from typing import Any

import numpy as np
import pytest

import airchoir
from airchoir.cli import doctor, selftest

REQUIREMENTS = [
    "numpy>=1.26",
    'numpy >= 1.26 ; extra == "demo"',
    "no-such-package[client]>=2.9; extra == 'cluster'",
    "scipy>=9999.1,<10000; python_version >= '3.11' and extra == 'cluster'",
    "absent; extra == 'cluster'",
]


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that offers two extras: one is there, and of the other nothing new enough is."""
    monkeypatch.setattr(metadata, "requires", lambda name: REQUIREMENTS)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose quadrature is off."""
    right = selftest.decision_probabilities
    monkeypatch.setattr(selftest, "decision_probabilities", lambda *given: right(*given) + 1e-3)


def test_json_has_versions_machine_extras_and_the_self_test(read_json: Any) -> None:
    found = read_json("doctor")
    assert found["versions"]["airchoir"] == airchoir.__version__
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["python"] == platform.python_version()
    assert {"scipy", "safetensors"} <= set(found["versions"])
    assert platform.machine() in found["machine"]
    assert found["cores"] == os.cpu_count()
    assert {"commit", "threads", "devices", "tex"} <= set(found)
    assert found["healthy"] is True
    assert len(found["checks"]) == 4
    assert all(check["passed"] for check in found["checks"])


def test_people_get_every_line_and_the_verdict(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    ran = run("doctor")
    assert (ran.status, ran.err) == (0, "")
    for words in (f"airchoir {airchoir.__version__}", f"numpy {np.__version__}", "OMP_NUM_THREADS=3", "trapezoid"):
        assert words in ran.out
    assert ran.out.endswith("The engine agrees with its oracle.\n")
    assert "FAILED" not in ran.out


@pytest.mark.usefixtures("offered")
def test_what_is_missing_or_too_old_comes_with_the_line_that_brings_it(run: Any, read_json: Any) -> None:
    extras = read_json("doctor")["extras"]
    assert extras["demo"] == {
        "installed": {"numpy": np.__version__},
        "missing": [],
        "install": "pip install 'airchoir[demo]'",
    }
    assert extras["cluster"]["missing"] == ["no-such-package", "scipy", "absent"]
    assert list(extras["cluster"]["installed"]) == ["scipy"]
    told = run("doctor").out
    assert "missing or too old: no-such-package, scipy, absent; run: pip install 'airchoir[cluster]'\n" in told
    assert f"[demo]    numpy {np.__version__}\n" in told


def test_every_extra_of_the_installed_package_is_looked_at() -> None:
    offered = metadata.metadata("airchoir").get_all("Provides-Extra")
    assert sorted(doctor.extras()) == sorted(offered)


def test_code_that_was_never_installed_has_no_extras(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", unknown)
    ran = run("doctor")
    assert (ran.status, ran.err) == (0, "")
    assert "unknown" in ran.out


@pytest.mark.usefixtures("broken")
def test_a_broken_engine_ends_with_status_1_and_one_line(run: Any) -> None:
    ran = run("doctor")
    assert ran.status == 1
    assert "FAILED" in ran.out
    assert "agrees" not in ran.out
    assert ran.err.startswith("airchoir: the self-test failed: decision probabilities against a direct trapezoid")
    assert ran.err.count("\n") == 1


@pytest.mark.usefixtures("broken")
def test_a_broken_engine_is_said_in_json_as_well(run: Any) -> None:
    ran = run("doctor", "--json")
    assert ran.status == 1
    found = json.loads(ran.out)
    assert found["healthy"] is False
    assert [check["passed"] for check in found["checks"]] == [False, True, True, True]
