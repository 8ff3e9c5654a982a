"""The page for the schedule of a plan, which starts the plan or changes its schedule."""

from copy import copy
from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from plans.console.views import ActionPlanOperationView
from plans.models import ActionPlan
from plans.models.refusals import PLAN_PERMISSIONS, PLAN_POLICIES, PLAN_STATES, PlanOperation, is_plan_allowing
from plans.planning.scheduling import describe_start, schedule, set_schedule
from watcher_site.console.pages import perform_with_message
from watcher_site.console.resumable_forms import ResumableFormPage
from watcher_site.messages import translate_message
from watcher_site.refusals import Invalid
from watcher_site.request_context import caller_of
from watcher_site.windows import fields
from watcher_site.windows.fields import WindowFields, text_field
from watcher_site.windows.wall_clock import require_zone


class ScheduleForm(WindowFields):
    """The form of a schedule. ``changes`` of the cleaned data are for `plans.planning.scheduling.schedule`."""

    start_at = text_field("datetime-local", _("Start time"), _("Leave empty to start as soon as an applier is free."))

    field_order = ("start_at",)

    def __init__(self, plan: ActionPlan, data: Any = None) -> None:
        super().__init__(data, initial=schedule_values(plan))
        self.plan = plan
        if not is_plan_allowing(PlanOperation.SET_START_TIME, plan):
            del self.fields["start_at"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        changes: dict[str, Any] = {"zone": cleaned["zone"]} if "zone" in cleaned else {}
        start_at = cleaned.get("start_at") or None
        # In another time zone, the same local time is another time.
        if "start_at" in self.changed_data or (start_at and "zone" in self.changed_data):
            changes["start_at"] = start_at
        changes["window"] = self.window_of(cleaned)
        try:
            set_schedule(copy(self.plan), changes)
        except Invalid as refusal:
            self.add_refusal(translate_message(str(refusal)))
        return {**cleaned, "changes": changes}


def schedule_values(plan: ActionPlan) -> dict[str, Any]:
    """Return the values of the fields for the schedule of a plan."""
    begins = plan.start_at and plan.start_at.astimezone(ZoneInfo(require_zone(plan.zone)))
    start_at = f"{begins:%Y-%m-%dT%H:%M}" if begins else None
    # The time zone of a plan without a schedule was not chosen by a user: the default is that of the reader.
    is_scheduled = plan.start_at or plan.window
    zone = plan.zone if is_scheduled else timezone.get_current_timezone_name()
    return {**fields.window_values(plan.window, zone), "start_at": start_at}


class Schedule(ResumableFormPage, ActionPlanOperationView):
    permission_required = PLAN_PERMISSIONS[PlanOperation.SCHEDULE]
    policy = PLAN_POLICIES[PlanOperation.SCHEDULE]
    verb = _("schedule the action plan")
    question = _("Schedule the plan")
    possible_in = PLAN_STATES[PlanOperation.SCHEDULE]

    def render_confirmation(self, record: ActionPlan) -> HttpResponse:
        return self.show(record, ScheduleForm(record, self.resumed_data()))

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        plan = self.get_object()
        self.form = ScheduleForm(plan, request.POST)
        if not self.form.is_valid():
            return self.show(plan, self.form)
        return redirect(self.redirect_url(plan, perform_with_message(self, plan)))

    def perform(self, record: ActionPlan) -> str:
        starts = is_plan_allowing(PlanOperation.START, record)
        scheduled = schedule(record, self.form.cleaned_data["changes"], start=starts, caller=caller_of(self.request))
        if starts:
            return describe_start(scheduled)
        is_running = scheduled.state in scheduled.RUNNING
        return gettext("Schedule saved. Running actions finish.") if is_running else gettext("Schedule saved.")

    def show(self, plan: ActionPlan, form: ScheduleForm) -> HttpResponse:
        return render(self.request, "plans/schedule.html", {"plan": plan, "form": form})
