"""An applier gives up on an action whose worker does not come back from it."""

from contextlib import suppress

from actions.leases import Lease
from actions.models import Action
from actions.outcomes import TOO_LONG
from actions.phases import PhaseRecord, Result
from watcher_site.state import ConcurrentTransition
from watcher_site.statements import Bound


def give_up(action: Action, lease: Lease) -> Action | None:
    """Fail an action that takes longer than it may and does not stop, and return it as it is then, if it still is.

    What its worker still writes is refused, by the guards of the state that it knows. Where it was faster, it won.
    """
    standing = Action.objects.filter(pk=action.pk).first()
    with suppress(ConcurrentTransition):
        if standing and standing.state not in Action.FINAL:
            Surrender(standing, lease).fail()
    return Action.objects.filter(pk=action.pk).first()


class Surrender(PhaseRecord):
    def fail(self) -> None:
        reason = f"{TOO_LONG.format(self.action.seconds_allowed)}, and did not stop"
        phase, waits = self.begin("timeout"), self.action.state == Action.State.PENDING
        self.finish(phase, Result.ERROR, reason)
        if self.action.state == Action.State.CANCELLING:
            self.action.fail_abort(reason)
        else:
            self.action.fail("pre_condition" if waits else "execute", reason)
        self.write(phase, hold=waits, orphans=True)

    def held(self, beside: Bound | None = None) -> Bound:
        """Hold the plan also while nothing of it may begin: this begins nothing, and what hangs would hang again."""
        return self.lease.hold(has_begun=True)
