"""The names of module-level functions are unique within an app, so that a search for a name finds one definition."""

import ast
from collections import defaultdict

import pytest

from tests.repository.test_imports import ORDER, ROOT, modules_of

# Names that Django and the command line prescribe.
GIVEN = {"main"}
COMPOSITION = {"urls.py"}


@pytest.mark.parametrize("app", ORDER)
def test_module_level_function_names_are_unique_within_an_app(app: str) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules_of(app):
        if path.name in COMPOSITION or "management" in path.parts:
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in GIVEN:
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
