"""Checks that the objects which a stack's template names for its servers exist in the cloud."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import QuerySet

from cluster.json_lines import Misfit
from cluster.models import ComputeNode, Flavor, StackResource
from watcher_site.refusals import Invalid

Type = StackResource.Type
Steps = tuple[str | int, ...]


def refuse_strangers(template: dict[str, Any]) -> None:
    """Raise `Invalid` where a server is to have what the cloud has not: two queries, however many servers there are.

    Args:
        template: normalised.
    """
    refuse_unknown(template, "flavor", Flavor.objects.present(), ("flavor_id", "name"))
    refuse_unknown(template, "availability_zone", ComputeNode.objects.present(), ("zone",))


def refuse_unknown(template: dict[str, Any], field: str, known: QuerySet[Any], columns: tuple[str, ...]) -> None:
    wanted = [((*path, field), properties[field]) for path, properties in servers_of(template) if properties[field]]
    if not wanted:
        return
    there = {value for row in known.values_list(*columns).distinct() for value in row}
    for path, name in wanted:
        if name not in there:
            raise Invalid(f"template: {Misfit(path, f'the cloud has no {field} {name}.')}")


def servers_of(template: dict[str, Any]) -> Iterator[tuple[Steps, dict[str, Any]]]:
    """Yield the path and the properties of each server of a normalised template; of a group's members, once."""
    yield from servers_among((("resources", name), one) for name, one in template["resources"].items())


def servers_among(resources: Iterable[tuple[Steps, dict[str, Any]]]) -> Iterator[tuple[Steps, dict[str, Any]]]:
    for path, resource in resources:
        path, properties = (*path, "properties"), resource["properties"]
        if resource["type"] == Type.SERVER:
            yield path, properties
        elif resource["type"] == Type.SCALING_GROUP:
            yield from servers_among([((*path, "member"), properties["member"])])
        else:
            for below, server in servers_of(properties["template"]):
                yield (*path, "template", *below), server
