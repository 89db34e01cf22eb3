"""What others install: the wheel has everything that runs and nothing else, the sdist builds the same."""

import email.message
import email.parser
import importlib.util
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "airchoir"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="building needs hatchling; run: pip install 'airchoir[test]'"
)


def build(target: str, source: Path, out: Path) -> Path:
    """The one file that hatchling builds."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=100)
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


def in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def in_sdist(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}


def metadata_of(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.Parser().parsestr(archive.read(name).decode())


def sources() -> set[str]:
    """Every file of the package, as a wheel names it."""
    files = (path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(SOURCE.parent).as_posix() for path in files if path.suffix != ".pyc"}


def test_the_wheel_holds_the_package_and_its_metadata_alone(wheel: Path) -> None:
    assert {name for name in in_wheel(wheel) if ".dist-info/" not in name} == sources()


@pytest.mark.parametrize("name", ["py.typed", "report/page.html", "report/page.css"])
def test_what_is_no_python_is_in_the_wheel_too(wheel: Path, name: str) -> None:
    assert f"airchoir/{name}" in in_wheel(wheel)


def test_the_papers_numbers_are_in_the_wheel(wheel: Path) -> None:
    tables = {f"airchoir/experiments/paper/{path.name}" for path in (SOURCE / "experiments" / "paper").glob("*.json")}
    assert tables
    assert tables <= in_wheel(wheel)


def test_the_wheel_brings_the_command_and_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "airchoir = airchoir.cli:main" in archive.read(points).decode()
        assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())


def test_the_sdist_holds_the_tests_and_documents_but_no_results_and_no_leavings(sdist: Path) -> None:
    held = in_sdist(sdist)
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO", "tests/test_packaging.py", "docs/privacy.md"} <= held
    assert {f"src/{name}" for name in sources()} <= held
    assert [name for name in held if re.search(r"(^|/)(results|__pycache__|\.venv|\.git)/|\.pyc$", name)] == []


def test_a_wheel_from_the_sdist_is_the_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert in_wheel(build("wheel", unpacked, tmp_path / "out")) == in_wheel(wheel)


def test_the_metadata_name_every_extra_and_what_the_core_needs(wheel: Path) -> None:
    found = metadata_of(wheel)
    assert set(found.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    core = [line for line in found.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert sorted(core) == sorted(PROJECT["dependencies"])
    assert found["Requires-Python"] == PROJECT["requires-python"]
    assert "Typing :: Typed" in found.get_all("Classifier", [])


def test_an_extra_asks_for_what_it_says_and_for_nothing_of_another(wheel: Path) -> None:
    lines = metadata_of(wheel).get_all("Requires-Dist", [])
    for extra, wanted in PROJECT["optional-dependencies"].items():
        own = {line.partition(";")[0].strip() for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line)}
        assert {each for each in wanted if not each.startswith("airchoir[")} <= own
        if not any(each.startswith("airchoir[") for each in wanted):
            assert own == set(wanted)


def test_an_index_would_take_both(wheel: Path, sdist: Path) -> None:
    if importlib.util.find_spec("twine") is None:
        pytest.skip("checking needs twine; run: pip install twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert ran.returncode == 0, ran.stdout + ran.stderr
