"""The suspension of a running action, on a person's request."""

from collections.abc import Callable

from django.db import transaction

from actions.engine.phases import Result
from actions.engine.storage import StoredPhases
from actions.models import Action

Signal = Action.Signal


class Suspension(StoredPhases):
    """Writes the suspension of an action. Each method returns whether its signal was still set."""

    def begin_to_wait(self) -> bool:
        return self.honour(Signal.SUSPEND, self.action.suspend)

    def go_on(self) -> bool:
        return self.honour(Signal.RESUME, self.action.resume)

    @transaction.atomic
    def honour(self, signal: Action.Signal, transition: Callable[[], None]) -> bool:
        """Do what a signal asks for. Who gives another one holds the plan as well, and comes before this or after."""
        standing = self.lease.look(self.action) if self.lease.hold(has_begun=True).rows() else None
        if standing is None or standing.control != signal:
            return False
        phase = self.begin(signal.lower())
        self.finish(phase, Result.SUCCESS)
        transition()
        self.write(phase)
        self.log.info("action signalled", signal=signal, state=self.action.state)
        return True
