"""The selection of actions in a form: by check boxes, by one button, or all that match the filters."""

from collections import Counter
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import QueryDict

from actions.console.tables import BOXES
from actions.console.views import ActionFilters
from actions.models import Action
from actions.models.querysets import ActionQuerySet
from actions.models.refusals import Operation
from actions.operations.skipping import Matching, fingerprint
from plans.console.pruning.filters import PlanActionFilters
from plans.models import ActionPlan
from watcher_site.database.records import parse_uuid

SHOWN = 20


@dataclass(frozen=True)
class Selection:
    """The selection of a form for one operation, from the actions of one plan or of all plans.

    Fields of the form: the check boxes have the names in `BOXES`. ``only`` is the button beside one action, which
    overrides the check boxes. ``all`` is the button for all actions that match the filters in ``place``. ``confirmed``
    is the fingerprint of the matching actions that the user confirmed.
    """

    operation: Operation
    plan: ActionPlan | None
    sent: QueryDict
    user: Any

    @property
    def is_matching(self) -> bool:
        return "all" in self.sent

    @property
    def uuids(self) -> list[UUID]:
        """Return the UUIDs of the selected actions, without invalid values."""
        only = self.sent.get("only")
        names = [only] if only else self.sent.getlist(BOXES[self.operation])
        return [uuid for uuid in map(parse_uuid, map(str, names)) if uuid]

    def __bool__(self) -> bool:
        return self.is_matching or bool(self.uuids)

    @property
    def place(self) -> QueryDict:
        return QueryDict(self.sent.get("place", ""))

    @property
    def query(self) -> ActionQuerySet:
        """Return the actions that match the filters and allow the operation."""
        if self.plan:
            return actions_open_to(PlanActionFilters(self.place, self.plan, self.user).qs, self.operation)
        filters = ActionFilters(self.place, Action.objects.prunable())
        return actions_open_to(filters.qs if filters.is_valid() else Action.objects.none(), self.operation)

    @property
    def named(self) -> ActionQuerySet:
        """Return the actions that the form selects by UUID, in any state."""
        actions = self.plan.actions.present() if self.plan else Action.objects.present()
        return actions.filter(uuid__in=self.uuids).order_by("pk")

    @property
    def selected(self) -> list[UUID] | Matching:
        """Return the selection in the format of the operations on actions."""
        return Matching(self.query, self.sent.get("confirmed", "")) if self.is_matching else self.uuids

    def list_uuids(self, most: int) -> list[UUID]:
        """Return the UUIDs of at most so many of the selected actions."""
        return (
            list(self.query.order_by("pk").values_list("uuid", flat=True)[:most]) if self.is_matching else self.uuids
        )

    def summarize(self) -> dict[str, Any]:
        """Return the context of the dialog for all matching actions: their number by type, and the first ones."""
        is_possible = self.plan is None or self.plan.is_prunable
        found = list(self.query.order_by("pk").values_list("pk", "action_type", "action_plan")) if is_possible else []
        keys = [key for key, _, _ in found]
        return {
            "number": len(keys),
            "plans": len({plan for _, _, plan in found}),
            "types": Counter(action_type for _, action_type, _ in found).most_common(),
            "actions": list(Action.objects.filter(pk__in=keys[:SHOWN]).order_by("pk")),
            "more": max(len(keys) - SHOWN, 0),
            "confirmed": fingerprint(keys),
        }


def actions_open_to(actions: ActionQuerySet, operation: Operation) -> ActionQuerySet:
    return actions.pending() if operation == Operation.SKIP else actions.restorable()
