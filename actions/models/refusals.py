"""The operations of users on actions: the permission for each, and the reasons for which an action refuses one.

The API, the console, the commands and the operations on several actions all call `find_refusals`. The guarded writes
of `StatefulModel.save_state` and the locks of the plan's row decide races.
"""

from collections.abc import Iterator
from enum import Enum, StrEnum
from typing import Any

from django.conf import settings

from actions import messages
from actions.messages import (
    ACTION_REFUSED,
    APPROVED_AND_STARTED,
    BEING_CANCELLED,
    NOT_RESTORED_ALONE,
    NOT_SKIPPED_BY_USER,
    PLAN_STATE_FORBIDS,
    REASON_OF_SKIPPED_ONLY,
    STATUS_FORBIDS,
)
from actions.models.actions import Action, may_be_restored
from actions.models.plan_states import PlanState
from actions.models.statuses import status_expression
from watcher_site.authorization.enforcement import target_of
from watcher_site.authorization.permissions import may
from watcher_site.refusals import Conflict

State, Signal = Action.State, Action.Signal


class Operation(StrEnum):
    SKIP = "skip"
    CHANGE_REASON = "change_reason"
    RESTORE = "restore"
    CHANGE_DEPENDENCIES = "change_dependencies"
    CANCEL = Signal.CANCEL
    SUSPEND = Signal.SUSPEND
    RESUME = Signal.RESUME


class Refusal(Enum):
    """The reason why an action does not allow an operation."""

    ACTION_STATE = "the state of the action"
    ORIGIN_SKIPPED = "the action that will derive it is skipped"
    SKIPPED_AUTOMATICALLY = "it was skipped automatically"
    BEING_CANCELLED = "it is being cancelled"
    PLAN_STATE = "the state of its plan"
    PLAN_APPROVED = "its plan was approved and started"


SIGNALS = frozenset({Operation.CANCEL, Operation.SUSPEND, Operation.RESUME})
PERMISSIONS = {
    Operation.SKIP: "actions.skip_action",
    Operation.CHANGE_REASON: "actions.skip_action",
    Operation.RESTORE: "actions.skip_action",
    Operation.CHANGE_DEPENDENCIES: "actions.change_action",
    **dict.fromkeys(SIGNALS, "actions.signal_action"),
}
STATES = {
    Operation.SKIP: {State.PENDING},
    Operation.CHANGE_REASON: {State.SKIPPED},
    Operation.RESTORE: {State.SKIPPED},
    Operation.CHANGE_DEPENDENCIES: set(State),
    Operation.CANCEL: {State.PENDING, State.ONGOING, State.SUSPENDED},
    Operation.SUSPEND: {State.ONGOING},
    Operation.RESUME: {State.SUSPENDED},
}
# Allowed until the plan begins.
BEFORE_THE_PLAN = frozenset({Operation.SKIP, Operation.RESTORE, Operation.CHANGE_DEPENDENCIES})
# The approval of a plan that has been started does not cover these changes, and can no longer be withdrawn.
NOT_APPROVED = frozenset({Operation.RESTORE, Operation.CHANGE_DEPENDENCIES})
# Until the action processes one of these signals, the other one withdraws it.
OPPOSITES: dict[str, Action.Signal] = {Operation.SUSPEND: Signal.RESUME, Operation.RESUME: Signal.SUSPEND}
# The statuses in which a signal is allowed, for messages.
STATUSES = {
    Operation.CANCEL: ("INIT", "READY", "WAITING", "RUNNING", "SUSPENDED"),
    Operation.SUSPEND: ("RUNNING",),
    Operation.RESUME: ("SUSPENDED",),
}


class WrongActionState(Conflict):
    """The state of an action does not allow the requested transition."""

    def __init__(self, action: Action, target_state: str) -> None:
        self.action, self.target_state = action, target_state
        super().__init__(messages.TRANSITION_NOT_ALLOWED.fill(state=action.state, target=target_state))

    def as_before_suspension(self) -> Conflict:
        """Return the refusal for clients that were written before actions could be SUSPENDED."""
        state = State.ONGOING if self.action.state == State.SUSPENDED else self.action.state
        return Conflict(messages.TRANSITION_NOT_ALLOWED.fill(state=state, target=self.target_state))


