"""The house has floors: a module imports only from modules above it, and the core needs numpy, scipy and safetensors alone."""

import ast
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import airchoir

# fmt: off
ORDER = [
    "_types", "registry", "files", "metrics", "frameworks", "bank", "rules", "participation", "privacy", "link", "channels",
    "access", "scheme", "quadrature", "ballots", "exact", "montecarlo", "audit", "provenance", "jobs", "tasks",
    "training", "report", "experiments", "questions", "estimator", "live", "cli", "__main__",
]
# fmt: on
"""The design's list from top to bottom, with `provenance` (where a number comes from) and `__main__` (calls `cli`)."""
CORE = {*ORDER[: ORDER.index("jobs")], "__init__"}
SCIENTIFIC = {"numpy", "scipy", "safetensors"}
NUMPYS_OWN = {"charset-normalizer"}  # numpy.f2py, which scipy imports, takes it where it is installed
GUESTS = {"frameworks.py": "onnxruntime"}
"""What a module of the core may import inside functions: a path to an ONNX file is no object that has brought its library."""
HOMES = {
    "onnxruntime": {"frameworks"},
    "sklearn": {"tasks", "training", "estimator"},
    "torch": {"tasks", "training"},
    "triton": {"training"},
    "torchvision": {"tasks", "training"},
    "timm": {"tasks", "training"},
    "transformers": {"tasks", "training"},
    "datasets": {"tasks", "training"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "ray": {"jobs"},
    "typer": {"cli"},
    "rich": {"cli"},
    "zmq": {"live"},
    "fastapi": {"live"},
    "uvicorn": {"live"},
}
"""Where alone each heavy dependency may be imported."""
KERNELS = {"depthwise.py", "depthwise_kernels.py"}
"""Modules of `training` that are themselves imported inside functions, where there is a GPU."""
SLOW = ("scipy.optimize", "scipy.stats")
SOURCE = Path(airchoir.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))


@dataclass(frozen=True)
class Import:
    """One imported module, where it is written, and whether it runs as soon as its file is imported."""

    module: str
    line: int
    at_once: bool


def room_of(path: Path) -> str:
    """The room or module directly below airchoir that a file belongs to."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def dotted(path: Path) -> str:
    parts = ("airchoir", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def public_home(name: str) -> str:
    """The module that `from airchoir import name` reaches: a lazy name's home, or a module of that name."""
    home = airchoir._HOMES.get(name, name)
    return "airchoir" if name == "__version__" else f"airchoir.{home}"


