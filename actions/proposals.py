"""Actions to be: how they come into the tables, whole and sound, or not at all."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any
from uuid import UUID, uuid4

from actions.models import Action, ActionParent
from watcher_site.refusals import Invalid

# Rows an INSERT: few statements for a large plan, and none too large for the database.
BATCH = 5000


@dataclass(frozen=True)
class ProposedAction:
    """An action to be: its parents are others that are proposed with it, which must finish before it starts."""

    action_type: str
    input_parameters: Mapping[str, Any]
    parents: Sequence[UUID] = ()
    uuid: UUID = field(default_factory=uuid4)
    timeout: int | None = None
    """How many seconds one execution may take; None or 0 for the site's default."""
    name: str = ""
    """Made of the type and the UUID, where it is empty."""


def check_graph(actions: Sequence[ProposedAction]) -> None:
    """Raise `Invalid` unless every parent is one of these actions, and none waits for itself."""
    uuid, times = next(iter(Counter(action.uuid for action in actions).most_common(1)), (None, 0))
    if times > 1:
        raise Invalid(f"actions: {uuid} stands there {times} times.")
    known = {action.uuid for action in actions}
    for action in actions:
        if strays := [parent for parent in action.parents if parent not in known]:
            raise Invalid(f"parents: {strays[0]}, parent of action {action.uuid}, is no action of the plan.")
    check_cycles({action.uuid: action.parents for action in actions})


def check_cycles(parents: Mapping[UUID, Iterable[UUID]], field: str = "parents") -> None:
    """Raise `Invalid`, naming them, if some of these actions wait for each other, or one for itself."""
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = list(dict.fromkeys(error.args[1]))
        if len(cycle) == 1:
            raise Invalid(f"{field}: action {cycle[0]} waits for itself.") from error
        path = " -> ".join(map(str, error.args[1]))
        raise Invalid(f"{field}: these actions wait for each other: {path}.") from error


def write_actions(plan_pk: int, proposed: Sequence[ProposedAction], derived_from: Action | None = None) -> None:
    """Write the rows of a sound graph; the action that they are derived from waits for all of them.

    The number of statements does not grow with the graph, but for one more each `BATCH` rows.
    """
    rows = {action.uuid: make_row(plan_pk, action, derived_from) for action in proposed}
    Action.objects.bulk_create(rows.values(), batch_size=BATCH)
    edges = [
        ActionParent(child=rows[action.uuid], parent=rows[parent])
        for action in proposed
        for parent in dict.fromkeys(action.parents)
    ]
    if derived_from:
        edges += [ActionParent(child=derived_from, parent=row) for row in rows.values()]
    ActionParent.objects.bulk_create(edges, batch_size=BATCH)


def make_row(plan_pk: int, action: ProposedAction, derived_from: Action | None) -> Action:
    return Action(
        action_plan_id=plan_pk,
        uuid=action.uuid,
        name=action.name,
        action_type=action.action_type,
        input_parameters=dict(action.input_parameters),
        timeout=action.timeout,
        derived_from=derived_from,
    )