def find_refusals(operation: Operation, action: Action, is_alone: bool = True) -> Iterator[Refusal]:
    """Yield the reasons why an action, in its current state, does not allow an operation; none if it does.

    The most important reason comes first. The action should be loaded with its plan, and for RESTORE with the action
    that will derive it; otherwise these are queried.

    Args:
        is_alone: whether no other action is restored with it, such as the one that will derive it.
    """
    if operation in SIGNALS:
        yield from find_signal_refusals(operation, action)
        return
    is_before_plan = action.action_plan.is_prunable
    if action.state not in STATES[operation]:
        yield Refusal.ACTION_STATE
    elif operation == Operation.RESTORE:
        if is_alone and is_before_plan and action.is_origin_skipped:
            yield Refusal.ORIGIN_SKIPPED
        if not may_be_restored(action):
            yield Refusal.SKIPPED_AUTOMATICALLY
    if operation in BEFORE_THE_PLAN and not is_before_plan:
        yield Refusal.PLAN_STATE
    if operation in NOT_APPROVED and is_started_with_approval(action.action_plan):
        yield Refusal.PLAN_APPROVED


def is_started_with_approval(plan: Any) -> bool:
    return bool(settings.PLAN_APPROVAL and plan.state == PlanState.PENDING and plan.is_approved)


def find_signal_refusals(signal: Operation, action: Action) -> Iterator[Refusal]:
    continues = signal != Operation.CANCEL and action.state not in Action.FINAL
    if continues and (action.control == Signal.CANCEL or action.action_plan.state == PlanState.CANCELLING):
        yield Refusal.BEING_CANCELLED
    is_possible = action.state in STATES[signal] or withdraws_signal(signal, action)
    if action.control == Signal.CANCEL or is_repeated_signal(signal, action) or not is_possible:
        yield Refusal.ACTION_STATE


def is_allowed(operation: Operation, action: Action, user: Any = None) -> bool:
    """Return whether an action allows an operation, and whether the user, if given, has the permission."""
    is_permitted = user is None or may(user, PERMISSIONS[operation], target_of(action))
    return is_permitted and next(find_refusals(operation, action), None) is None


def allowed_signals(action: Action, user: Any = None) -> list[Action.Signal]:
    """Return the signals that an action allows and that this user may send, CANCEL last."""
    order = (Signal.SUSPEND, Signal.RESUME, Signal.CANCEL)
    return [signal for signal in order if is_allowed(Operation(signal), action, user)]


def require_allowed(operation: Operation, action: Action, is_alone: bool = True) -> None:
    """Raise `Conflict`, with the message of the API, if an action does not allow an operation.

    The message names the action if the operation affects several actions.
    """
    refusal = next(find_refusals(operation, action, is_alone), None)
    if refusal is not None:
        conflict = conflict_of(refusal, operation, action)
        raise conflict if is_alone else Conflict(ACTION_REFUSED.fill(uuid=action.uuid, problem=conflict))


def conflict_of(refusal: Refusal, operation: Operation, action: Action) -> Conflict:
    """Return the exception for a refusal, with the message of the API."""
    if refusal is Refusal.BEING_CANCELLED:
        return Conflict(BEING_CANCELLED.fill(uuid=action.uuid))
    if refusal is Refusal.ORIGIN_SKIPPED:
        return origin_skipped(action)
    if refusal is Refusal.SKIPPED_AUTOMATICALLY:
        return Conflict(NOT_SKIPPED_BY_USER.text)
    if refusal is Refusal.PLAN_APPROVED:
        return Conflict(APPROVED_AND_STARTED.fill(uuid=action.action_plan.uuid))
    if refusal is Refusal.PLAN_STATE:
        field = "depends_on" if operation == Operation.CHANGE_DEPENDENCIES else "State"
        return Conflict(PLAN_STATE_FORBIDS.fill(field=field, state=action.action_plan.state))
    if operation == Operation.CHANGE_REASON:
        return Conflict(REASON_OF_SKIPPED_ONLY.text)
    if operation in SIGNALS:
        status = Action.objects.filter(pk=action.pk).values_list(status_expression(), flat=True).get()
        return Conflict(STATUS_FORBIDS.fill(uuid=action.uuid, status=status, statuses=", ".join(STATUSES[operation])))
    return WrongActionState(action, State.SKIPPED if operation == Operation.SKIP else State.PENDING)


def origin_skipped(action: Action) -> Conflict:
    origin = action.derived_from
    return Conflict(NOT_RESTORED_ALONE.fill(uuid=action.uuid, origin=origin and origin.uuid))


def is_repeated_signal(signal: Operation | Action.Signal, action: Action) -> bool:
    """Return whether the action has already received this signal, so that repeating it has no effect."""
    return action.control == signal or (signal == Signal.CANCEL and action.state == State.CANCELLING)


def withdraws_signal(signal: Operation | Action.Signal, action: Action) -> bool:
    """Return whether a signal withdraws the action's pending signal."""
    return action.control is not None and action.control == OPPOSITES.get(signal)