def imports(source: str, *, module: str, is_package: bool) -> Iterator[Import]:
    """Every import of a module, wherever it is written, type checking and `import_module("...")` included."""
    tree = ast.parse(source)
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(node)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        for name in imported_by(node, module, is_package):
            yield Import(name, node.lineno, id(node) not in later)  # type: ignore[attr-defined]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def imported_by(node: ast.AST, module: str, is_package: bool) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        origin = node.module or ""
        if node.level:
            package = module.split(".")[: len(module.split(".")) - node.level + is_package]
            origin = ".".join([*package, origin] if origin else package)
        if origin == "airchoir":
            return [public_home(alias.name) for alias in node.names]
        return [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {
        "import_module",
        "importlib.import_module",
        "__import__",
    }:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return [first.value]
    return []


def imports_of(path: Path) -> list[Import]:
    return list(imports(path.read_text(), module=dotted(path), is_package=path.name == "__init__.py"))


def climbs(room: str, found: list[Import]) -> list[str]:
    """The imports that reach for a lower floor, in words."""
    wrong = []
    for each in found:
        parts = each.module.split(".")
        if parts[0] != "airchoir":
            continue
        target = parts[1] if len(parts) > 1 else None
        if target is None or target == room:
            continue  # `import airchoir` reaches the lazy names only where a test imports it; its own room is free
        if target not in ORDER:
            wrong.append(f"line {each.line}: {each.module} is on no floor; add it to ORDER where it belongs")
        elif ORDER.index(target) > ORDER.index(room):
            wrong.append(f"line {each.line}: {room} imports {each.module}, which lies below it")
    return wrong


def test_every_module_has_its_floor() -> None:
    strangers = {room_of(path) for path in MODULES} - {*ORDER, "__init__"}
    assert not strangers, f"{sorted(strangers)} are on no floor; put them into ORDER where the design wants them"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_modules_above_it(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return  # exempt, and lazy: see test_init
    assert room in ORDER, f"{room} is on no floor; put it into ORDER where the design wants it"
    assert climbs(room, imports_of(path)) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_heavy_dependencies_stay_in_their_rooms(path: Path) -> None:
    room = room_of(path)
    for each in imports_of(path):
        top = each.module.split(".")[0]
        place = f"{path.name}, line {each.line}: {each.module}"
        if room in CORE and not (top == GUESTS.get(path.name) and not each.at_once):
            assert top in sys.stdlib_module_names | SCIENTIFIC | {"airchoir"}, f"{place} in the core"
            assert not (each.at_once and each.module.startswith(SLOW)), f"{place} is slow; import it on first use"
        assert top not in HOMES or room in HOMES[top], f"{place} belongs in {HOMES.get(top)}"
        if path.name not in KERNELS:
            assert not (top == "torch" and each.at_once), f"{place}: torch is imported inside functions only"
            kernels = {f"airchoir.training.{Path(name).stem}" for name in KERNELS}
            assert not (each.module in kernels and each.at_once), f"{place} needs a GPU; import it inside functions"


PLANTED = {
    "from airchoir.scheme import Scheme": "lies below",
    "import airchoir.scheme": "lies below",
    "from airchoir import Scheme": "lies below",
    "from airchoir import scheme": "lies below",
    "from .scheme import Scheme": "lies below",
    "from . import scheme": "lies below",
    "def f():\n    from airchoir.exact import evaluate": "lies below",
    "if TYPE_CHECKING:\n    from airchoir.access import Access": "lies below",
    "import_module('airchoir.cli')": "lies below",
    "from airchoir.novelty import thing": "on no floor",
}


@pytest.mark.parametrize(("source", "complaint"), PLANTED.items())
def test_an_import_from_below_is_caught_however_it_is_written(source: str, complaint: str) -> None:
    found = climbs("bank", list(imports(source, module="airchoir.bank", is_package=False)))
    assert found
    assert complaint in found[0]


def test_imports_from_above_and_from_the_own_room_are_fine() -> None:
    source = "from airchoir import Estimate\nfrom airchoir._types import Float\nfrom .other import x\nimport numpy"
    assert climbs("rules", list(imports(source, module="airchoir.rules.new", is_package=False))) == []


# --- what really gets imported

PROBE = """
import json, sys
before = set(sys.modules)
import airchoir
bare = set(sys.modules) - before
for name in airchoir.__all__:
    getattr(airchoir, name)
print(json.dumps([sorted(bare), sorted(set(sys.modules) - before)]))
"""


@pytest.fixture(scope="module")
def loaded() -> tuple[set[str], set[str]]:
    """The modules that `import airchoir` brings into a fresh interpreter, and those that touching every name brings."""
    run = subprocess.run([sys.executable, "-W", "error", "-c", PROBE], check=True, capture_output=True, text=True)
    bare, touched = json.loads(run.stdout)
    return set(bare), set(touched)


def distributions(modules: set[str]) -> set[str]:
    """The installed packages, other than airchoir, that the modules come from."""
    owners = importlib.metadata.packages_distributions()
    tops = {module.split(".")[0] for module in modules} - set(sys.stdlib_module_names)
    return {owner.lower() for top in tops for owner in owners.get(top, ())} - {"airchoir"}


def test_importing_airchoir_computes_nothing_and_loads_none_of_its_modules(loaded: tuple[set[str], set[str]]) -> None:
    bare, _ = loaded
    assert {module for module in bare if module.split(".")[0] == "airchoir"} == {"airchoir"}
    assert not distributions(bare)


def test_touching_every_name_of_a_star_imports_numpy_scipy_and_safetensors_alone(
    loaded: tuple[set[str], set[str]],
) -> None:
    _, touched = loaded
    assert "airchoir.exact" in touched
    assert {"numpy", "scipy"} <= distributions(touched) <= SCIENTIFIC | NUMPYS_OWN


def test_the_estimator_brings_scikit_learn_and_what_that_needs_alone() -> None:
    pytest.importorskip("sklearn", reason="the estimator needs airchoir[demo]")
    probe = PROBE.replace("airchoir.__all__", "dir(airchoir)")
    run = subprocess.run([sys.executable, "-W", "error", "-c", probe], check=True, capture_output=True, text=True)
    _, touched = json.loads(run.stdout)
    brought = distributions(set(touched)) - SCIENTIFIC - NUMPYS_OWN
    assert "scikit-learn" in brought
    assert not brought & (set(HOMES) - {"sklearn"})


def test_touching_every_public_name_of_the_core_leaves_the_slow_parts_of_scipy_alone(
    loaded: tuple[set[str], set[str]],
) -> None:
    _, touched = loaded
    assert not [module for module in touched if module.startswith(SLOW)]
