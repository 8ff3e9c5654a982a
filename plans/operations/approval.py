"""The approval of a plan by another user than the one who starts it, with the setting `PLAN_APPROVAL`.

Each function locks the row of the plan, as skips and restores do. The start is guarded by the approval that it read
(`ActionPlan.launch`): of a concurrent start and withdrawal, only one succeeds.
"""

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2s

from django.db import transaction
from django.utils import timezone

from actions.models import Action
from plans.messages import ACTIONS_CHANGED
from plans.models import ActionPlan
from plans.models.refusals import PlanOperation, require_plan_allowing
from watcher_site.history import record
from watcher_site.refusals import Conflict


def version_of_actions(changes: Mapping[str, tuple[int, datetime | None]]) -> str:
    """Return the version of the actions that will run, which changes with each skip, restore and new dependency.

    Args:
        changes: the ``latest_changes`` of the actions of the plan.
    """
    return blake2s(repr(changes.get(Action.State.PENDING)).encode(), digest_size=16).hexdigest()


def approve_plan(plan: ActionPlan, by: str, shown: str | None = None) -> None:
    """Approve the start of a RECOMMENDED plan by other users.

    Args:
        by: the name of the user who approves it.
        shown: the `version_of_actions` that this user saw, if it is known.

    Raises:
        NotFound: the plan was deleted.
        Conflict: the plan is not RECOMMENDED or already approved, the site requires no approvals, or the actions
            have changed since they were shown.
    """
    write_approval(PlanOperation.APPROVE, plan, by, shown)


def withdraw_approval(plan: ActionPlan) -> None:
    """Withdraw the approval of a plan before it starts.

    Raises:
        NotFound: the plan was deleted.
        Conflict: the plan is not RECOMMENDED or not approved, or the site requires no approvals.
    """
    write_approval(PlanOperation.WITHDRAW_APPROVAL, plan, None)


@transaction.atomic
def write_approval(operation: PlanOperation, plan: ActionPlan, by: str | None, shown: str | None = None) -> None:
    current = ActionPlan.objects.locked().find(plan.uuid)
    require_plan_allowing(operation, current)
    # Skips, restores and changes of dependencies lock the same row.
    if shown is not None and shown != version_of_actions(current.actions.all().latest_changes()):
        raise Conflict(ACTIONS_CHANGED.fill(uuid=plan.uuid))
    now = timezone.now()
    values = {"approved_by": by, "approved_at": now if by is not None else None}
    # An update of the queryset writes the notifications, too.
    ActionPlan.objects.filter(pk=plan.pk).update(**values, updated_at=now)
    record(f"action_plan.{operation}", plan)
