"""The parameters of audits, held against the JSON Schema of their strategy.

The texts of the refusals are those that clients of the infra-optim API know.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from jsonschema import Draft4Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend, validator_for

from watcher_site.database.text import require_storable
from watcher_site.plugins import load
from watcher_site.refusals import Invalid
from watcher_site.validation.json_schema import describe_violation


def complete_for(strategy: Any, parameters: Mapping[str, Any], field: str = "parameters") -> dict[str, Any]:
    """Return the parameters of a strategy, given as its row, completed and seen by its plug-in where it is installed.

    Raises:
        Invalid: as `complete`, or what `Strategy.check` of the plug-in finds.
    """
    completed = complete(strategy.parameters_spec, parameters, field)
    plugin = load("STRATEGIES").get(strategy.name)
    # A row that is older or newer than what is installed here has other parameters.
    if plugin and plugin.schema == strategy.parameters_spec:
        try:
            plugin().check(completed)
        except Invalid as problem:
            raise Invalid(f"Invalid {field} for strategy: {problem}") from problem
    return completed


def complete(schema: Mapping[str, Any], parameters: Mapping[str, Any], field: str = "parameters") -> dict[str, Any]:
    """Return the parameters with the schema's defaults filled in, at every depth.

    Args:
        field: what people call them, in a refusal.

    Raises:
        Invalid: they break the schema, or hold a parameter that it does not name.
    """
    require_storable(field, dict(parameters))
    completed = deepcopy(dict(parameters))
    problem = fill_defaults(schema, completed)
    if problem:
        raise Invalid(f"Invalid {field} for strategy: {describe_violation(problem)}")
    if strays := [name for name in parameters if name not in schema.get("properties", {})]:
        raise Invalid(f"Audit parameter {', '.join(strays)} are not allowed")
    return completed


def fill_defaults(schema: Mapping[str, Any], parameters: dict[str, Any]) -> ValidationError | None:
    """Fill in the defaults, and return the first rule of the schema that is broken then."""
    standard = validator_for(schema, default=Draft4Validator)
    validator = extend(standard, {"properties": filling(standard.VALIDATORS["properties"])})
    return next(iter(validator(schema).iter_errors(parameters)), None)


def filling(check_properties: Any) -> Any:
    """Return the rule for ``properties`` that fills in what is left out before it checks."""

    def fill_and_check(validator: Any, properties: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, dict):
            for name, rule in properties.items():
                if "default" in rule:
                    instance.setdefault(name, deepcopy(rule["default"]))
        yield from check_properties(validator, properties, instance, schema)

    return fill_and_check
