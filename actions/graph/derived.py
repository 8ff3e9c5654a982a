"""Actions that another one is to derive are skipped with it, and restored with it, before their plan begins."""

from collections.abc import Sequence

from actions.graph.propagation import end_with
from actions.models import Action
from actions.models.refusals import origin_skipped

State = Action.State


def skip_planned(origins: Sequence[Action]) -> int:
    """Skip what these actions, which were skipped, were to derive, and return how many that are.

    What a person skipped before stays as it is. As for the others here the caller holds the plan's row.
    """
    if not (keys := deriving(origins)):
        return 0
    return Action.objects.planned_by(keys).end_as(*end_with(origins[0].uuid, State.SKIPPED))


def restore_planned(origins: Sequence[Action]) -> int:
    """Restore what was skipped with these actions, and return how many that are."""
    if not (keys := deriving(origins)):
        return 0
    return Action.objects.planned_by(keys, State.SKIPPED).restore()


def deriving(actions: Sequence[Action]) -> list[int]:
    return [action.pk for action in actions if action.is_to_derive]


def require_pending_origins(actions: Sequence[Action]) -> None:
    """Refuse to restore actions while the ones that are to derive them are skipped.

    Raises:
        Conflict: the message names both.
    """
    planned = [action.pk for action in actions if action.is_planned]
    orphaned = Action.objects.filter(pk__in=planned, derived_from__state=State.SKIPPED).select_related("derived_from")
    for action in orphaned.order_by("pk")[:1] if planned else ():
        raise origin_skipped(action)
