"""JSON Schema: what is wrong with a value, in one line for people."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from watcher_site.messages import cut

__all__ = ["Draft202012Validator", "describe_violation", "find_violation", "with_defaults"]


def find_violation(validator: Draft202012Validator, value: Any) -> str | None:
    """Return the field and the rule that it breaks, as in ``duration: -1 is less than the minimum of 0``."""
    error = best_match(validator.iter_errors(value))
    return describe_violation(error) if error else None


def describe_violation(error: ValidationError) -> str:
    """Name the field and the rule; a large value is not repeated in full."""
    path = ".".join(str(step) for step in error.absolute_path)
    return cut(f"{path}: {error.message}" if path else error.message)


def with_defaults(schema: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values, and the schema's defaults for the properties left out, also for those of objects within."""
    properties = schema.get("properties", {})
    filled = {name: rule["default"] for name, rule in properties.items() if "default" in rule} | dict(values)
    for name, rule in properties.items():
        if "properties" in rule and isinstance(filled.get(name), Mapping):
            filled[name] = with_defaults(rule, filled[name])
    return filled
