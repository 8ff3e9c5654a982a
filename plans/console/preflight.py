"""The page with the preflight of a plan."""

from collections.abc import Mapping
from typing import Any

import django_tables2 as tables
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django_tables2 import RequestConfig
from django_tables2.data import TableListData

from actions.console.tables import cell_attributes, render_linked_type, render_resource
from actions.event_details import sees_details
from actions.models import Action
from plans.console.pruning.listing import ACTIONS_PER_PAGE
from plans.models import ActionPlan
from plans.models.preflight_results import OUTCOMES, UNKNOWN, PreflightResult
from plans.models.refusals import PLAN_POLICIES, PlanOperation
from plans.preflight import Prospect
from plans.preflight_storage import Prospects, find_result, store_result
from watcher_site.console.columns import TABLE_ATTRIBUTES, StateColumn
from watcher_site.console.naming import name_objects
from watcher_site.console.pages import RecordPage
from watcher_site.messages import translate_message
from watcher_site.refusals import Conflict

# The labels of the outcomes other than success, the worst first.
OUTCOME_LABELS = {
    "FAILED": _("would fail"),
    "CANCELLED": _("would be cancelled"),
    "SKIPPED": _("would be skipped"),
    UNKNOWN: _("cannot be predicted"),
}


class PreflightTable(tables.Table):
    """The actions that would not succeed, in the order of the plan, with the reasons."""

    outcome = StateColumn(verbose_name=_("outcome"), orderable=False, attrs=cell_attributes("state-cell"))
    action_type = tables.Column(
        accessor="action", verbose_name=_("type"), orderable=False, attrs=cell_attributes("type")
    )
    resource = tables.Column(accessor="action", orderable=False, attrs=cell_attributes("resource"))

    class Meta:
        attrs = {"class": f"{TABLE_ATTRIBUTES['class']} actions"}

    def render_action_type(self, value: Action) -> SafeString:
        return render_linked_type(value)

    def render_resource(self, value: Action, record: Prospect) -> SafeString:
        return format_html(
            '{}<div class="message said">{}</div>',
            render_resource(value),
            name_objects(translate_message(record.predicted_message), value.known_names),
        )


class PreflightPage(RecordPage):
    model = ActionPlan
    permission_required = ("plans.view_actionplan", "actions.view_action")
    policy = PLAN_POLICIES[PlanOperation.PREFLIGHT]
    template_name = "plans/preflight.html"
    part_template = "plans/_verdict.html"
    found: PreflightResult

    def get_template_names(self) -> list[str]:
        """Return the template of the verdict for the dialog that starts the plan."""
        return [self.part_template if getattr(self.request, "htmx", False) else self.template_name]

    def get_queryset(self) -> QuerySet[ActionPlan]:
        return super().get_queryset().with_names()

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Store a new result after the read-only transaction that read the plan and the cloud."""
        response = super().dispatch(request, *args, **kwargs)
        if hasattr(self, "found"):
            store_result(self.found)
        return response

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Remove the stored result, so that the redirected page computes a new one."""
        plan = self.get_object()
        plan.preflight_results.all().delete()
        return redirect("plans:preflight", plan.uuid)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.object = plan = self.get_object()
        try:
            self.found = find_result(plan, details=sees_details(request.user))
        except Conflict as refusal:
            if getattr(request, "htmx", False):
                return HttpResponse(status=refusal.status)
            messages.error(request, translate_message(str(refusal)))
            return redirect("plans:detail", plan.uuid)
        return self.render_to_response(self.get_context_data(object=plan))

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        found, only, counts = self.found, chosen_outcome(self.request), self.found.counts
        return super().get_context_data(
            plan=self.object,
            found=found,
            only=only,
            total=found.total,
            counts={outcome: count for outcome, count in counts.items() if count},
            verdict=describe_verdict(counts),
            ended=sum(found.ended.values()),
            table=preflight_table(self.request, found, only),
            **context,
        )


def describe_verdict(counts: Mapping[str, int]) -> str:
    """Return the numbers of outcomes other than success as text, such as "2 would fail, 1 would be skipped"."""
    return ", ".join(
        f"{number_format(counts[outcome])} {label}" for outcome, label in OUTCOME_LABELS.items() if counts[outcome]
    )


def chosen_outcome(request: HttpRequest) -> str:
    """Return the outcome by which the table is filtered, or an empty text."""
    outcome = request.GET.get("outcome", "")
    return outcome if outcome in map(str, OUTCOMES) else ""


def preflight_table(request: HttpRequest, found: PreflightResult, only: str) -> PreflightTable:
    table = PreflightTable(TableListData(Prospects(found.select(only))))
    return RequestConfig(request, paginate={"per_page": ACTIONS_PER_PAGE}).configure(table)
