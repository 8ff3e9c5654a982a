"""What a worker makes of the signals to an action that it does not find at its checkpoint."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from actions.checkpoints import Checkpoint
from actions.models import Action, ActionEvent
from actions.phases import PhaseRecord, Result
from watcher_site.state import ConcurrentTransition

State, Signal = Action.State, Action.Signal
CANCELLED = "Action was cancelled with its action plan."
GAVE_ITSELF_UP = "Action execution cancelled."


class Signalled(PhaseRecord, ABC):
    """One action in the hands of one worker, as far as people have a word in it."""

    checkpoint: Checkpoint

    @property
    def no_other_signal(self) -> Mapping[str, Any]:
        """What must still stand in the table, so that no signal is overwritten which this worker has not seen."""
        return {"control": self.action.control}

    def read_again(self) -> Action:
        """Take the action as it is in the table, with a signal that came meanwhile.

        Raises:
            ConcurrentTransition: it is no longer as this worker left it.
        """
        action = Action.objects.get(pk=self.action.pk)
        if action.values_read != self.action.values_read:
            raise ConcurrentTransition(f"Action {action.uuid} is no longer as this worker left it.")
        action.outputs, action.fault = self.action.outputs, self.action.fault
        self.action = self.phase.action = self.checkpoint.action = action
        return action

    def unless_signalled(self, execute: ActionEvent, let_go: Callable[[ActionEvent], bool]) -> bool:
        """Let go of the action; of the signals that came in the last moment it honours CANCEL, and keeps SUSPEND.

        So it does where its plan was cancelled in that moment.

        Raises:
            ConcurrentTransition: it is no longer ours to let go of.
        """
        while True:
            seen = self.action.control
            try:
                return let_go(execute)
            except ConcurrentTransition:
                self.read_again()
                standing = self.lease.look(self.action)
                if standing is None or not standing.is_held:
                    raise
                if standing.is_being_cancelled or self.action.control == Signal.CANCEL:
                    return self.cancel_instead(execute)
                if self.action.control == seen:
                    raise

    @abstractmethod
    def cancel_instead(self, execute: ActionEvent) -> bool:
        """Cancel the action that was to be let go of."""

    def recall(self) -> None:
        """Have an action that is suspended in nobody's hands go on, as it was told, if only to its end.

        What is true of it is found out first: only the worker that executed it could have had it aborted.
        """
        is_cancelled = self.action.control == Signal.CANCEL
        if self.action.control != Signal.RESUME and not self.is_being_cancelled():
            raise ConcurrentTransition(f"Action {self.action.uuid} stays suspended.")
        self.action.resume()
        if is_cancelled:
            self.action.control = Signal.CANCEL

    def stay_suspended(self, guards: Mapping[str, Any]) -> bool:
        """Suspend an action whose worker was lost before it honoured the signal; it is asked later what is true."""
        phase = self.begin("suspend")
        self.finish(phase, Result.SUCCESS)
        self.action.suspend()
        self.action.owner = None
        return self.write(phase, guards=guards)

    def is_being_cancelled(self) -> bool:
        return self.action.control == Signal.CANCEL or self.is_plan_being_cancelled()

    def is_plan_being_cancelled(self) -> bool:
        standing = self.lease.look(self.action)
        return standing is not None and standing.is_being_cancelled

    def cancel(self) -> None:
        """End an action of which nothing has to be undone."""
        self.action.request_abort()
        self.action.finish_abort(self.why_cancelled())

    def why_cancelled(self) -> str:
        """Return what the message of an action says that somebody cancelled, alone or with its plan."""
        asked = self.action.events.filter(event=f"signal_{Signal.CANCEL.lower()}").last()
        return f"{GAVE_ITSELF_UP} {asked.details}" if asked else CANCELLED

    def why_late(self) -> str | None:
        """Return what is said of an action that is aborted because it waited too long for what it derived."""
        late = self.action.events.filter(event="timeout").last() if self.action.has_derived else None
        return late.details if late else None

    def tries(self) -> int:
        """Return how often the action was recovered since a person last had it go on."""
        resumed = self.action.events.filter(event=f"signal_{Signal.RESUME.lower()}").last()
        since = resumed.pk if resumed else 0
        return self.action.events.filter(event__in=["recover", "abort"], pk__gt=since).count()
