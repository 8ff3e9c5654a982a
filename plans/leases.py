"""An applier's right to work at one plan."""

from actions.types.base import AbortRequested, LeaseLost
from plans.models import ActionPlan
from watcher_site.models import Service
from watcher_site.statements import Bound, Placeholder, Query

HELD = Query(
    ActionPlan.objects.filter(pk=Placeholder("plan"), state=ActionPlan.State.ONGOING, applier=Placeholder("applier"))
    .select_for_update(no_key=True)
    .values_list("pk")
)


class PlanLease:
    """What each worker of a plan carries: the plan and its owner, and what the applier learned of both.

    The flags are set by the applier's main thread and read by the workers' checkpoints; the truth is in the table,
    and `hold` asks it.
    """

    def __init__(self, plan: ActionPlan, applier: Service) -> None:
        self.plan_pk, self.applier, self.host = plan.pk, applier, applier.host
        self.cancelling = plan.state == ActionPlan.State.CANCELLING
        self.lost = False

    def hold(self) -> Bound:
        """Return the query that locks the plan, and finds it only while it is running and this applier's."""
        return HELD.bind(plan=self.plan_pk, applier=self.applier.pk)

    def checkpoint(self) -> None:
        if self.lost:
            raise LeaseLost
        if self.cancelling:
            raise AbortRequested
