"""Errors that become messages of actions, and reasons of statuses, are filled from stored messages."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "actions/types",
    "actions/engine",
    "cluster/drivers",
    "cluster/models",
    "cluster/policies",
    "cluster/simulated",
)
# The exceptions whose messages users see, and an outcome with a reason.
ERRORS = {
    *("ActionFailed", "ActionSkipException", "CannotBeForeseen", "PolicyRefused", "Outcome"),
    *("AnswerLost", "CloudBusy", "CloudError", "CloudMisconfigured", "CloudUnavailable", "ListChanged", "NoValidHost"),
    *("OperationFailed", "OperationOutstanding", "OperationRefused", "TrustLost"),
}
# Errors of plug-ins, of a simulation, and of a file that a variable names.
OTHER = {
    "actions/engine/phases.py": 1,
    "actions/engine/storage.py": 2,
    "cluster/drivers/embedded/balancing.py": 1,
    "cluster/drivers/openstack/maas.py": 1,
}


def find_literals(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the texts of errors and of reasons that the code composes itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
            yield from filter(is_text, node.args)
        elif isinstance(node, ast.Assign) and any("status_reason" in ast.unparse(target) for target in node.targets):
            yield from filter(is_text, ast.walk(node.value))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_texts_of_errors_and_reasons_are_stored_messages(folder: str) -> None:
    found = {
        str(path.relative_to(ROOT)): [ast.unparse(text) for text in find_literals(ast.parse(path.read_text()))]
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
    assert {path: texts for path, texts in found.items() if len(texts) != OTHER.get(path, 0)} == {}
