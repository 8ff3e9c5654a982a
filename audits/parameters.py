"""The parameters of audits, held against the JSON Schema of their strategy.

The texts of the refusals are those that clients of the infra-optim API know.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from jsonschema import Draft4Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend, validator_for

from watcher_site.refusals import Invalid
from watcher_site.schemas import describe
from watcher_site.storable import require_storable


def complete(schema: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with the schema's defaults filled in, at every depth.

    Raises:
        Invalid: they break the schema, or hold a parameter that it does not name.
    """
    return check(schema, parameters, "parameters")


def check(schema: Mapping[str, Any], parameters: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return the parameters, completed. `field` is what people call them in a refusal; raises like `complete`."""
    require_storable(field, dict(parameters))
    completed = deepcopy(dict(parameters))
    problem = fill_defaults(schema, completed)
    if problem:
        raise Invalid(f"Invalid {field} for strategy: {describe(problem)}")
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
