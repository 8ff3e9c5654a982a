"""Imports between apps, packages and modules have no cycles, and no folder has too many modules."""

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ORDER = ["watcher_site", "cluster", "actions", "plans", "audits"]
# Lists of the URLs of every app.
COMPOSITION = {ROOT / "watcher_site" / name for name in ("urls.py", "console/urls.py", "api/urls.py")}
MOST_MODULES = 15
# Django requires their modules in one folder.
UNLIMITED = {"migrations", "commands"}


def modules_of(app: str) -> list[Path]:
    return [path for path in sorted((ROOT / app).rglob("*.py")) if "migrations" not in path.parts]


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imports_at_load(path: Path) -> Iterator[str]:
    """Yield the modules, or the names in modules, that a module imports when it is loaded itself."""
    pending: list[ast.AST] = [ast.parse(path.read_text())]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += node.orelse
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            pending += ast.iter_child_nodes(node)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def loaded_before(module: str, imported: str, modules: Collection[str]) -> set[str]:
    """Return the modules that an import loads: the imported one, and its packages that the importer is not in.

    Python has begun to load the packages of the importer before.
    """
    found = imported if imported in modules else imported.rpartition(".")[0]
    if found not in modules:
        return set()
    parts = found.split(".")
    packages = {".".join(parts[:length]) for length in range(1, len(parts))}
    return {found} | {package for package in packages if not f"{module}.".startswith(f"{package}.")}


def package_of(module: str) -> str:
    """Return the folder directly below the app that a module is in, or the module that stands there itself."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("app", ORDER)
def test_app_imports_only_itself_and_lower_apps(app: str) -> None:
    higher = set(ORDER[ORDER.index(app) + 1 :])
    strays = {
        str(path.relative_to(ROOT)): found
        for path in modules_of(app)
        if path not in COMPOSITION and (found := {name.split(".")[0] for name in imported_modules(path)} & higher)
    }
    assert strays == {}


def test_actions_do_not_reach_the_plan_class_through_the_relation() -> None:
    reached = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in modules_of("actions")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if 'get_field("action_plan").related_model' in line
    ]
    assert reached == []


@pytest.mark.parametrize("app", ORDER)
def test_packages_of_an_app_have_no_import_cycle(app: str) -> None:
    graph: dict[str, set[str]] = {}
    for path in modules_of(app):
        # Commands and the AppConfig connect modules of all packages, as the lists of URLs do.
        if path in COMPOSITION or path.name == "apps.py" or "management" in path.parts:
            continue
        package = package_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        others = {package_of(name) for name in imported_modules(path) if name.startswith(f"{app}.")}
        graph.setdefault(package, set()).update(others - {package})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        pytest.fail(" imports ".join(reversed(problem.args[1])))


def test_modules_have_no_import_cycle() -> None:
    """Without a cycle of imports, the order in which modules are imported does not matter."""
    paths = {name_of(path): path for app in ORDER for path in modules_of(app)}
    graph = {
        module: set().union(*(loaded_before(module, imported, paths) for imported in imports_at_load(path)))
        for module, path in paths.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        pytest.fail(" imports ".join(reversed(problem.args[1])))


@pytest.mark.parametrize("top", [*ORDER, "tests"])
def test_no_folder_has_too_many_modules(top: str) -> None:
    modules = [path for path in (ROOT / top).rglob("*.py") if path.name != "__init__.py"]
    counts = Counter(path.parent for path in modules if path.parent.name not in UNLIMITED)
    assert {str(folder.relative_to(ROOT)): n for folder, n in counts.items() if n > MOST_MODULES} == {}
