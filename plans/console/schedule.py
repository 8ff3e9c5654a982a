"""The console's form of when a plan is to begin: it starts a plan, or changes the schedule of one that was started."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from plans.console.forms import ScheduleForm
from plans.console.views import ActionPlanVerb
from plans.models import ActionPlan
from plans.models.refusals import PLAN_PERMISSIONS, PLAN_STATES, PlanOperation, is_plan_allowing
from plans.planning.scheduling import schedule, started_in_words
from watcher_site.console.pages import perform_and_tell
from watcher_site.console.resumable_forms import KeepsForm
from watcher_site.request_context import caller_of


class Schedule(KeepsForm, ActionPlanVerb):
    permission_required = PLAN_PERMISSIONS[PlanOperation.SCHEDULE]
    verb = "schedule the action plan"
    question = "When is it to begin?"
    possible_in = PLAN_STATES[PlanOperation.SCHEDULE]

    def ask(self, record: ActionPlan) -> HttpResponse:
        return self.show(record, ScheduleForm(record, self.kept()))

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        plan = self.get_object()
        self.form = ScheduleForm(plan, request.POST)
        if not self.form.is_valid():
            return self.show(plan, self.form)
        return redirect(self.where_to(plan, perform_and_tell(self, plan)))

    def perform(self, record: ActionPlan) -> str:
        starts = is_plan_allowing(PlanOperation.START, record)
        scheduled = schedule(record, self.form.cleaned_data["wishes"], start=starts, caller=caller_of(self.request))
        if starts:
            return started_in_words(scheduled)
        return "Saved. What has begun is left to finish." if scheduled.state in scheduled.RUNNING else "Saved."

    def show(self, plan: ActionPlan, form: ScheduleForm) -> HttpResponse:
        return render(self.request, "plans/schedule.html", {"plan": plan, "form": form})
