"""The kinds of targets of rules, and the lookup of each kind."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext_noop, ngettext_lazy

from actions import messages
from cluster.models import Cluster, ComputeNode, HostAggregate, Server
from watcher_site.database.records import parse_uuid
from watcher_site.database.text import UNSTORABLE
from watcher_site.refusals import Invalid

SERVERS, COMPUTE_NODES, AGGREGATES = "servers", "compute_nodes", "aggregates"
ZONES, PROJECTS, CLUSTERS = "availability_zones", "projects", "clusters"

# The singular of each kind, and the allowed identifiers.
KINDS = {
    SERVERS: (gettext_noop("server"), gettext_noop("the UUID or the name of a server")),
    COMPUTE_NODES: (gettext_noop("compute node"), gettext_noop("the host name or the UUID of a compute node")),
    AGGREGATES: (gettext_noop("aggregate"), gettext_noop("the id or the name of a host aggregate")),
    ZONES: (gettext_noop("availability zone"), gettext_noop("the name of an availability zone")),
    PROJECTS: (gettext_noop("project"), gettext_noop("the id of a project")),
    CLUSTERS: (gettext_noop("cluster"), gettext_noop("the UUID or the name of a cluster")),
}
# The texts about a `count` of targets, with its grouped digits in `number`.
COUNTED = {
    SERVERS: ngettext_lazy("%(number)s server", "%(number)s servers", "count"),
    COMPUTE_NODES: ngettext_lazy("%(number)s compute node", "%(number)s compute nodes", "count"),
    AGGREGATES: ngettext_lazy("%(number)s aggregate", "%(number)s aggregates", "count"),
    ZONES: ngettext_lazy("%(number)s availability zone", "%(number)s availability zones", "count"),
    PROJECTS: ngettext_lazy("%(number)s project", "%(number)s projects", "count"),
    CLUSTERS: ngettext_lazy("%(number)s cluster", "%(number)s clusters", "count"),
}
MAX_LENGTH = 255
MAX_LISTED = 10


def identify(kind: str, texts: Sequence[Any]) -> set[str]:
    """Return the permanent identifiers of targets in one query.

    Args:
        texts: names or identifiers.

    Raises:
        Invalid: there is no such target, or several have the name; the message names the kind.
    """
    singular, form = KINDS[kind]
    if not all(is_name(text) for text in texts):
        raise Invalid(messages.TARGET_NAMES.fill(kind=kind, form=form))
    names = [text.strip() for text in texts]
    identifiers = FINDERS[kind](set(names)) if names else {}
    if missing := [name for name in dict.fromkeys(names) if not identifiers.get(name)]:
        raise Invalid(f"targets.{kind}: {describe_missing(singular, missing)}")
    for name in names:
        if len(identifiers[name]) > 1:
            raise Invalid(messages.AMBIGUOUS_TARGET.fill(kind=kind, name=name))
    return set().union(*identifiers.values())


def describe_missing(singular: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return messages.TARGET_MISSING.fill(kind=singular, name=names[0])
    more = messages.FURTHER_TARGETS.fill(number=len(names) - MAX_LISTED) if len(names) > MAX_LISTED else ""
    return messages.SEVERAL_TARGETS_MISSING.fill(kind=singular, names=", ".join(names[:MAX_LISTED]), rest=more)


def is_name(text: Any) -> bool:
    return isinstance(text, str) and 0 < len(text.strip()) <= MAX_LENGTH and not UNSTORABLE.search(text)


Found = dict[str, set[str]]
"""The identifiers that were found for each text."""


def by_uuid_or_name(model: Any, texts: set[str], name: str = "name", identifier: str = "uuid") -> Found:
    """Find objects by UUID, or by the column ``name`` for texts that are not a UUID."""
    uuids = {text: uuid for text in texts if (uuid := parse_uuid(text))}
    names = texts - uuids.keys()
    condition = Q(uuid__in=set(uuids.values())) | Q(**{f"{name}__in": names})
    by_uuid: dict[UUID, str] = {}
    identifiers: Found = defaultdict(set)
    for uuid, record_name, key in model.objects.present().filter(condition).values_list("uuid", name, identifier):
        by_uuid[uuid] = str(key)
        if record_name in names:
            identifiers[record_name].add(str(key))
    return identifiers | {text: {by_uuid[uuid]} for text, uuid in uuids.items() if uuid in by_uuid}


def find_aggregates(texts: set[str]) -> Found:
    """Find aggregates by name, else by id or UUID, because the name of an aggregate may be a number."""
    numbers = {text for text in texts if text.isascii() and text.isdigit() and len(text) < len(str(2**31))}
    uuids = {text: uuid for text in texts if (uuid := parse_uuid(text))}
    condition = Q(name__in=texts) | Q(pk__in=set(map(int, numbers))) | Q(uuid__in=set(uuids.values()))
    by_name, by_number, by_uuid = defaultdict(set), {}, {}
    for key, name, uuid in HostAggregate.objects.present().filter(condition).values_list("pk", "name", "uuid"):
        by_name[name].add(str(key))
        by_number[key] = {str(key)}
        by_uuid[uuid] = {str(key)}
    keys_by_text = {text: by_number[int(text)] for text in numbers if int(text) in by_number}
    keys_by_text |= {text: by_uuid[uuid] for text, uuid in uuids.items() if uuid in by_uuid}
    return keys_by_text | {name: keys for name, keys in by_name.items() if name in texts}


def find_zones(texts: set[str]) -> Found:
    zones = ComputeNode.objects.present().filter(zone__in=texts).order_by().values_list("zone", flat=True)
    return {zone: {zone} for zone in zones.distinct()}


FINDERS: dict[str, Callable[[set[str]], Found]] = {
    SERVERS: lambda texts: by_uuid_or_name(Server, texts),
    COMPUTE_NODES: lambda texts: by_uuid_or_name(ComputeNode, texts, "hostname", "hostname"),
    AGGREGATES: find_aggregates,
    ZONES: find_zones,
    # The site has no table of projects, so any id is accepted.
    PROJECTS: lambda texts: {text: {text} for text in texts},
    CLUSTERS: lambda texts: by_uuid_or_name(Cluster, texts),
}


def names_of(targets: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return the names of the targets of a rule, by kind and identifier, with at most one query for each kind.

    The name of a target that was deleted, or that has none, is its identifier.
    """
    names_by_kind = {kind: {key: key for key in identifiers} for kind, identifiers in targets.items()}
    for kind, (model, column) in NAMED.items():
        if names := names_by_kind.get(kind):
            rows = model.objects.filter(**{f"{column}__in": list(names)}).values_list(column, "name")
            names.update({str(identifier): name for identifier, name in rows})
    return names_by_kind


NAMED: dict[str, tuple[Any, str]] = {
    SERVERS: (Server, "uuid"),
    AGGREGATES: (HostAggregate, "pk"),
    CLUSTERS: (Cluster, "uuid"),
}
