"""Signals to actions, for the API, the console and the commands: CANCEL, SUSPEND and RESUME.

See docs/compatibility.md, "Signals". A signal locks the row of the plan, and then of the action, so that a worker
begins an action, or processes an earlier signal, either before or after it. An action that ends does not wait for
these locks: the signal is then discarded.
"""

from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from actions.graph.propagation import end_dependents, find_bound_actions
from actions.messages import CANCELLED_BY_USER, REQUESTED_BY
from actions.models import Action, ActionEvent
from actions.models.refusals import Operation, is_allowed, is_repeated_signal, require_allowed, withdraws_signal
from actions.operations.skipping import lock_action
from watcher_site.history import record
from watcher_site.messages import cut

State, Signal = Action.State, Action.Signal


@transaction.atomic
def signal_action(uuid: UUID | str, signal: Action.Signal, by: str) -> Action:
    """Send a signal to an action, and return the changed action.

    An action that is just beginning or ending reads the signal.

    Args:
        by: the name of the user.

    Raises:
        NotFound: there is no such action.
        Conflict: its state does not allow it.
    """
    plan = lock_action(uuid).action_plan
    action: Action = Action.objects.select_for_update(no_key=True).get(uuid=uuid)
    action.action_plan = plan
    if is_repeated_signal(signal, action):
        return action
    require_allowed(Operation(signal), action)
    write_signal(action, signal, by)
    if signal == Signal.RESUME and action.derived_from_id:
        plan.actions.restart_timeouts(timezone.now())
    plan.notify_applier()
    record("action.signal", action, within=plan, details={"signal": signal})
    return action


def signal_actions(actions: QuerySet[Action], signal: Action.Signal, by: str) -> int:
    """Suspend or resume the actions that allow it, and return their number.

    The caller holds the rows of their plans. The number of statements does not depend on the number of actions, whose
    plans are loaded.
    """
    candidates = actions.filter(Q(state__in=Action.BEGUN) | Q(control__isnull=False))
    signalled = [
        candidate
        for candidate in candidates.select_for_update(no_key=True).order_by("pk")
        if is_allowed(Operation(signal), candidate)
    ]
    for action in signalled:
        change_control(action, signal, by)
    for control in {action.control for action in signalled}:
        same = [action.pk for action in signalled if action.control == control]
        Action.objects.filter(pk__in=same).update(control=control, updated_at=timezone.now())
    ActionEvent.objects.bulk_create(event_of(action, signal, by) for action in signalled)
    return len(signalled)


def write_signal(action: Action, signal: Action.Signal, by: str) -> None:
    """Write the signal or the resulting state of the action, and the resulting changes of other actions."""
    change_control(action, signal, by)
    action.save_state(event_of(action, signal, by))
    if action.state == State.CANCELLED:
        end_dependents(action, find_bound_actions(action))
    if signal == Signal.CANCEL and action.has_derived:
        cancel_derived(action, by)


def cancel_derived(action: Action, by: str) -> None:
    """Cancel the derived actions of an action: unstarted ones in a constant number of statements."""
    unfinished = action.derived.unfinished().select_for_update(no_key=True).order_by("pk")
    cancellable = [child for child in unfinished if is_allowed(Operation.CANCEL, child)]
    untouched = {
        child.pk: child
        for child in cancellable
        if child.state == State.PENDING and not (child.has_derived or child.has_planned)
    }
    Action.objects.filter(pk__in=untouched).pending().end_as(State.CANCELLED, cancelled_by(by))
    ActionEvent.objects.bulk_create(event_of(child, Signal.CANCEL, by) for child in untouched.values())
    for child in cancellable:
        if child.pk not in untouched:
            write_signal(child, Signal.CANCEL, by)


def change_control(action: Action, signal: Action.Signal, by: str) -> None:
    if action.state == State.PENDING and signal == Signal.CANCEL and action.has_derived:
        action.abort_waiting()
    elif action.state == State.PENDING and signal == Signal.CANCEL:
        action.cancel(cancelled_by(by))
    else:
        action.control = None if withdraws_signal(signal, action) else signal


def cancelled_by(by: str) -> str:
    return CANCELLED_BY_USER.fill(user=by)


def event_of(action: Action, signal: Action.Signal, by: str) -> ActionEvent:
    now = timezone.now()
    return ActionEvent(
        action=action,
        event=f"signal_{signal.lower()}",
        attempt=action.attempt,
        start_time=now,
        finish_time=now,
        result=ActionEvent.Result.SUCCESS,
        details=cut(REQUESTED_BY.fill(user=by)),
    )
