"""Provenance: the versions that are installed, the commit that is running, and nobody else's."""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from airchoir import provenance

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *arguments: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    ran = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, env=clean, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit that the code seems to run from."""
    source = tmp_path / "src" / "airchoir" / "provenance.py"
    source.parent.mkdir(parents=True)
    source.write_text("first\n")
    monkeypatch.setattr(provenance, "__file__", str(source))
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    return tmp_path


def test_versions_are_those_of_this_python_and_of_what_is_installed() -> None:
    found = provenance.versions("numpy", "scipy")
    assert list(found) == ["python", "airchoir", "numpy", "scipy"]
    assert found["python"] == platform.python_version() == ".".join(map(str, sys.version_info[:3]))
    for package in ("airchoir", "numpy", "scipy"):
        assert found[package] == importlib.metadata.version(package)


def test_a_package_that_is_missing_is_said_to_be() -> None:
    assert provenance.versions("no-such-package")["no-such-package"] == "not installed"


@needs_git
def test_the_commit_is_the_one_checked_out(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    found = provenance.commit()
    assert head.startswith(found)
    assert len(found) >= 12
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "second")
    assert provenance.commit() != found


@needs_git
def test_a_tag_does_not_hide_the_commit(checkout: Path) -> None:
    git(checkout, "tag", "--annotate", "v1", "--message", "v1")
    assert git(checkout, "rev-parse", "HEAD").startswith(provenance.commit())


@needs_git
def test_local_changes_make_a_commit_dirty_and_new_files_do_not(checkout: Path) -> None:
    clean = provenance.commit()
    (checkout / "results.json").write_text("{}")
    assert provenance.commit() == clean
    (checkout / "src" / "airchoir" / "provenance.py").write_text("second\n")
    assert provenance.commit() == f"{clean}-dirty"


@needs_git
def test_another_repository_that_a_hook_points_to_is_not_taken_for_ours(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path_factory.mktemp("other")
    git(other, "init", "--quiet")
    git(other, "commit", "--quiet", "--allow-empty", "--message", "theirs")
    ours = provenance.commit()
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.chdir(other)
    assert provenance.commit() == ours


@needs_git
def test_a_repository_around_an_installed_package_is_not_taken_for_ours(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = checkout / ".venv" / "lib" / "python3.11" / "site-packages" / "airchoir" / "provenance.py"
    monkeypatch.setattr(provenance, "__file__", str(installed))
    assert provenance.commit() == ""


def test_outside_a_checkout_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "src" / "airchoir" / "provenance.py"))
    assert provenance.commit() == ""


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "src" / "airchoir" / "provenance.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance.commit() == ""


def test_a_broken_repository_has_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "src" / "airchoir" / "provenance.py"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.commit() == ""


def test_the_machine_names_its_processor_and_system() -> None:
    assert provenance.machine().split(" ") == [platform.machine(), platform.system()]
