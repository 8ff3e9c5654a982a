"""The intervals in which a plan was suspended, as history records the signals to it."""

from datetime import datetime

from actions.console.intervals import Interval, Kind
from actions.models import Action
from plans.models import ActionPlan
from watcher_site.models import HistoryEntry

Signal = Action.Signal


def pauses_of(plan: ActionPlan, now: datetime) -> list[Interval]:
    """Return the pauses of a plan since its start, in the order of time, with at most one query.

    Pauses whose history events were removed are omitted.
    """
    if not (plan.signals and plan.start_time):
        return []
    signals = HistoryEntry.objects.filter(
        object_uuid=plan.uuid, deed="action_plan.signal", outcome=HistoryEntry.Outcome.SUCCESS
    )
    found: list[Interval] = []
    since: datetime | None = None
    for moment, details in signals.order_by("pk").values_list("created_at", "details"):
        signal = details.get("signal")
        if signal == Signal.SUSPEND:
            since = since or max(moment, plan.start_time)
        elif signal == Signal.RESUME and since:
            found.append(Interval(Kind.SUSPENDED, since, max(moment, since)))
            since = None
    if since:
        found.append(Interval(Kind.SUSPENDED, since, plan.end_time or now, is_open=plan.is_suspended))
    return found
