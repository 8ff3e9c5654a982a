"""Actions to be: how they come into the tables, whole and sound, or not at all."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from graphlib import CycleError, TopologicalSorter
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from actions.exclusions.matching import Match
from actions.graph.propagation import NEVER_DERIVED
from actions.models import Action, ActionParent
from watcher_site.outbox.kinds import CREATE
from watcher_site.outbox.writing import announce
from watcher_site.refusals import Invalid

# Rows an INSERT: few statements for a large plan, and none too large for the database.
BATCH = 5000
NONE: Mapping[UUID, Match] = {}
# What is wrong with an action that stands in a circle alone, and with several.
WAITING = "waits for itself", "wait for each other"
DERIVING = "is derived from itself", "are derived from each other"


@dataclass(frozen=True)
class ProposedAction:
    """An action to be: its parents are others that are proposed with it, which must finish before it starts.

    What another one that is proposed with it will derive waits for that one, whether or not it names it as a parent,
    and beside it for none but such as the same one will derive.
    """

    action_type: str
    input_parameters: Mapping[str, Any]
    parents: Sequence[UUID] = ()
    uuid: UUID = field(default_factory=uuid4)
    timeout: int | None = None
    """How many seconds one execution may take; None or 0 for the site's default."""
    name: str = ""
    """Made of the type and the UUID, where it is empty."""
    derived_from: UUID | None = None
    """Another action that is proposed with it, which will derive it."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The data of the action when its type runs for the first time."""
    delay: float = 0
    """For how many seconds from the writing of its row it does not begin.

    One that is planned does not begin before the one that derives it says so: see `actions.types.base.Outcome`.
    """


def check_graph(actions: Sequence[ProposedAction]) -> None:
    """Raise `Invalid` unless these are each other's parents and derive each other, and none waits for itself."""
    uuid, times = next(iter(Counter(action.uuid for action in actions).most_common(1)), (None, 0))
    if times > 1:
        raise Invalid(f"actions: {uuid} stands there {times} times.")
    origins = {action.uuid: action.derived_from for action in actions}
    for action in actions:
        if strays := [parent for parent in action.parents if parent not in origins]:
            raise Invalid(f"parents: {strays[0]}, parent of action {action.uuid}, is no action of the plan.")
        if action.derived_from and action.derived_from not in origins:
            raise Invalid(
                f"derived_from: {action.derived_from}, which derives action {action.uuid}, is no action of the plan."
            )
    check_cycles({child: [origin] for child, origin in origins.items() if origin}, "derived_from", DERIVING)
    for action in actions:
        for parent in action.parents:
            check_edge("parents", (action.uuid, action.derived_from), (parent, origins[parent]))
    check_cycles({action.uuid: action.parents for action in actions})


def check_edge(field: str, child: tuple[UUID, UUID | None], parent: tuple[UUID, UUID | None]) -> None:
    """Raise `Invalid` if an action may not wait for another: each with the one that it is derived from.

    What is derived waits for the one that derives it, and that one then for what it derived. So that this makes no
    circle, all others wait for none but those that are derived from the same one as they are, or from none as they.
    """
    (uuid, origin), (other, its_origin) = child, parent
    if origin not in (other, its_origin):
        raise Invalid(
            f"{field}: action {uuid}, derived from {origin or 'none'}, must not wait for {other}, derived from"
            f" {its_origin or 'none'}."
        )


def check_cycles(
    parents: Mapping[UUID, Iterable[UUID]], field: str = "parents", words: tuple[str, str] = WAITING
) -> None:
    """Raise `Invalid`, naming them, if some of these actions wait for each other, or one for itself."""
    of_one, of_several = words
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = list(dict.fromkeys(error.args[1]))
        if len(cycle) == 1:
            raise Invalid(f"{field}: action {cycle[0]} {of_one}.") from error
        path = " -> ".join(map(str, error.args[1]))
        raise Invalid(f"{field}: these actions {of_several}: {path}.") from error


def write_actions(
    plan_pk: int,
    proposed: Sequence[ProposedAction],
    derived_from: Action | None = None,
    excluded: Mapping[UUID, Match] = NONE,
) -> None:
    """Write the rows of a sound graph; the action that they are derived from waits for all of them.

    What others of them will derive waits for these instead. What rules exclude is skipped from the beginning, with all
    that it was to derive. The number of statements does not grow with the graph, but for one more each `BATCH` rows,
    and for each time that what is derived derives others again.
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
            row.exclude(match.rule.key, match.rule.words)
        elif origin is not None and origin.state == Action.State.SKIPPED:
            row.skip_automatically(NEVER_DERIVED)


def generations(proposed: Sequence[ProposedAction]) -> Iterator[list[UUID]]:
    """Give the actions that none of these derives, then those that these derive, and so on."""
    by_origin = defaultdict(list)
    for action in proposed:
        by_origin[action.derived_from].append(action.uuid)
    found = by_origin[None]
    while found:
        yield found
        found = [uuid for origin in found for uuid in by_origin[origin]]


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
