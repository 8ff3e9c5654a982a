"""The gauges of action plans and actions that have not ended.

Rows in final states are not counted, because the time of the query would grow with each ended plan. The counters of
state changes include them.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Min, OuterRef, Subquery
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone
from prometheus_client import Metric
from prometheus_client.registry import Collector

from actions.models import Action, ActionParent
from plans.models import ActionPlan
from watcher_site.monitoring.definitions import table_gauge

PLANS = table_gauge("watcher_action_plans", "Action plans that have not ended, by their state", "state")
WAITING_PLANS = table_gauge(
    "watcher_action_plans_waiting",
    "Started action plans that may begin now and that no applier has claimed",
)
OLDEST_PLAN = table_gauge(
    "watcher_action_plans_oldest_waiting_seconds", "Seconds since the oldest of these plans could begin; 0 without any"
)
ACTIONS = table_gauge("watcher_actions", "Actions that have not ended, by their state", "state")
READY_ACTIONS = table_gauge(
    "watcher_actions_ready", "Actions of running plans that may begin now and wait for a slot or a worker"
)
OLDEST_ACTION = table_gauge(
    "watcher_actions_oldest_ready_seconds", "Seconds since the oldest of these actions became ready; 0 without any"
)


def age(moment: datetime | None) -> float:
    """Return the seconds since a moment, or 0 without one."""
    return max(0.0, (timezone.now() - moment).total_seconds()) if moment else 0.0


def count_unfinished(model: Any) -> dict[tuple[str, ...], float]:
    """Return the number of rows in each state that is not final, in one query."""
    states = [state for state in model.State if state not in model.FINAL]
    rows = model.objects.present().filter(state__in=states).order_by().values_list("state").annotate(Count("pk"))
    found = dict(rows)
    return {(str(state),): found.get(state, 0) for state in states}


class PlanGauges(Collector):
    """The gauges of this app, in four queries."""

    def collect(self) -> Iterator[Metric]:
        yield PLANS.of(count_unfinished(ActionPlan))
        began = Greatest(Coalesce("updated_at", "created_at"), Coalesce("opens_at", "created_at"))
        plans = ActionPlan.objects.waiting().open().order_by()
        found = plans.aggregate(number=Count("pk"), since=Min(began))
        yield WAITING_PLANS.single(found["number"])
        yield OLDEST_PLAN.single(age(found["since"]))
        yield ACTIONS.of(count_unfinished(Action))
        yield from self.ready_actions()

    def ready_actions(self) -> Iterator[Metric]:
        plans = ActionPlan.objects.present().filter(state=ActionPlan.State.ONGOING).open()
        parents = ActionParent.objects.filter(child=OuterRef("pk")).order_by("-parent__updated_at")
        ready = Action.objects.ready().filter(action_plan__in=plans.values("pk")).order_by()
        since = Greatest(
            "created_at",
            Coalesce("due_time", "created_at"),
            Coalesce(F("action_plan__start_time"), "created_at"),
            Coalesce(F("action_plan__opens_at"), "created_at"),
            Coalesce(Subquery(parents.values("parent__updated_at")[:1]), "created_at"),
        )
        found = ready.annotate(since=since).aggregate(number=Count("pk"), oldest=Min("since"))
        yield READY_ACTIONS.single(found["number"])
        yield OLDEST_ACTION.single(age(found["oldest"]))
