"""What rules can name: each kind of thing, and which there are of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q

from cluster.models import Cluster, ComputeNode, HostAggregate, Server
from watcher_site.refusals import Invalid
from watcher_site.storable import judge_text

SERVERS, COMPUTE_NODES, AGGREGATES = "servers", "compute_nodes", "aggregates"
ZONES, PROJECTS, CLUSTERS = "availability_zones", "projects", "clusters"

# What people may write of each kind, and one of them is called.
KINDS = {
    SERVERS: ("server", "the UUID or the name of a server"),
    COMPUTE_NODES: ("compute node", "the host name or the UUID of a compute node"),
    AGGREGATES: ("aggregate", "the id or the name of a host aggregate"),
    ZONES: ("availability zone", "the name of an availability zone"),
    PROJECTS: ("project", "the id of a project"),
    CLUSTERS: ("cluster", "the UUID or the name of a cluster"),
}
LONGEST = 255


def identify(kind: str, text: Any) -> str:
    """Return the identifier of what a person named: it stays when the thing is called otherwise.

    Raises:
        Invalid: there is no such thing, or there are several; the message names the kind.
    """
    singular, form = KINDS[kind]
    if not isinstance(text, str) or not 0 < len(text.strip()) <= LONGEST or judge_text(text):
        raise Invalid(f"targets.{kind}: must hold texts, each {form}.")
    found = FINDERS[kind](text.strip())[:2]
    if not found:
        raise Invalid(f"targets.{kind}: there is no {singular} {text}.")
    if len(found) > 1:
        raise Invalid(f"targets.{kind}: several are called {text}: name its UUID.")
    return str(found[0])


def read_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def by_uuid_or_name(model: Any, text: str) -> list[Any]:
    uuid = read_uuid(text)
    asked = Q(uuid=uuid) if uuid else Q(name=text)
    return list(model.objects.present().filter(asked).order_by("pk").values_list("uuid", flat=True)[:2])


def find_compute_nodes(text: str) -> list[Any]:
    uuid = read_uuid(text)
    asked = Q(uuid=uuid) if uuid else Q(hostname=text)
    return list(ComputeNode.objects.present().filter(asked).values_list("hostname", flat=True)[:2])


def find_aggregates(text: str) -> list[Any]:
    """Find one by its name, or else by its id: an aggregate may be called by a number."""
    present = HostAggregate.objects.present()
    by_name = list(present.filter(name=text).values_list("pk", flat=True)[:2])
    is_number = text.isascii() and text.isdigit() and len(text) < len(str(2**31))
    return by_name or (list(present.filter(pk=int(text)).values_list("pk", flat=True)) if is_number else [])


def find_zones(text: str) -> list[Any]:
    return [text] if ComputeNode.objects.present().filter(zone=text).exists() else []


FINDERS: dict[str, Callable[[str], list[Any]]] = {
    SERVERS: lambda text: by_uuid_or_name(Server, text),
    COMPUTE_NODES: find_compute_nodes,
    AGGREGATES: find_aggregates,
    ZONES: find_zones,
    # The cloud knows which projects there are; here they are but ids.
    PROJECTS: lambda text: [text],
    CLUSTERS: lambda text: by_uuid_or_name(Cluster, text),
}


def names_of(targets: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return what people call the things that a rule names, by kind and identifier, in at most one query a kind.

    What is there no more, and what has no other name, is called by its identifier.
    """
    found = {kind: {one: one for one in identifiers} for kind, identifiers in targets.items()}
    for kind, (model, column) in NAMED.items():
        if wanted := found.get(kind):
            rows = model.objects.filter(**{f"{column}__in": list(wanted)}).values_list(column, "name")
            wanted.update({str(identifier): name for identifier, name in rows})
    return found


NAMED: dict[str, tuple[Any, str]] = {
    SERVERS: (Server, "uuid"),
    AGGREGATES: (HostAggregate, "pk"),
    CLUSTERS: (Cluster, "uuid"),
}
