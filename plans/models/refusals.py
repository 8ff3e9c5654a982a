"""The operations of users on action plans: the permission for each, and the states in which a plan allows it.

The API, the console and the commands call `is_plan_allowing`. Races are decided by the guarded writes of
`StatefulModel.save_state`, and by locks of the row of the plan.
"""

from enum import StrEnum
from typing import Any

from django.conf import settings

from plans.messages import (
    ALREADY_APPROVED,
    NO_APPROVAL,
    NOT_APPROVABLE,
    NOT_APPROVED,
    NOT_CONTINUABLE,
    NOT_WITHDRAWABLE,
    NOTHING_BEGINS,
    NOTHING_TO_BEGIN,
    START_TIME_FIXED,
    UNEXPECTED_STATE,
)
from plans.models.action_plans import ActionPlan
from watcher_site.authorization.enforcement import target_of
from watcher_site.authorization.permissions import may
from watcher_site.refusals import Conflict

State = ActionPlan.State


class PlanOperation(StrEnum):
    START = "start"
    SCHEDULE = "schedule"
    SET_START_TIME = "set_start_time"
    PREFLIGHT = "preflight"
    SKIP_ACTIONS = "skip_actions"
    CHOOSE_ON_FAILURE = "choose_on_failure"
    SIGNAL_ACTIONS = "signal_actions"
    SUSPEND = "suspend"
    RESUME = "resume"
    CANCEL = "cancel"
    CONTINUE = "continue"
    DELETE = "delete"
    APPROVE = "approve"
    WITHDRAW_APPROVAL = "withdraw_approval"


PLAN_PERMISSIONS = {
    PlanOperation.START: "plans.start_actionplan",
    PlanOperation.SCHEDULE: "plans.start_actionplan",
    PlanOperation.SET_START_TIME: "plans.start_actionplan",
    PlanOperation.PREFLIGHT: "actions.view_action",
    PlanOperation.SKIP_ACTIONS: "actions.skip_action",
    PlanOperation.CHOOSE_ON_FAILURE: "plans.change_actionplan",
    PlanOperation.SIGNAL_ACTIONS: "actions.signal_action",
    PlanOperation.SUSPEND: "actions.signal_action",
    PlanOperation.RESUME: "actions.signal_action",
    PlanOperation.CANCEL: "plans.cancel_actionplan",
    PlanOperation.CONTINUE: "plans.continue_actionplan",
    PlanOperation.DELETE: "plans.delete_actionplan",
    PlanOperation.APPROVE: "plans.approve_actionplan",
    PlanOperation.WITHDRAW_APPROVAL: "plans.approve_actionplan",
}
# The policies of operations that share a permission with other operations.
PLAN_POLICIES = {
    PlanOperation.SCHEDULE: "action_plan:schedule",
    PlanOperation.PREFLIGHT: "action_plan:preflight",
    PlanOperation.SKIP_ACTIONS: "action_plan:skip",
    PlanOperation.SIGNAL_ACTIONS: "action:signal",
    PlanOperation.SUSPEND: "action_plan:signal",
    PlanOperation.RESUME: "action_plan:signal",
    PlanOperation.WITHDRAW_APPROVAL: "action_plan:withdraw_approval",
}
PLAN_STATES = {
    PlanOperation.START: frozenset({State.RECOMMENDED}),
    PlanOperation.SCHEDULE: ActionPlan.SCHEDULABLE,
    PlanOperation.SET_START_TIME: ActionPlan.PRUNABLE,
    PlanOperation.PREFLIGHT: ActionPlan.SCHEDULABLE,
    PlanOperation.SKIP_ACTIONS: ActionPlan.PRUNABLE,
    PlanOperation.CHOOSE_ON_FAILURE: ActionPlan.PRUNABLE,
    PlanOperation.SIGNAL_ACTIONS: ActionPlan.RUNNING,
    PlanOperation.SUSPEND: ActionPlan.SUSPENDABLE,
    PlanOperation.RESUME: ActionPlan.SUSPENDABLE,
    PlanOperation.CANCEL: ActionPlan.CANCELLABLE,
    PlanOperation.CONTINUE: ActionPlan.CONTINUABLE,
    PlanOperation.DELETE: ActionPlan.DELETABLE,
    PlanOperation.APPROVE: frozenset({State.RECOMMENDED}),
    PlanOperation.WITHDRAW_APPROVAL: frozenset({State.RECOMMENDED}),
}
MESSAGES = {
    PlanOperation.SCHEDULE: NOTHING_TO_BEGIN,
    PlanOperation.SET_START_TIME: START_TIME_FIXED,
    PlanOperation.PREFLIGHT: NOTHING_BEGINS,
    PlanOperation.SUSPEND: UNEXPECTED_STATE,
    PlanOperation.RESUME: UNEXPECTED_STATE,
    PlanOperation.CANCEL: UNEXPECTED_STATE,
    PlanOperation.CONTINUE: NOT_CONTINUABLE,
    PlanOperation.APPROVE: NOT_APPROVABLE,
    PlanOperation.WITHDRAW_APPROVAL: NOT_WITHDRAWABLE,
}
# Only plans without an approval can be approved, and only approved plans can lose their approval.
REQUIRES_APPROVED = {PlanOperation.APPROVE: False, PlanOperation.WITHDRAW_APPROVAL: True}
APPROVAL_MESSAGES = {
    PlanOperation.APPROVE: ALREADY_APPROVED,
    PlanOperation.WITHDRAW_APPROVAL: NOT_APPROVED,
}


def is_plan_allowing(operation: PlanOperation, plan: ActionPlan, user: Any = None) -> bool:
    """Return whether a plan allows an operation, and whether this user, if one is given, has the permission."""
    if operation in REQUIRES_APPROVED and (
        not settings.PLAN_APPROVAL or plan.is_approved != REQUIRES_APPROVED[operation]
    ):
        return False
    is_permitted = user is None or may(
        user, PLAN_PERMISSIONS[operation], target_of(plan), PLAN_POLICIES.get(operation, "")
    )
    return is_permitted and plan.state in PLAN_STATES[operation]


def lacks_approval(plan: ActionPlan, user: str) -> bool:
    """Return whether this user cannot start a recommended plan, because no other user has approved it."""
    is_startable = plan.state in PLAN_STATES[PlanOperation.START]
    return settings.PLAN_APPROVAL and is_startable and not plan.is_approved_for(user)


def require_plan_allowing(operation: PlanOperation, plan: ActionPlan) -> None:
    """Raise `Conflict` if a plan does not allow an operation, which must be one of `MESSAGES`."""
    if not is_plan_allowing(operation, plan):
        raise plan_conflict(operation, plan)


def plan_conflict(operation: PlanOperation, plan: ActionPlan) -> Conflict:
    """Return the exception for an operation that a plan does not allow."""
    if operation in REQUIRES_APPROVED and not settings.PLAN_APPROVAL:
        return Conflict(NO_APPROVAL.text)
    if operation in REQUIRES_APPROVED and plan.state in PLAN_STATES[operation]:
        return Conflict(APPROVAL_MESSAGES[operation].fill(uuid=plan.uuid, approved_by=plan.approved_by))
    states = ", ".join(state for state in State if state in PLAN_STATES[operation])
    return Conflict(MESSAGES[operation].fill(uuid=plan.uuid, state=plan.state, states=states))
