"""Imports run one way: audits, plans, actions, cluster, watcher_site."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ["watcher_site", "cluster", "actions", "plans", "audits"]
# These are composition roots, which list every app.
EXEMPT = {ROOT / "watcher_site" / name for name in ("urls.py", "console_urls.py", "api/urls.py")}


def imported_apps(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return {module.split(".")[0] for module in modules} & set(ORDER)


@pytest.mark.parametrize("app", ORDER)
def test_an_app_imports_only_from_itself_and_the_apps_below_it(app: str) -> None:
    allowed = set(ORDER[: ORDER.index(app) + 1])
    strays = {
        str(path.relative_to(ROOT)): imported_apps(path) - allowed
        for path in (ROOT / app).rglob("*.py")
        if path not in EXEMPT and imported_apps(path) - allowed
    }
    assert strays == {}
