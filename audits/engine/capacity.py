"""The audit of the goal capacity that the site runs for PENDING servers.

See docs/strategies.md, "Capacity for servers that wait".
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from actions.models import Action
from audits.models import Audit, Goal
from audits.operations.changes import trigger_audit
from audits.operations.creation import create_audit
from cluster.drivers.scheduler import find_host, read_free_capacities
from cluster.models import Server, ServerWait
from plans.models import ActionPlan
from watcher_site.refusals import Refused

log = structlog.get_logger(__name__)

GOAL, STRATEGY = "capacity", "make_room"
# The types of actions that end the wait of a server.
RESET_STATE = "reset_state"
ENDS = ("rebuild", RESET_STATE)
# The time after a failed or cancelled audit of the site before another one is created.
PAUSE = timedelta(minutes=10)


def on_server_pending(**_: object) -> None:
    """Request the audit. Errors are only logged, because a later poll finds the servers, too."""
    try:
        request_capacity_audit()
    except (DatabaseError, Refused):
        log.exception("capacity audit could not run")


@transaction.atomic
def request_capacity_audit() -> bool:
    """Schedule the audit that finds capacity for waiting servers if a search is due, and return whether it will run.

    There is at most one audit with one pending run, for any number of waiting servers and concurrent callers.
    """
    if not (settings.USE_PENDING_STATE and settings.MAKE_ROOM):
        return False
    if not Server.objects.waiting().exists() and not ServerWait.objects.exists():
        return False
    # The lock serializes concurrent calls, so that a later call finds the run that this one requests.
    goal = Goal.objects.present().filter(name=GOAL).select_for_update(no_key=True).first()
    if goal is None:
        return False
    now = timezone.now()
    ServerWait.objects.update_waits(now)
    due = find_due(now)
    audit = find_audit(goal) if due else None
    if audit is None or has_run_ahead(audit):
        return False
    for wait in due:
        wait.record_search(now)
    ServerWait.objects.bulk_update(due, ["searches", "next_search", "had_host"])
    trigger_audit(audit)
    log.info("capacity audit requested", audit=str(audit.uuid))
    return True


@dataclass(frozen=True)
class Answer:
    """The planned action for a PENDING server, and its unfinished plan."""

    action_type: str
    plan: UUID
    plan_state: str
    plan_name: str | None


def planned_answers() -> dict[str, Answer]:
    """Return the planned action of each PENDING server in its newest plan that has not failed, by UUID, with one
    query."""
    ends = Action.objects.present().filter(action_plan__in=open_plans(), action_type__in=ENDS)
    ends = ends.exclude(state__in=[Action.State.FAILED, Action.State.CANCELLED]).order_by("pk")
    plan = ("action_plan__uuid", "action_plan__state", "action_plan__audit__name")
    columns = ("input_parameters__resource_id", "action_type", *plan)
    return {server: Answer(*answer) for server, *answer in ends.values_list(*columns)}


def open_plans() -> QuerySet[ActionPlan]:
    states = [ActionPlan.State.RECOMMENDED, ActionPlan.State.PENDING, *ActionPlan.RUNNING]
    plans: QuerySet[ActionPlan] = ActionPlan.objects.present().filter(strategy__name=STRATEGY, state__in=states)
    return plans.order_by()


def find_due(now: datetime) -> list[ServerWait]:
    """Return the waiting servers for which a search is due, with six queries.

    Servers that an open plan builds are omitted, and no search is due while a plan is about to begin. For the other
    servers, the pauses between searches grow. If a host has gained capacity since the last search, the pause ends, and
    RECOMMENDED plans that reset the server are ignored.
    """
    if open_plans().filter(state=ActionPlan.State.PENDING).exists():
        return []
    served = planned_answers()
    waits = list(ServerWait.objects.current().select_related("server"))
    waits_to_search = [wait for wait in waits if may_need_search(served.get(str(wait.server.uuid)))]
    candidates = read_free_capacities() if waits_to_search else []
    due, changed = [], []
    for wait in waits_to_search:
        has_host = find_host(wait.server, candidates) is not None
        is_new = has_host and not wait.had_host
        if wait.had_host != has_host:
            wait.had_host = has_host
            changed.append(wait)
        is_time = wait.next_search is None or wait.next_search <= now
        if is_new or (is_time and (has_host or str(wait.server.uuid) not in served)):
            due.append(wait)
    ServerWait.objects.bulk_update([wait for wait in changed if not wait.had_host], ["had_host"])
    return due


def may_need_search(answer: Answer | None) -> bool:
    """Return whether a server may need another search despite the newest open plan for it."""
    is_unstarted = answer is not None and answer.plan_state == ActionPlan.State.RECOMMENDED
    return answer is None or (is_unstarted and answer.action_type == RESET_STATE)


def has_run_ahead(audit: Audit) -> bool:
    """Return whether a run is in progress or scheduled, which will include all servers that are PENDING now."""
    return audit.state == Audit.State.ONGOING or audit.planned_run is not None


def find_audit(goal: Goal) -> Audit | None:
    """Return the audit of the whole site, which is created if missing, or None if it failed recently."""
    audits = Audit.objects.present().filter(goal=goal, audit_type=Audit.Type.EVENT, strategy__name=STRATEGY, scope=[])
    audit: Audit | None = audits.exclude(state__in=Audit.DELETABLE - {Audit.State.SUCCEEDED}).order_by("pk").first()
    if audit or audits.filter(updated_at__gt=timezone.now() - PAUSE).exists():
        return audit
    return create_audit(
        audit_type=Audit.Type.EVENT, goal=GOAL, strategy=STRATEGY, auto_trigger=settings.MAKE_ROOM_AUTO_TRIGGER
    )
