"""Checkpoints, at which a running action is suspended, or stops if it may not continue."""

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
    """Asks the table at most once per `settings.POLL_INTERVAL` seconds: what is over sooner costs it nothing.

    While the table does not answer the action goes on, as long as its plan can not have been given to another applier.
    """

    def __init__(self, action: Action, lease: Lease, slot: Slot = NO_SLOT) -> None:
        self.action, self.lease, self.slot = action, lease, slot
        self.goes_forward = False
        """Whether what is at work can be aborted or take too long: other work stops for a lost lease alone."""
        self.deadline = inf
        self.note_seen()

    def note_seen(self) -> None:
        """The table was seen to be as this worker believes it."""
        self.last_seen = time.monotonic()
        self.next_look = self.last_seen + settings.POLL_INTERVAL

    def note_begun(self) -> None:
        """The action began while its plan was held; a signal from before that is honoured at once."""
        self.note_seen()
        if self.action.control:
            self.next_look = self.last_seen

    def __call__(self) -> None:
        """Return when the action may go on: at once, unless it is suspended.

        Raises:
            LeaseLost, AbortRequested, TimedOut: it may not.
        """
        if time.monotonic() >= self.next_look:
            self.look()
        if self.goes_forward and time.monotonic() > self.deadline:
            raise TimedOut

    def look(self) -> None:
        """Read the action's row, and suspend the action if that was requested."""
        current = self.see()
        if current and current.control == Signal.SUSPEND and current.state == State.ONGOING and self.goes_forward:
            self.suspend()

    def see(self) -> CurrentState | None:
        """Return what the table says, if it says anything, and stop what is to stop."""
        self.next_look = time.monotonic() + settings.POLL_INTERVAL
        try:
            current = self.lease.look(self.action)
        except LOST_DATABASE as problem:
            self.go_on_unseen(problem)
            return None
        self.note_seen()
        self.judge(current)
        return current

    def go_on_unseen(self, problem: BaseException) -> None:
        log.warning("checkpoint does not see the database", action=str(self.action.uuid), problem=str(problem))
        connection.close_if_unusable_or_obsolete()
        if time.monotonic() - self.last_seen > settings.SERVICE_DOWN_TIME:
            raise LeaseLost from problem

    def judge(self, current: CurrentState | None) -> None:
        if current is None or not current.is_held or not self.is_ours(current):
            raise LeaseLost
        if self.goes_forward and (current.is_being_cancelled or current.control == Signal.CANCEL):
            raise AbortRequested

    def suspend(self) -> None:
        """Wait until the action is to go on. The time is not counted."""
        suspension, began = Suspension(self.action, self.lease), time.monotonic()
        if not suspension.begin_to_wait():
            return
        with self.slot.vacated():
            while not (self.is_resumed() and suspension.go_on()):
                self.slot.wait(settings.POLL_INTERVAL)
        self.note_seen()
        self.deadline += time.monotonic() - began

    def is_resumed(self) -> bool:
        current = self.see()
        return current is not None and current.control == Signal.RESUME

    def is_ours(self, current: CurrentState) -> bool:
        """Return whether the action is as this worker left it. Another worker may have failed or restarted it."""
        known = self.action.values_read
        return (current.state, current.attempt) == (known["state"], known["attempt"])


class Suspension(StoredPhases):
    """Writes the suspension of an action. Each method returns whether its signal was still set."""

    def begin_to_wait(self) -> bool:
        return self.honour(Signal.SUSPEND, self.action.suspend)

    def go_on(self) -> bool:
        return self.honour(Signal.RESUME, self.action.resume)

    @transaction.atomic
    def honour(self, signal: Action.Signal, transition: Callable[[], None]) -> bool:
        """Do what a signal asks for. Who gives another one holds the plan as well, and comes before this or after."""
        current = self.lease.look(self.action) if self.lease.hold(has_begun=True).rows() else None
        if current is None or current.control != signal:
            return False
        phase = self.begin(signal.lower())
        self.finish(phase, Result.SUCCESS)
        transition()
        self.write(phase)
        self.log.info("action signalled", signal=signal, state=self.action.state)
        return True
