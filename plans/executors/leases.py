"""The lease of an applier on the actions of one plan, as workers receive it."""

from dataclasses import dataclass

from actions.engine.leases import CurrentState
from actions.models import Action
from plans.models import ActionPlan
from watcher_site.database.queries import Bound, Placeholder, Query
from watcher_site.models import Service
from watcher_site.monitoring.tracing import TRACEPARENT

PLAN = ActionPlan.objects.locked().filter(pk=Placeholder("plan"), state=ActionPlan.State.ONGOING)
OURS = PLAN.filter(applier=Placeholder("applier"))
ONGOING = Query(PLAN.values_list("pk"))
HELD = Query(OURS.values_list("pk"))
OPEN = Query(OURS.open().values_list("pk"))
ACTION_ROW = Query(
    Action.objects.present()
    .filter(pk=Placeholder("action"))
    .values_list("state", "attempt", "control", "action_plan__state", "action_plan__applier", "owner")
)


@dataclass(frozen=True)
class PlanLease:
    """The lease on the actions of a plan. Its fields can be sent to another process; the checks query the tables."""

    plan: int
    applier: int
    host: str
    worker: int | None = None
    """The service that executes the action, if it is not the applier itself."""
    request_id: str = ""
    """The id of the request that started the plan, for logs and requests to the cloud; empty without a request."""
    plan_uuid: str = ""
    """The UUID of the plan, for traces."""
    traceparent: str = ""
    """The span of the request or audit that started the plan; empty if it was not traced."""

    @classmethod
    def of(cls, plan: ActionPlan, applier: Service) -> "PlanLease":
        """Return the lease for the threads of the applier's own process."""
        caller = plan.caller
        return cls(
            plan.pk,
            applier.pk,
            applier.host,
            request_id=caller.get("request_id") or "",
            plan_uuid=str(plan.uuid),
            traceparent=caller.get(TRACEPARENT) or "",
        )

    @property
    def owner(self) -> int:
        return self.applier if self.worker is None else self.worker

    def hold(self, has_begun: bool) -> Bound:
        """Return the query that locks the plan if an action of it may begin or continue under this lease.

        An action that has not begun requires a plan that is ONGOING, owned by this applier, not suspended, and within
        its window. The time of its beginning is set before this query waits for a lock, so it lies within the window.
        An action that a worker owns may continue under another applier of the plan: its owner guards it.
        """
        if has_begun and self.worker is not None:
            return ONGOING.bind(plan=self.plan)
        if has_begun:
            return self.hold_plan()
        return OPEN.bind(plan=self.plan, applier=self.applier)

    def hold_plan(self) -> Bound:
        return HELD.bind(plan=self.plan, applier=self.applier)

    def look(self, action: Action) -> CurrentState | None:
        for state, attempt, control, plan_state, applier, owner in ACTION_ROW.rows(action=action.pk):
            return CurrentState(
                state=state,
                attempt=attempt,
                control=control,
                is_held=plan_state in ActionPlan.RUNNING and self.is_ours(applier, owner),
                is_being_cancelled=plan_state == ActionPlan.State.CANCELLING,
            )
        return None

    def is_ours(self, applier: int | None, owner: int | None) -> bool:
        """Return whether the holder of this lease may execute an action, given the applier and the owner in its row.

        An action that a worker owns remains with that worker if the applier of its plan changes.
        """
        if owner is not None and owner != self.owner:
            return False
        return applier == self.applier or (self.worker is not None and owner == self.worker)
