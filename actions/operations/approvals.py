"""Withdrawal of the approvals of plans whose actions change, so that they require another approval."""

from collections.abc import Collection
from typing import Any

from django.utils import timezone

from actions.models.plan_states import PlanState
from watcher_site.history import record_many


def withdraw_approvals(plans: Collection[Any], reason: str) -> int:
    """Withdraw the approvals of the RECOMMENDED plans among these, whose rows are locked, and return their number.

    Plans without an approval take no query.

    Args:
        reason: the message for history.
    """
    approved = [plan for plan in plans if plan.is_approved and plan.state == PlanState.RECOMMENDED]
    if not approved:
        return 0
    rows = type(approved[0]).objects.filter(pk__in=[plan.pk for plan in approved])
    rows.update(approved_by=None, approved_at=None, updated_at=timezone.now())
    record_many("action_plan.withdraw_approval", approved, message=reason)
    return len(approved)
