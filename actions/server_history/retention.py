"""Keep the operations on servers when their plan is removed for good, and delete them when they expire."""

from collections import defaultdict
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from actions.models import Action, ActionEvent
from actions.models.instance_actions import InstanceAction
from actions.server_history.events import COLUMNS, plain
from actions.server_history.lists import Row
from cluster.models import Server

BATCH = 500
KEPT = ("kept_events", "message", "updated_at", "user_id", "project_id")


def keep_operations(actions: QuerySet[Action]) -> None:
    """Write down what actions that are about to be removed, and their plans, know of operations on servers."""
    found: Any = InstanceAction.objects.in_full().filter(action__in=actions).order_by("pk")
    last = 0
    while some := list(found.filter(pk__gt=last)[:BATCH]):
        last = some[-1].pk
        events = events_by_action([one.action_id for one in some])
        for one in some:
            one.kept_events = events[one.action_id]
            one.message, one.updated_at = one.outcome, one.changed_at
            one.user_id, one.project_id = one.by, one.project
        InstanceAction.objects.bulk_update(some, KEPT)


def events_by_action(actions: list[int]) -> dict[int, list[Row]]:
    events: dict[int, list[Row]] = defaultdict(list)
    found = ActionEvent.objects.filter(action__in=actions).order_by("-start_time", "-pk")
    for event in found.values("action_id", *COLUMNS):
        events[event["action_id"]].append(plain(event))
    return events


def expired_operations(cutoff: datetime) -> QuerySet[InstanceAction]:
    """Return the operations on servers that were deleted until then, or were unknown already when it was done."""
    servers = Server.objects.filter(uuid=OuterRef("server_uuid"))
    deleted, unknown = Exists(servers.filter(deleted_at__lte=cutoff)), ~Exists(servers)
    found: QuerySet[InstanceAction] = InstanceAction.objects.filter(deleted | Q(unknown, start_time__lte=cutoff))
    return found
