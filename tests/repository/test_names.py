"""A module-level function has a name of its own in its app, so that a search for the name finds one definition."""

import ast
from collections import defaultdict

import pytest

from tests.repository.test_imports import ORDER, ROOT, modules_of

# Django and the command line give these their names.
GIVEN = {"main"}
COMPOSITION = {"urls.py"}
# Names that several modules of an app still share. Nothing is added here.
SHARED: dict[str, set[str]] = {
    "actions": {
        "after",
        "begin",
        "change",
        "delete_server",
        "described",
        "execute",
        "foresee",
        "judge",
        "parts_of",
        "read",
        "read_events",
        "recover",
        "require_current",
        "rows",
        "settle",
        "show",
        "shown",
        "told",
        "write",
    },
}


@pytest.mark.parametrize("app", ORDER)
def test_a_function_has_a_name_of_its_own_in_its_app(app: str) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules_of(app):
        if path.name in COMPOSITION or "management" in path.parts:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in GIVEN:
                places[node.name].append(str(path.relative_to(ROOT)))
    shared = {name: found for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in shared.items() if name not in SHARED.get(app, set())} == {}
