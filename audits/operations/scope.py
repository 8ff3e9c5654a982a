"""The scope of an audit: the schema of the included and excluded parts of the cloud.

A scope is a list of at most one ``{"compute": [rules]}`` and one ``{"storage": [rules]}``; a list of bare rules is
equivalent to the former. `audits.engine.scope` applies the rules.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from audits import messages
from watcher_site.database.text import require_storable
from watcher_site.messages import cut
from watcher_site.refusals import Invalid


def object_schema(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with only these properties."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def list_schema(**properties: Any) -> dict[str, Any]:
    """Return the schema of a list of objects, each with one of these properties."""
    return {"type": "array", "items": {**object_schema(**properties), "minProperties": 1}}


TEXT = {"type": "string"}
# The format of Nova: lower case, with hyphens.
UUID_TEXT = {"type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
AGGREGATES = list_schema(id={"anyOf": [{"type": "integer"}, {"const": "*"}, UUID_TEXT]}, name=TEXT)
ZONES = list_schema(name=TEXT)
METADATA = {"type": "array", "items": {"type": "object"}}
COMPUTE_RULES = list_schema(
    host_aggregates=AGGREGATES,
    availability_zones=ZONES,
    exclude=list_schema(
        instances=list_schema(uuid=TEXT),
        compute_nodes=list_schema(name=TEXT),
        host_aggregates=AGGREGATES,
        instance_metadata=METADATA,
        projects=list_schema(uuid=TEXT),
    ),
)
STORAGE_RULES = list_schema(
    availability_zones=ZONES,
    volume_types=list_schema(name=TEXT),
    exclude=list_schema(
        storage_pools=list_schema(name=TEXT), volumes=list_schema(uuid=TEXT), projects=list_schema(uuid=TEXT)
    ),
)
SCHEMA = {
    "type": "array",
    "items": {
        **object_schema(compute=COMPUTE_RULES, storage=STORAGE_RULES),
        "minProperties": 1,
        "maxProperties": 1,
    },
    "maxItems": 2,
}


def check_scope(scope: Any) -> None:
    """Raise `Invalid` with the broken rule if this is not a valid scope.

    A scope without compute rules is refused, because its effect on compute nodes would be undefined.
    """
    if not isinstance(scope, list):
        raise Invalid(messages.SCOPE_NO_LIST.text)
    require_storable("scope", scope)
    problem = best_match(Draft202012Validator(SCHEMA).iter_errors(as_parts(scope)))
    if problem:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem.absolute_path)
        raise Invalid(cut(f"scope{path}: {problem.message}"))
    check_parts([next(iter(part)) for part in as_parts(scope)])
    check_rules(compute_rules(scope))
    check_rules(storage_rules(scope))


def check_parts(parts: Sequence[str]) -> None:
    if len(set(parts)) < len(parts):
        raise Invalid(messages.SCOPE_PART_REPEATED.fill(name=parts[0]))
    if parts == ["storage"]:
        raise Invalid(messages.SCOPE_WITHOUT_COMPUTE.text)


def check_rules(rules: Sequence[Mapping[str, Any]]) -> None:
    included = list(find_rules(rules, "host_aggregates"))
    excluded = list(find_rules(exclusions(rules), "host_aggregates"))
    if included and excluded:
        raise Invalid(messages.AGGREGATES_IN_BOTH.text)
    for field, entries in (
        ("host_aggregates", included),
        ("host_aggregates", excluded),
        ("availability_zones", list(find_rules(rules, "availability_zones"))),
        ("volume_types", list(find_rules(rules, "volume_types"))),
    ):
        if len(entries) > 1 and any("*" in entry.values() for entry in entries):
            raise Invalid(messages.ANY_WITH_OTHERS.fill(field=field))


def as_parts(scope: list[Any]) -> list[Any]:
    """Return the scope as a list of parts, also if it is a list of bare rules."""
    first = scope[0] if scope else None
    if isinstance(first, dict) and not {"compute", "storage"} & first.keys():
        return [{"compute": scope}]
    return scope


def compute_rules(scope: list[Any]) -> list[Mapping[str, Any]]:
    return [rule for part in as_parts(scope) for rule in part.get("compute", [])]


def storage_rules(scope: list[Any]) -> list[Mapping[str, Any]]:
    return [rule for part in as_parts(scope) for rule in part.get("storage", [])]


def find_rules(rules: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    for rule in rules:
        yield from rule.get(kind, [])


def exclusions(rules: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list(find_rules(rules, "exclude"))
