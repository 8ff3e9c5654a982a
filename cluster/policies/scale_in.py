"""The choice of the nodes that leave a cluster when it shrinks."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.db.models import Case, OuterRef, Q, Subquery, TextChoices, TextField, When
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from cluster.models import Node, Server

Status = Node.Status
UNHEALTHY = Q(status__in=(Status.ERROR, Status.WARNING)) | Q(tainted=True)
NEVER_CREATED = Q(status=Status.INIT)


class Criteria(TextChoices):
    """The order in which healthy nodes leave a cluster. Ties are broken by the order of joining."""

    OLDEST_FIRST = "OLDEST_FIRST", "those that are there for the longest time"
    OLDEST_PROFILE_FIRST = "OLDEST_PROFILE_FIRST", "those that were made from the oldest profile"
    YOUNGEST_FIRST = "YOUNGEST_FIRST", "those that were made last"
    RANDOM = "RANDOM", "any"


ORDERS = {
    Criteria.OLDEST_FIRST: ("created_at", "index", "pk"),
    Criteria.OLDEST_PROFILE_FIRST: ("profile__created_at", "index", "pk"),
    Criteria.YOUNGEST_FIRST: ("-created_at", "-index", "-pk"),
    Criteria.RANDOM: ("?",),
}


def choose_nodes_to_remove(
    members: Any, count: int, criteria: str = Criteria.RANDOM, zones: Mapping[str, int] | None = None
) -> list[str]:
    """Return the UUIDs of the nodes that leave, in order, in one query.

    Unhealthy and tainted nodes leave first, then nodes that were never created.

    Args:
        members: a queryset of nodes.
        count: the number of nodes that leave, if there are as many.
        zones: the number for each availability zone. Nodes of other zones replace missing ones.
    """
    in_order = members.annotate(turn=Case(When(UNHEALTHY, then=0), When(NEVER_CREATED, then=1), default=2)).order_by(
        "turn", *ORDERS[Criteria(criteria)]
    )
    if not zones:
        return [str(uuid) for uuid in in_order.values_list("uuid", flat=True)[:count]]
    rows = list(in_order.values_list("uuid", zone_expression()))
    return choose_by_zone([(str(uuid), zone) for uuid, zone in rows], count, zones)


def zone_expression() -> Coalesce:
    """Return the expression of a node's zone: that of its server, else the planned one."""
    servers = Server.objects.present().filter(uuid=OuterRef("physical_id")).order_by()
    return Coalesce(Subquery(servers.values("node__zone")[:1]), KT("data__placement__zone"), output_field=TextField())


def choose_by_zone(members: list[tuple[str, str | None]], count: int, zones: Mapping[str, int]) -> list[str]:
    surplus = Counter(zones)
    uuids = []
    for uuid, zone in members:
        if surplus[zone or ""] > 0:
            surplus[zone or ""] -= 1
            uuids.append(uuid)
    remaining = [uuid for uuid, _ in members if uuid not in set(uuids)]
    return [*uuids, *remaining][:count]
