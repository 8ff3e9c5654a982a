"""Signals to an action that arrive between its checkpoints."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from actions.engine.checkpoints import Checkpoint
from actions.engine.phases import Result
from actions.engine.storage import StoredPhases
from actions.messages import CANCELLED_WITH_PLAN, GAVE_ITSELF_UP_BECAUSE
from actions.models import Action, ActionEvent
from watcher_site.state_machine import ConcurrentTransition

State, Signal = Action.State, Action.Signal
CANCELLED = CANCELLED_WITH_PLAN.text


class Signalled(StoredPhases, ABC):
    """The part of an execution that processes users' signals."""

    checkpoint: Checkpoint

    def reload_action(self) -> Action:
        """Replace the action by its current row, which may have a new signal.

        Raises:
            ConcurrentTransition: another process has made another change to the row.
        """
        action = Action.objects.get(pk=self.action.pk)
        if action.values_read != self.action.values_read:
            raise ConcurrentTransition(f"Action {action.uuid} is no longer as this worker left it.")
        action.outputs, action.fault = self.action.outputs, self.action.fault
        self.action = self.checkpoint.action = action
        return action

    def unless_signalled(self, execute: ActionEvent, release: Callable[[ActionEvent], bool]) -> bool:
        """Release the action. If a signal arrives meanwhile, CANCEL takes effect at once, and SUSPEND is kept.

        If its plan is cancelled meanwhile, the action is cancelled.

        Raises:
            ConcurrentTransition: another worker owns it.
        """
        while True:
            control = self.action.control
            try:
                return release(execute)
            except ConcurrentTransition:
                self.reload_action()
                current = self.lease.look(self.action)
                if current is None or not current.is_held:
                    raise
                if current.is_being_cancelled or self.action.control == Signal.CANCEL:
                    return self.cancel_instead(execute)
                if self.action.control == control:
                    raise

    @abstractmethod
    def cancel_instead(self, execute: ActionEvent) -> bool:
        """Cancel the action instead of releasing it."""

    def resume_for_recovery(self) -> None:
        """Resume a suspended action without an owner, even if it will be cancelled.

        Its recovery determines its state in the cloud first. Only the worker that executed it could have aborted it.
        """
        is_cancelled = self.action.control == Signal.CANCEL
        if self.action.control != Signal.RESUME and not self.is_being_cancelled():
            raise ConcurrentTransition(f"Action {self.action.uuid} stays suspended.")
        self.action.resume()
        if is_cancelled:
            self.action.control = Signal.CANCEL

    def stay_suspended(self, guards: Mapping[str, Any]) -> bool:
        """Suspend an action whose worker was lost before it processed the signal. The action is recovered later."""
        phase = self.begin("suspend")
        self.finish(phase, Result.SUCCESS)
        self.action.suspend()
        self.action.owner = None
        return self.write(phase, guards=guards)

    def is_being_cancelled(self) -> bool:
        return self.action.control == Signal.CANCEL or self.is_plan_being_cancelled()

    def is_plan_being_cancelled(self) -> bool:
        current = self.lease.look(self.action)
        return current is not None and current.is_being_cancelled

    def cancel(self) -> None:
        """Cancel an action that has nothing to undo."""
        self.action.request_abort()
        self.action.finish_abort(self.cancellation_message())

    def cancellation_message(self) -> str:
        """Return the status message of an action that was cancelled by itself or with its plan."""
        signal = self.action.events.filter(event=f"signal_{Signal.CANCEL.lower()}").last()
        return GAVE_ITSELF_UP_BECAUSE.fill(reason=signal.details) if signal else CANCELLED

    def find_timeout_reason(self) -> str | None:
        """Return the reason if the action is aborted because it waited too long for its derived actions, or None."""
        timeout = self.action.events.filter(event="timeout").last() if self.action.has_derived else None
        return timeout.details if timeout else None

    def count_attempts(self) -> int:
        """Return the number of recoveries of the action since a user last resumed it."""
        resumed = self.action.events.filter(event=f"signal_{Signal.RESUME.lower()}").last()
        since = resumed.pk if resumed else 0
        return self.action.events.filter(event__in=["recover", "abort"], pk__gt=since).count()
