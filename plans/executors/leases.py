"""An applier's right to work at one plan, as each worker carries it."""

from dataclasses import dataclass

from actions.engine.leases import CurrentState
from actions.models import Action
from plans.models import ActionPlan
from watcher_site.database.queries import Bound, Placeholder, Query
from watcher_site.models import Service

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
    """The lease on the actions of a plan. Its fields can be sent to another process; both checks read the tables."""

    plan: int
    applier: int
    host: str
    worker: int | None = None
    """The service that does the work, where that is not the applier itself."""
    request_id: str = ""
    """The id of the request that started the plan, for logs and for the cloud; empty if none did."""

    @classmethod
    def of(cls, plan: ActionPlan, applier: Service) -> "PlanLease":
        """Return the lease for work in the applier's own process."""
        return cls(plan.pk, applier.pk, applier.host, request_id=plan.request_id)

    @property
    def owner(self) -> int:
        return self.applier if self.worker is None else self.worker

    def hold(self, has_begun: bool) -> Bound:
        """Return the query that locks the plan, and finds it only while it is ONGOING and this applier's.

        What has not begun must wait while the plan is suspended or its window closed. What says when it began has said
        so before: whatever the statement waits for, that lies within the window. What a worker has in hand is guarded
        by its owner, whichever applier has the plan meanwhile.
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
        """Return whether an action may be executed here.

        An action that a worker owns stays there if the applier changes.
        """
        if owner is not None and owner != self.owner:
            return False
        return applier == self.applier or (self.worker is not None and owner == self.worker)
