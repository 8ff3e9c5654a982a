"""Checkpoints, at which a running action is suspended or stopped."""

import time
from collections.abc import Callable
from math import inf

import structlog
from django.conf import settings
from django.db import connection, transaction

from actions.engine.leases import NO_SLOT, CurrentState, Lease, Slot
from actions.engine.phases import Result
from actions.engine.storage import StoredPhases
from actions.models import Action
from actions.types.base import AbortRequested, LeaseLost, TimedOut
from watcher_site.processes.worker import LOST_DATABASE

State, Signal = Action.State, Action.Signal
log = structlog.get_logger(__name__)


class Checkpoint:
    """The checkpoint of an action, which reads its row at most once per `settings.POLL_INTERVAL` seconds.

    While the database does not respond, the action continues until another applier may have taken over its plan.
    """

    def __init__(self, action: Action, lease: Lease, slot: Slot = NO_SLOT) -> None:
        self.action, self.lease, self.slot = action, lease, slot
        self.is_interruptible = False
        """Whether the current phase can be aborted and time out. Other phases stop only for a lost lease."""
        self.deadline = inf
        self.record_contact()

    def record_contact(self) -> None:
        """Record that this worker still owned the action when its row was read."""
        self.last_contact = time.monotonic()
        self.next_check = self.last_contact + settings.POLL_INTERVAL

    def begin(self) -> None:
        """Start the timeout of the action, which has just begun. A signal from before that takes effect at once."""
        self.slot.begin(self.action.attempt)
        self.record_contact()
        self.deadline = self.last_contact + self.action.seconds_allowed
        if self.action.control:
            self.next_check = self.last_contact

    def __call__(self) -> None:
        """Return at once, or if the action is suspended, when it is resumed.

        Raises:
            LeaseLost, AbortRequested, TimedOut: the action must stop.
        """
        if time.monotonic() >= self.next_check:
            self.check()
        if self.is_interruptible and time.monotonic() > self.deadline:
            raise TimedOut

    def check(self) -> None:
        """Read the action's row, and suspend the action if that was requested."""
        current = self.read_row()
        if current and current.control == Signal.SUSPEND and current.state == State.ONGOING and self.is_interruptible:
            self.suspend()

    def read_row(self) -> CurrentState | None:
        """Read the action's row, or return None if the database does not respond.

        Raises:
            LeaseLost, AbortRequested: the action must stop.
        """
        self.next_check = time.monotonic() + settings.POLL_INTERVAL
        try:
            current = self.lease.look(self.action)
        except LOST_DATABASE as problem:
            self.continue_without_database(problem)
            return None
        self.record_contact()
        self.require_current(current)
        return current

    def continue_without_database(self, problem: BaseException) -> None:
        log.warning("checkpoint does not see the database", action=str(self.action.uuid), problem=str(problem))
        connection.close_if_unusable_or_obsolete()
        if time.monotonic() - self.last_contact > settings.SERVICE_DOWN_TIME:
            raise LeaseLost from problem

    def require_current(self, current: CurrentState | None) -> None:
        if current is None or not current.is_held or not self.is_ours(current):
            raise LeaseLost
        if self.is_interruptible and (current.is_being_cancelled or current.control == Signal.CANCEL):
            raise AbortRequested

    def suspend(self) -> None:
        """Suspend the action and wait until it is resumed. This time does not count towards its timeout."""
        suspension, began = Suspension(self.action, self.lease), time.monotonic()
        if not suspension.suspend():
            return
        with self.slot.vacated():
            while not (self.is_resumed() and suspension.resume()):
                self.slot.wait(settings.POLL_INTERVAL)
        self.record_contact()
        self.deadline += time.monotonic() - began

    def is_resumed(self) -> bool:
        current = self.read_row()
        return current is not None and current.control == Signal.RESUME

    def is_ours(self, current: CurrentState) -> bool:
        """Return whether the action's row is unchanged. Another worker may have failed or restarted the action."""
        values = self.action.values_read
        return (current.state, current.attempt) == (values["state"], values["attempt"])


class Suspension(StoredPhases):
    """Writes the suspension and the resumption of an action. Both methods return whether the signal was still set."""

    def suspend(self) -> bool:
        return self.apply_signal(Signal.SUSPEND, self.action.suspend)

    def resume(self) -> bool:
        return self.apply_signal(Signal.RESUME, self.action.resume)

    @transaction.atomic
    def apply_signal(self, signal: Action.Signal, transition: Callable[[], None]) -> bool:
        """Apply a signal. The plan is locked, as by the operation that gives another signal."""
        current = self.lease.look(self.action) if self.lease.hold(has_begun=True).rows() else None
        if current is None or current.control != signal:
            return False
        phase = self.begin(signal.lower())
        self.finish(phase, Result.SUCCESS)
        transition()
        self.write(phase)
        self.log.info("action signalled", signal=signal, state=self.action.state)
        return True
