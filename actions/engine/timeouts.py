"""The end of actions that exceed their timeouts while they wait or hang (docs/architecture.md, "Timeouts")."""

from contextlib import suppress

from django.db import transaction

from actions.engine.execution import advise
from actions.engine.leases import Lease
from actions.engine.phases import Result
from actions.engine.storage import StoredPhases
from actions.messages import DID_NOT_STOP, LATE_ORIGIN, TOO_LONG
from actions.models import Action
from actions.operations.signals import cancel_derived
from watcher_site.database.queries import Bound
from watcher_site.monitoring.metrics import actions_given_up
from watcher_site.state_machine import ConcurrentTransition

State = Action.State


@transaction.atomic
def time_out(action: Action, lease: Lease) -> None:
    """Cancel the derived actions of an action. When they have ended, it is aborted and FAILED.

    A derived action that ends at the same time keeps its result.

    Raises:
        ConcurrentTransition: the action no longer waits, its timeout was extended, or the lease is lost.
    """
    record = StoredPhases(action, lease)
    phase, reason = record.begin("timeout"), TOO_LONG.fill(number=action.seconds_allowed)
    record.finish(phase, Result.ERROR, reason)
    action.abort_waiting()
    # The plan is locked before the other actions, as by signals to actions.
    record.write(phase, hold=True, guards={"waits_until": action.waits_until})
    cancel_derived(action, LATE_ORIGIN.fill(uuid=action.uuid, number=action.seconds_allowed))
    action.action_plan.notify_applier()
    record.log.error("action waited too long", seconds=action.seconds_allowed)


def fail_hung_action(action: Action, lease: Lease, *, attempt: int, has_begun: bool) -> Action | None:
    """Fail a hung action, or end its revert, and return its current row, or None if it was deleted.

    For a revert, only the event fails. Guards refuse later writes of the worker. Nothing changes if the worker ended
    the action first, or if another worker has taken it over.

    Args:
        attempt: the attempt of the worker.
        has_begun: whether it has begun to execute or to revert.
    """
    current = Action.objects.filter(pk=action.pk).first()
    if current is None or not is_held_by(current, lease, attempt, has_begun):
        return current
    with suppress(ConcurrentTransition):
        HungAction(current, lease).fail_or_end_revert()
        actions_given_up.labels(action.action_type).inc()
    return Action.objects.filter(pk=action.pk).first()


def is_held_by(action: Action, lease: Lease, attempt: int, has_begun: bool) -> bool:
    """Return whether a worker still executes this attempt of an action.

    An action that has not begun has no owner yet. One that had begun and is PENDING again was released.
    """
    is_ours = not has_begun if action.state == State.PENDING else action.owner_id == lease.owner
    return action.attempt == attempt and is_ours


class HungAction(StoredPhases):
    """An action whose worker did not stop it after its timeout."""

    @property
    def reason(self) -> str:
        """Return the reason for the failure, with operations of the worker that may be uncompleted."""
        reason = DID_NOT_STOP.fill(number=self.action.seconds_allowed)
        return ". ".join(filter(None, (reason, advise(self.action))))

    def fail_or_end_revert(self) -> None:
        self.revoke_ownership()
        if self.action.state == State.SUCCEEDED:
            self.end_revert()
        else:
            self.fail()

    def revoke_ownership(self) -> None:
        """Remove the owner, so that the worker begins no operation that is missing in the reason."""
        if self.action.owner_id is not None:
            self.action.owner = None
            self.action.save_state()

    def fail(self) -> None:
        reason = self.reason
        phase, waits = self.begin("timeout"), self.action.state == State.PENDING
        self.finish(phase, Result.ERROR, reason)
        if self.action.state == State.CANCELLING:
            self.action.fail_abort(reason)
        else:
            self.action.fail("pre_condition" if waits else "execute", reason)
        self.write(phase, hold=waits, orphans=True, abandons=True)

    def end_revert(self) -> None:
        phase = self.action.events.filter(event="revert", finish_time=None).last()
        if phase:
            self.finish(phase, Result.ERROR, self.reason)
            self.action.give_up_revert()
            self.write_beside(phase)

    def held(self) -> Bound:
        """Return the query that locks the plan, even if its actions may not begin."""
        return self.lease.hold_plan()
