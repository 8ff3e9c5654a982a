"""The console's buttons that have a whole plan wait, and go on."""

from typing import ClassVar

from actions.models import Action
from plans.console.views import ActionPlanVerb
from plans.models import ActionPlan
from plans.models.refusals import PLAN_PERMISSIONS, PlanOperation
from plans.operations.signals import signal_plan


class PlanSignalVerb(ActionPlanVerb):
    history_event = "action_plan.signal"
    permission_required = PLAN_PERMISSIONS[PlanOperation.SUSPEND]
    signal: ClassVar[Action.Signal]
    message: ClassVar[str]

    def perform(self, record: ActionPlan) -> str:
        signal_plan(record, self.signal, self.request.user.get_username())
        return self.message


class Suspend(PlanSignalVerb):
    signal = Action.Signal.SUSPEND
    verb = "suspend the action plan"
    message = "Suspended. Nothing more of it begins, and what runs waits at its next checkpoint."


class Resume(PlanSignalVerb):
    signal = Action.Signal.RESUME
    verb = "resume the action plan"
    message = "It goes on."
