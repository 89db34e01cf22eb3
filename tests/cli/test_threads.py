"""numpy's matrix products take one thread on the command line, unless the user says otherwise."""

import os
import subprocess
import sys

import pytest

ASK = "import airchoir.cli, os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"


@pytest.mark.parametrize(
    ("given", "script", "expected"),
    [
        ({}, ASK, "1"),
        ({"OPENBLAS_NUM_THREADS": "3"}, ASK, "3"),
        ({}, f"import numpy; {ASK}", "None"),  # too late: saying it would not make it so
    ],
)
def test_one_thread_is_set_before_numpy_is_imported(given: dict[str, str], script: str, expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, "PYTHONPATH": path, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == expected
