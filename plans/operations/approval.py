"""The approval of a plan by another user than the one who starts it, with the setting `PLAN_APPROVAL`.

Each function locks the row of the plan, as skips and restores do. The start is guarded by the approval that it read
(`ActionPlan.launch`): of a concurrent start and withdrawal, only one succeeds.
"""

from django.db import transaction
from django.utils import timezone

from plans.models import ActionPlan
from plans.models.refusals import PlanOperation, require_plan_allowing
from watcher_site.history import record


def approve_plan(plan: ActionPlan, by: str) -> None:
    """Approve the start of a RECOMMENDED plan by other users.

    Args:
        by: the name of the user who approves it.

    Raises:
        NotFound: the plan was deleted.
        Conflict: the plan is not RECOMMENDED or already approved, or the site requires no approvals.
    """
    write_approval(PlanOperation.APPROVE, plan, by)


def withdraw_approval(plan: ActionPlan) -> None:
    """Withdraw the approval of a plan before it starts.

    Raises:
        NotFound: the plan was deleted.
        Conflict: the plan is not RECOMMENDED or not approved, or the site requires no approvals.
    """
    write_approval(PlanOperation.WITHDRAW_APPROVAL, plan, None)


@transaction.atomic
def write_approval(operation: PlanOperation, plan: ActionPlan, by: str | None) -> None:
    current = ActionPlan.objects.locked().find(plan.uuid)
    require_plan_allowing(operation, current)
    now = timezone.now()
    values = {"approved_by": by, "approved_at": now if by is not None else None}
    # An update of the queryset writes the notifications, too.
    ActionPlan.objects.filter(pk=plan.pk).update(**values, updated_at=now)
    record(f"action_plan.{operation}", plan)
