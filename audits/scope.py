"""The scope of an audit: which part of the cloud it looks at, and what it leaves alone.

A scope is a list of at most one ``{"compute": [rules]}`` and one ``{"storage": [rules]}``; a list of bare rules means
the former.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from watcher_site.messages import cut
from watcher_site.refusals import Invalid
from watcher_site.storable import require_storable


def closed(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with just these properties."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def listed(**properties: Any) -> dict[str, Any]:
    """Return the schema of a list of objects, each with one of these properties."""
    return {"type": "array", "items": {**closed(**properties), "minProperties": 1}}


TEXT = {"type": "string"}
AGGREGATES = listed(id={"anyOf": [{"type": "integer"}, {"const": "*"}]}, name=TEXT)
ZONES = listed(name=TEXT)
METADATA = {"type": "array", "items": {"type": "object"}}
COMPUTE_RULES = listed(
    host_aggregates=AGGREGATES,
    availability_zones=ZONES,
    exclude=listed(
        instances=listed(uuid=TEXT),
        compute_nodes=listed(name=TEXT),
        host_aggregates=AGGREGATES,
        instance_metadata=METADATA,
        projects=listed(uuid=TEXT),
    ),
)
STORAGE_RULES = listed(
    availability_zones=ZONES,
    volume_types=listed(name=TEXT),
    exclude=listed(storage_pools=listed(name=TEXT), volumes=listed(uuid=TEXT), projects=listed(uuid=TEXT)),
)
SCHEMA = {
    "type": "array",
    "items": {
        **closed(compute=COMPUTE_RULES, storage=STORAGE_RULES),
        "minProperties": 1,
        "maxProperties": 1,
    },
    "maxItems": 2,
}


def check_scope(scope: Any) -> None:
    """Raise `Invalid` unless this is a scope, naming the rule that is wrong.

    A scope of storage alone is refused, as a node that no rule of it concerns would mean nothing.
    """
    if not isinstance(scope, list):
        raise Invalid("scope: must be a list.")
    require_storable("scope", scope)
    problem = best_match(Draft202012Validator(SCHEMA).iter_errors(wrapped(scope)))
    if problem:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem.absolute_path)
        raise Invalid(cut(f"scope{path}: {problem.message}"))
    check_parts([next(iter(part)) for part in wrapped(scope)])
    check_rules(compute_rules(scope))


def check_parts(parts: Sequence[str]) -> None:
    if len(set(parts)) < len(parts):
        raise Invalid(f"scope: must not hold {parts[0]} twice.")
    if parts == ["storage"]:
        raise Invalid("scope: must hold compute beside storage.")


def check_rules(rules: Sequence[Mapping[str, Any]]) -> None:
    included = list(found(rules, "host_aggregates"))
    excluded = list(found(exclusions(rules), "host_aggregates"))
    if included and excluded:
        raise Invalid("host_aggregates can't be included and excluded together")
    for field, entries in (
        ("host_aggregates", included),
        ("host_aggregates", excluded),
        ("availability_zones", list(found(rules, "availability_zones"))),
    ):
        if len(entries) > 1 and any("*" in entry.values() for entry in entries):
            raise Invalid(f"scope: '*' must stand alone in {field}.")


def wrapped(scope: list[Any]) -> list[Any]:
    """Return the scope as a list of parts, where it came as a bare list of rules."""
    first = scope[0] if scope else None
    if isinstance(first, dict) and not {"compute", "storage"} & first.keys():
        return [{"compute": scope}]
    return scope


def compute_rules(scope: list[Any]) -> list[Mapping[str, Any]]:
    return [rule for part in wrapped(scope) for rule in part.get("compute", [])]


def found(rules: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    for rule in rules:
        yield from rule.get(kind, [])


def exclusions(rules: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list(found(rules, "exclude"))


def narrow(cluster: ClusterSnapshot, scope: list[Any]) -> ClusterSnapshot:
    """Return the part of a freshly loaded cluster that a scope leaves.

    Excluded nodes leave with their servers. Servers that are excluded themselves, by their project or by their
    metadata, stay where they are and are marked ``watcher_exclude``.

    Raises:
        Invalid: the scope speaks of host aggregates or availability zones, which the tables do not know.
    """
    rules = compute_rules(scope)
    excluded = exclusions(rules)
    for kind, entries in {
        "host_aggregates": [*found(rules, "host_aggregates"), *found(excluded, "host_aggregates")],
        "availability_zones": [*found(rules, "availability_zones")],
    }.items():
        if entries:
            raise Invalid(f"The scope asks for {kind}, which this cloud does not know.")
    mark(cluster.servers, excluded)
    return ClusterSnapshot(without({entry.get("name") for entry in found(excluded, "compute_nodes")}, cluster.nodes))


def without(names: set[Any], nodes: Mapping[str, NodeSnapshot]) -> dict[str, NodeSnapshot]:
    return {hostname: node for hostname, node in nodes.items() if hostname not in names}


def mark(servers: Sequence[ServerSnapshot], excluded: Sequence[Mapping[str, Any]]) -> None:
    """Set ``watcher_exclude`` on the servers that the exclusions name."""
    uuids = {entry.get("uuid", "").lower() for entry in found(excluded, "instances")}
    projects = {entry.get("uuid") for entry in found(excluded, "projects")}
    carries = carrier([pair for entry in found(excluded, "instance_metadata") for pair in entry.items()])
    for server in servers:
        if str(server.uuid) in uuids or server.project_id in projects or carries(server):
            server.watcher_exclude = True


def carrier(pairs: Sequence[tuple[str, Any]]) -> Callable[[ServerSnapshot], bool]:
    """Return the question whether a server's metadata hold one of these pairs, whatever the case of the value."""
    wanted = {(key, str(value).lower()) for key, value in pairs}
    return lambda server: any((key, str(value).lower()) in wanted for key, value in server.metadata.items())
