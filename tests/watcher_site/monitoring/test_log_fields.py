"""docs/monitoring.md describes each field of the logs, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
SECTION = (ROOT / "docs" / "monitoring.md").read_text().partition("## Fields of logs")[2].partition("\n## ")[0]
METHODS = {"debug", "info", "warning", "error", "exception", "critical", "bind"}
# The function of the listener that chooses the level.
CHOSEN = {"log_lag", "bound_contextvars"}
# Fields of all lines, the traceback, which is passed as exc_info, and those of `add_trace_id`.
COMMON = {"timestamp", "level", "logger", "event", "exception", "trace_id", "span_id"}


def is_of_log(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in METHODS and "log" in ast.unparse(function.value).lower()
    return isinstance(function, ast.Name) and function.id in CHOSEN


def logged() -> Iterator[str]:
    """Yield the names of the fields of all events, and of those that are bound to a logger or to the context."""
    for app in ("watcher_site", "cluster", "actions", "plans", "audits"):
        for path in (ROOT / app).rglob("*.py"):
            calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
            for call in calls:
                if is_of_log(call.func):
                    yield from (keyword.arg for keyword in call.keywords if keyword.arg)


def documented() -> set[str]:
    rows = re.findall(r"^\| (`.*?) \|", SECTION, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_each_log_field_is_documented_and_no_other() -> None:
    assert documented() == set(logged()) - {"exc_info"} | COMMON
