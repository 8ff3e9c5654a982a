"""The timeout of actions that wait for derived actions (docs/architecture.md, "Timeouts")."""

from django.db import transaction

from actions.engine.leases import Lease
from actions.engine.outcomes import TOO_LONG
from actions.engine.phases import Result
from actions.engine.storage import StoredPhases
from actions.models import Action
from actions.operations.signals import cancel_derived


@transaction.atomic
def time_out(action: Action, lease: Lease) -> None:
    """Cancel what an action derived, and have it aborted when that has ended: then it is FAILED.

    What it derived and ends in this moment keeps its result.

    Raises:
        ConcurrentTransition: it waits no more, or may wait for longer; or its plan may not be worked at here and now.
    """
    record = StoredPhases(action, lease)
    phase, reason = record.begin("timeout"), TOO_LONG.format(action.seconds_allowed)
    record.finish(phase, Result.ERROR, reason)
    action.abort_waiting()
    # The plan is locked before all rows but this one, as for signals to actions.
    record.write(phase, hold=True, guards={"waits_until": action.waits_until})
    cancel_derived(action, f"action {action.uuid}, which took longer than {action.seconds_allowed} seconds")
    action.action_plan.note_signal()
    record.log.error("action waited too long", seconds=action.seconds_allowed)
