"""Validation and normalisation of stack templates.

A template is an object::

    version: 1
    description: ...
    resources:
      database: {type: server, properties: {flavor: large}}
      web:
        type: scaling_group
        properties: {size: 3, member: {type: server, properties: {flavor: small}}}
        depends_on: database

A **normalised** template contains all optional values, at every level, and nothing else. It is plain JSON, so that
equal values mean equal templates:

- A template has ``version`` (1), ``description`` (a text) and ``resources``, by name.
- A resource has ``type``, ``properties``, and ``depends_on``: a list of names without repetitions, in the given order.
- The properties of a ``server`` are ``flavor`` (the given id or name), ``image`` and ``availability_zone`` (a text, or
  null), ``metadata`` (texts by name), and the given ones of `cluster.drivers.server_properties`.
- The properties of a ``scaling_group`` are ``size``, ``min_size``, ``max_size`` (-1: no limit), ``member`` (an object
  with ``type``, server or stack, and normalised ``properties``), and ``rolling_update``, an object with
  ``max_batch_size`` (default: 1 member) and ``pause_time`` (seconds between batches, default: 0).
- The property of a ``stack`` is its normalised ``template``.

The limits are the defaults of OpenStack's orchestration service.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from jsonschema.exceptions import best_match

from cluster import messages
from cluster.drivers import server_properties
from cluster.drivers.quotas import require_metadata_quota
from cluster.json_lines import InvalidValue, check_values
from cluster.models import ComputeNode, Flavor, StackResource
from cluster.models.clusters import UNLIMITED
from cluster.stacks.templates.documents import read_document, refuse_large, write_document
from cluster.stacks.templates.schemas import NAMES, PROPERTIES, TEMPLATE, VERSION
from watcher_site.messages import cut
from watcher_site.refusals import Invalid
from watcher_site.validation import Draft202012Validator

Template = dict[str, Any]
"""A normalised template."""
Path = tuple[str | int, ...]
Type = StackResource.Type
MAX_DEPTH = 5
"""The maximum depth of nested stacks and groups, below the root stack."""
EMPTY_VALUES: tuple[Any, ...] = (None, "", [], {})
"""Values of properties that formatted templates omit."""


def checked_template(template: Any) -> Template:
    """Return a user's template, normalised and checked against the cloud.

    Args:
        template: an object, or text in JSON or YAML.

    Raises:
        Invalid: the message names the path and the rule.
    """
    normalised = normalise(template)
    refuse_unknown_references(normalised)
    return normalised


def normalise(template: Any) -> Template:
    """Return a normalised template, without checking the names of the cloud's objects.

    Raises:
        Invalid: the message names the path and the rule.
        QuotaExceeded: a server has more metadata entries than it may.
    """
    document = read_document(template) if isinstance(template, str) else template
    if document is None:
        raise Invalid(messages.TEMPLATE_EMPTY.text)
    try:
        check_values(document)
        if document is template:
            refuse_large(json.dumps(document, ensure_ascii=False))
        normalised = normal_template(document, (), 0)
    except InvalidValue as problem:
        raise Invalid(f"template: {problem}") from problem
    if (number := count_resources(normalised)) > (limit := settings.QUOTAS["stack_resources"]):
        raise Invalid(messages.TEMPLATE_RESOURCES.fill(number=number, limit=limit))
    return normalised


def normal_template(document: Any, path: Path, depth: int) -> Template:
    """Return a valid template in its normal form. Raises: `InvalidValue`."""
    if depth > MAX_DEPTH:
        raise InvalidValue(path, messages.GROUPS_TOO_DEEP.fill(number=MAX_DEPTH))
    require_valid(TEMPLATE, document, path)
    resources = {
        name: normal_resource(resource, (*path, "resources", name), depth)
        for name, resource in document["resources"].items()
    }
    refuse_cycles(resources, (*path, "resources"))
    return {"version": VERSION, "description": document.get("description") or "", "resources": resources}


def normal_resource(resource: dict[str, Any], path: Path, depth: int) -> dict[str, Any]:
    before = resource.get("depends_on", [])
    return {
        "type": resource["type"],
        "properties": normal_properties(resource, path, depth),
        "depends_on": list(dict.fromkeys([before] if isinstance(before, str) else before)),
    }


def normal_properties(resource: dict[str, Any], path: Path, depth: int) -> dict[str, Any]:
    path, properties = (*path, "properties"), resource["properties"]
    require_valid(PROPERTIES[resource["type"]], properties, path)
    return NORMAL[resource["type"]](properties, path, depth)


def normal_server(properties: dict[str, Any], path: Path, depth: int) -> dict[str, Any]:
    require_metadata_quota(properties.get("metadata"))
    if flaw := server_properties.find_property_flaw(properties):
        field, _, rule = flaw.partition(": ")
        raise InvalidValue((*path, *(int(step) if step.isdigit() else step for step in field.split("."))), rule)
    return {
        "flavor": properties["flavor"],
        "image": properties.get("image"),
        "metadata": properties.get("metadata", {}),
        "availability_zone": properties.get("availability_zone"),
        # Templates stored before these properties were supported do not contain them.
        **server_properties.select_properties(properties),
    }


def normal_group(properties: dict[str, Any], path: Path, depth: int) -> dict[str, Any]:
    if depth == MAX_DEPTH:
        raise InvalidValue(path, messages.GROUPS_TOO_DEEP.fill(number=MAX_DEPTH))
    sizes = {name: int(properties.get(name, default)) for name, default in SIZES.items()}
    require_sizes(**sizes, path=path)
    member, rolling = properties["member"], properties.get("rolling_update", {})
    return {
        **sizes,
        "member": {
            "type": member["type"],
            "properties": normal_properties(member, (*path, "member"), depth + 1),
        },
        "rolling_update": {
            "max_batch_size": int(rolling.get("max_batch_size", 1)),
            "pause_time": rolling.get("pause_time", 0),
        },
    }


def normal_stack(properties: dict[str, Any], path: Path, depth: int) -> dict[str, Any]:
    return {"template": normal_template(properties["template"], (*path, "template"), depth + 1)}


SIZES = {"size": 0, "min_size": 0, "max_size": UNLIMITED}
NORMAL: dict[str, Callable[[dict[str, Any], Path, int], dict[str, Any]]] = {
    Type.SERVER: normal_server,
    Type.SCALING_GROUP: normal_group,
    Type.STACK: normal_stack,
}


def require_valid(validator: Draft202012Validator, value: Any, path: Path) -> None:
    """Raise `InvalidValue` with the path and the broken rule. Large values are truncated."""
    if error := best_match(validator.iter_errors(value)):
        rule = (
            messages.INVALID_NAME.fill(name=cut(repr(error.instance)), rule=NAMES)
            if error.validator == "pattern"
            else cut(error.message)
        )
        raise InvalidValue([*path, *error.absolute_path], f"{rule}.")


def require_sizes(size: int, min_size: int, max_size: int, path: Path) -> None:
    if UNLIMITED != max_size < min_size:
        raise InvalidValue([*path, "min_size"], messages.ABOVE_MAX.fill(size=min_size, most=max_size))
    if size < min_size:
        raise InvalidValue([*path, "size"], messages.BELOW_MIN.fill(size=size, least=min_size))
    if UNLIMITED != max_size < size:
        raise InvalidValue([*path, "size"], messages.ABOVE_MAX.fill(size=size, most=max_size))


def refuse_cycles(resources: dict[str, Any], path: Path) -> None:
    """Raise `InvalidValue` if dependencies are cyclic or refer to a missing resource."""
    for name, resource in resources.items():
        if unknown := [other for other in resource["depends_on"] if other not in resources]:
            raise InvalidValue([*path, name, "depends_on"], messages.NO_RESOURCE.fill(name=unknown[0]))
    try:
        TopologicalSorter({name: resource["depends_on"] for name, resource in resources.items()}).prepare()
    except CycleError as problem:
        circle = problem.args[1]
        raise InvalidValue(
            [*path, circle[-1], "depends_on"], cut(messages.CYCLE.fill(path=" → ".join(reversed(circle))))
        ) from None


def count_resources(template: Template) -> int:
    """Return the number of resources of a normalised template, including nested stacks and groups."""
    return sum(1 + count_within(resource) for resource in template["resources"].values())


def count_within(resource: dict[str, Any]) -> int:
    properties = resource["properties"]
    if resource["type"] == Type.SCALING_GROUP:
        return int(properties["size"]) * (1 + count_within(properties["member"]))
    return count_resources(properties["template"]) if resource["type"] == Type.STACK else 0


def refuse_unknown_references(template: dict[str, Any]) -> None:
    """Raise `Invalid` if a server has a flavor or a zone that the cloud does not have: two queries.

    Args:
        template: a normalised template.
    """
    refuse_unknown(template, "flavor", Flavor.objects.present(), ("flavor_id", "name"))
    refuse_unknown(template, "availability_zone", ComputeNode.objects.present(), ("zone",))


def refuse_unknown(template: dict[str, Any], field: str, records: QuerySet[Any], columns: tuple[str, ...]) -> None:
    references = [
        ((*path, field), properties[field]) for path, properties in servers_of(template) if properties[field]
    ]
    if not references:
        return
    identifiers = {value for row in records.values_list(*columns).distinct() for value in row}
    for path, name in references:
        if name not in identifiers:
            raise Invalid(f"template: {InvalidValue(path, messages.NOT_IN_CLOUD.fill(kind=field, name=name))}")


def servers_of(template: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the path and the properties of each server of a normalised template. The member of a group counts once."""
    yield from servers_among((("resources", name), resource) for name, resource in template["resources"].items())


def servers_among(resources: Iterable[tuple[Path, dict[str, Any]]]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path, resource in resources:
        path, properties = (*path, "properties"), resource["properties"]
        if resource["type"] == Type.SERVER:
            yield path, properties
        elif resource["type"] == Type.SCALING_GROUP:
            yield from servers_among([((*path, "member"), properties["member"])])
        else:
            for below, server in servers_of(properties["template"]):
                yield (*path, "template", *below), server


def format_template(template: Template) -> str:
    """Return a template as YAML, without empty optional values."""
    return write_document(without_empty(normalise(template)))


def without_empty(value: Any, name: str = "") -> Any:
    if not isinstance(value, dict) or name in ("metadata", "scheduler_hints"):
        return value
    return {
        key: without_empty(inner, key)
        for key, inner in value.items()
        if key == "resources" or inner not in EMPTY_VALUES
    }
