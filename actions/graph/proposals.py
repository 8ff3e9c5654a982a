"""Proposed actions: validation of their graph, and their insertion into the database."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from graphlib import CycleError, TopologicalSorter
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from actions import messages
from actions.exclusions.matching import Match
from actions.graph.propagation import NEVER_DERIVED
from actions.models import Action, ActionParent
from watcher_site.outbox.kinds import CREATE
from watcher_site.outbox.writing import announce
from watcher_site.refusals import Invalid

# Rows of one INSERT statement.
BATCH = 5000
NO_MATCHES: Mapping[UUID, Match] = {}
# The messages about a cycle of one action, and of several.
WAITING = "waits for itself", "wait for each other"
DERIVING = "is derived from itself", "are derived from each other"


@dataclass(frozen=True)
class ProposedAction:
    """A proposed action. Its parents are proposed with it, and must finish before it starts.

    An action that another proposed action will derive always waits for that action, its origin, which need not be one
    of its parents. Its other parents must have the same origin.
    """

    action_type: str
    input_parameters: Mapping[str, Any]
    parents: Sequence[UUID] = ()
    uuid: UUID = field(default_factory=uuid4)
    timeout: int | None = None
    """The timeout in seconds; None or 0 for the site's default."""
    name: str = ""
    """If empty, the name consists of the type and the UUID."""
    derived_from: UUID | None = None
    """The origin: another proposed action, which will derive this one."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The data of the action when its type runs for the first time."""
    delay: float = 0
    """The seconds between the creation of its row and its earliest beginning.

    A planned derived action begins when its origin allows it: see `actions.types.base.Outcome`.
    """


def check_graph(actions: Sequence[ProposedAction]) -> None:
    """Raise `Invalid` if a parent or an origin is not one of these actions, or if there is a cycle."""
    uuid, times = next(iter(Counter(action.uuid for action in actions).most_common(1)), (None, 0))
    if times > 1:
        raise Invalid(f"actions: {uuid} is given {times} times.")
    origins = {action.uuid: action.derived_from for action in actions}
    for action in actions:
        if strays := [parent for parent in action.parents if parent not in origins]:
            raise Invalid(f"parents: {strays[0]}, parent of action {action.uuid}, is not an action of the plan.")
        if action.derived_from and action.derived_from not in origins:
            raise Invalid(
                f"derived_from: {action.derived_from}, which derives action {action.uuid}, is not an action of the"
                " plan."
            )
    check_cycles({child: [origin] for child, origin in origins.items() if origin}, "derived_from", DERIVING)
    for action in actions:
        for parent in action.parents:
            check_edge("parents", (action.uuid, action.derived_from), (parent, origins[parent]))
    check_cycles({action.uuid: action.parents for action in actions})


def check_edge(field: str, child: tuple[UUID, UUID | None], parent: tuple[UUID, UUID | None]) -> None:
    """Raise `Invalid` if an action must not depend on another; each is given with its origin.

    A derived action waits for its origin, which then waits for its derived actions. To prevent cycles, other
    dependencies are allowed only between actions with the same origin, or between actions without one.
    """
    (uuid, origin), (other, other_origin) = child, parent
    if origin not in (other, other_origin):
        raise Invalid(
            messages.STRANGE_EDGE.fill(
                field=field, uuid=uuid, origin=origin or "none", other=other, other_origin=other_origin or "none"
            )
        )


def check_cycles(
    parents: Mapping[UUID, Iterable[UUID]], field: str = "parents", texts: tuple[str, str] = WAITING
) -> None:
    """Raise `Invalid` with the UUIDs of the actions if there is a cycle."""
    single_text, several_text = texts
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = list(dict.fromkeys(error.args[1]))
        if len(cycle) == 1:
            raise Invalid(f"{field}: action {cycle[0]} {single_text}.") from error
        path = " -> ".join(map(str, error.args[1]))
        raise Invalid(f"{field}: these actions {several_text}: {path}.") from error


def write_actions(
    plan_pk: int,
    proposed: Sequence[ProposedAction],
    derived_from: Action | None = None,
    excluded: Mapping[UUID, Match] = NO_MATCHES,
) -> None:
    """Insert the rows of a validated graph. The action that derived them waits for all of them.

    Actions with an origin among them are its children instead. Excluded actions are skipped at once, with the actions
    that they would derive. There is one statement for each `BATCH` rows and each level of derivation.
    """
    rows = {action.uuid: make_row(plan_pk, action, derived_from) for action in proposed}
    edges = [
        ActionParent(child=rows[action.uuid], parent=rows[parent])
        for action in proposed
        for parent in dict.fromkeys(action.parents)
        if parent != action.derived_from
    ]
    for action in proposed:
        if action.derived_from:
            row, origin = rows[action.uuid], rows[action.derived_from]
            row.derived_from, row.is_planned, origin.has_planned = origin, True, True
            edges.append(ActionParent(child=row, parent=origin))
        elif derived_from:
            edges.append(ActionParent(child=derived_from, parent=rows[action.uuid]))
    for generation in generations(proposed):
        skip_excluded([rows[uuid] for uuid in generation], excluded)
        Action.objects.bulk_create([rows[uuid] for uuid in generation], batch_size=BATCH)
    ActionParent.objects.bulk_create(edges, batch_size=BATCH)
    announce(Action.notified_as, [CREATE], [row.pk for row in rows.values()])


def skip_excluded(generation: Iterable[Action], excluded: Mapping[UUID, Match]) -> None:
    for row in generation:
        origin = row.derived_from if row.is_planned else None
        if match := excluded.get(row.uuid):
            row.exclude(match.rule.key, match.rule.message)
        elif origin is not None and origin.state == Action.State.SKIPPED:
            row.skip_automatically(NEVER_DERIVED)


def generations(proposed: Sequence[ProposedAction]) -> Iterator[list[UUID]]:
    """Yield the actions without an origin, then the actions that they derive, and so on."""
    by_origin = defaultdict(list)
    for action in proposed:
        by_origin[action.derived_from].append(action.uuid)
    generation = by_origin[None]
    while generation:
        yield generation
        generation = [uuid for origin in generation for uuid in by_origin[origin]]


def make_row(plan_pk: int, action: ProposedAction, derived_from: Action | None) -> Action:
    is_delayed = action.delay and not action.derived_from
    return Action(
        action_plan_id=plan_pk,
        uuid=action.uuid,
        name=action.name,
        action_type=action.action_type,
        input_parameters=dict(action.input_parameters),
        timeout=action.timeout,
        derived_from=derived_from,
        data=dict(action.data),
        initial_data=dict(action.data) or None,
        due_time=timezone.now() + timedelta(seconds=action.delay) if is_delayed else None,
    )
