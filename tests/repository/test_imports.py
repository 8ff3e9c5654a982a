"""Imports run one way, between the apps and between the packages of each app, and no folder is crowded."""

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ORDER = ["watcher_site", "cluster", "actions", "plans", "audits"]
# These list every app.
COMPOSITION = {ROOT / "watcher_site" / name for name in ("urls.py", "console/urls.py", "api/urls.py")}
MOST_MODULES = 15
# Django has their modules in one folder.
UNLIMITED = {"migrations", "commands"}


def modules_of(app: str) -> list[Path]:
    return [path for path in sorted((ROOT / app).rglob("*.py")) if "migrations" not in path.parts]


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def package_of(module: str) -> str:
    """Return the folder directly below the app that a module is in, or the module that stands there itself."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("app", ORDER)
def test_an_app_imports_only_from_itself_and_the_apps_below_it(app: str) -> None:
    higher = set(ORDER[ORDER.index(app) + 1 :])
    strays = {
        str(path.relative_to(ROOT)): found
        for path in modules_of(app)
        if path not in COMPOSITION and (found := {name.split(".")[0] for name in imported_modules(path)} & higher)
    }
    assert strays == {}


@pytest.mark.parametrize("app", ORDER)
def test_the_packages_of_an_app_import_from_each_other_one_way(app: str) -> None:
    graph: dict[str, set[str]] = {}
    for path in modules_of(app):
        # Commands and the AppConfig connect what others define, as the lists of URLs do.
        if path in COMPOSITION or path.name == "apps.py" or "management" in path.parts:
            continue
        package = package_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        others = {package_of(name) for name in imported_modules(path) if name.startswith(f"{app}.")}
        graph.setdefault(package, set()).update(others - {package})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        pytest.fail(" imports ".join(reversed(problem.args[1])))


@pytest.mark.parametrize("top", [*ORDER, "tests"])
def test_no_folder_has_too_many_modules(top: str) -> None:
    modules = [path for path in (ROOT / top).rglob("*.py") if path.name != "__init__.py"]
    counts = Counter(path.parent for path in modules if path.parent.name not in UNLIMITED)
    assert {str(folder.relative_to(ROOT)): n for folder, n in counts.items() if n > MOST_MODULES} == {}
