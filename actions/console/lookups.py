"""Lookups of actions and plans by names and identifiers, as the console shows them.

Tables of objects are small enough for searches of parts of names. The table of actions is not: each condition here is
served by an index.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, F, IntegerField, Q, Value, When

from actions.models import Action
from cluster.models import Cluster, ComputeNode, Node, Server, Stack, StackResource, Volume
from watcher_site import plugins
from watcher_site.console.lists.filters import Match, bounds_of
from watcher_site.templatetags.names import stored_beginning

# The models of targets of actions, with the columns of their names.
NAMED: dict[Any, str] = {
    Server: "name",
    ComputeNode: "hostname",
    Cluster: "name",
    Node: "name",
    Stack: "name",
    StackResource: "name",
    Volume: "name",
}
PRESENT, DELETED, PART = range(3)
# The maximum number of objects that match a part of a name.
MOST_OBJECTS = 100


class Found(NamedTuple):
    """A target of actions, and the rank of its match: by name or UUID, or by a part of the name."""

    name: str
    uuid: UUID
    rank: int


def find_objects(text: str, parts: bool = True) -> list[Found]:
    """Return the objects with a name or a prefix of a UUID, the best matches first, in one query.

    Deleted objects are included, because their actions remain.

    Args:
        parts: whether a part of the name is sufficient.
    """
    queries = []
    bounds = bounds_of(text)
    for model, column in NAMED.items():
        exact = Q(**{f"{column}__iexact": text}) | (Q(uuid__range=bounds) if bounds else Q())
        rank = Case(
            When(exact & Q(deleted_at=None), then=Value(PRESENT)),
            When(exact, then=Value(DELETED)),
            default=Value(PART),
            output_field=IntegerField(),
        )
        condition = exact | Q(**{f"{column}__icontains": text}) if parts else exact
        rows = model.objects.filter(condition).order_by().annotate(called=F(column), rank=rank)
        queries.append(rows.values_list("called", "uuid", "rank"))
    first, *further = queries
    return [Found(*row) for row in first.union(*further, all=True).order_by("rank", "called")[:MOST_OBJECTS]]


def find_targets(text: str) -> list[str]:
    """Return the targets of actions that match a text: objects with this name, or else with this part of a name."""
    objects = find_objects(text)
    matches = [match for match in objects if match.rank < PART] or objects
    # The target of an action on a compute node may be its host name.
    return list(dict.fromkeys([text, *(target for match in matches for target in (str(match.uuid), match.name))]))


def find_types(text: str) -> list[str]:
    """Return the action types whose names contain a text."""
    lower = text.lower()
    return list(dict.fromkeys([lower, *(name for name in plugins.load("ACTION_TYPES") if lower in name)]))


def action_conditions(text: str) -> list[Q]:
    """Return the conditions for a text, each served by an index: UUID or name, target, and type."""
    bounds = bounds_of(text)
    identity = Q(name=text) | Q(uuid__range=bounds) if bounds else Q(name=text)
    return [identity, Q(target__in=find_targets(text)), Q(action_type__in=find_types(text))]


def match_targets(text: str) -> Iterator[Match]:
    """Yield the objects with a name or UUID, and the targets of their actions. Deleted ones only without others."""
    objects = find_objects(text, parts=False)
    best = min((item.rank for item in objects), default=PART)
    for item in objects:
        if item.rank == best:
            yield Match(item.name, item.uuid, (str(item.uuid), item.name))
    if not objects and Action.objects.filter(target=text).exists():
        yield Match(text, "", (text,))


def match_plans(text: str) -> Iterator[Match]:
    """Yield the plans with a name or UUID."""
    bounds, stored = bounds_of(text), stored_beginning(text)
    by_name = Q(audit__name__iexact=text) | (Q(audit__name__startswith=stored) if stored != text else Q())
    condition = by_name | requested_by(text) | (Q(uuid__range=bounds) if bounds else Q())
    plans = Action.objects.named_plans().filter(condition, deleted_at=None)
    for plan in plans.order_by("-pk")[:MOST_OBJECTS]:
        yield Match(plan.called, plan.uuid, plan.pk)


def requested_by(text: str) -> Q:
    """Return the condition of plans without an audit whose operation is this text: an action type and a name."""
    action_type, _space, name = text.partition(" ")
    if action_type not in plugins.load("ACTION_TYPES"):
        return Q(pk__in=[])
    # Also restricted to these plans in the subquery, which otherwise reads all actions of the type.
    actions = Action.objects.present().filter(action_type=action_type, derived_from=None, action_plan__audit=None)
    if name:
        actions = actions.filter(target__in=find_targets(name))
    return Q(audit=None, pk__in=actions.values("action_plan"))
