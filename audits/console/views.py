"""The pages of audits."""

import re
from typing import Any
from urllib.parse import urlencode

import django_filters
import django_tables2 as tables
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views import View
from django_htmx.http import replace_url

from audits.console.fields import describe_interval, describe_scope
from audits.console.forms import AuditForm
from audits.models import Audit
from audits.operations.creation import create_audit
from watcher_site.console.columns import (
    TABLE_ATTRIBUTES,
    CompareColumn,
    DueColumn,
    NameColumn,
    PhraseColumn,
    StateColumn,
    StoredMessageColumn,
    TimeColumn,
    make_choices,
)
from watcher_site.console.lists.filters import NameFilter
from watcher_site.console.pages import DeletionView, FollowedPage, ListPage, OperationView
from watcher_site.console.resumable_forms import ResumableFormPage
from watcher_site.console.schema_fields import PREFIX, is_parameter
from watcher_site.messages import Text, translate_message
from watcher_site.refusals import Refused

CREATED: dict[str, Text] = {
    Audit.Type.ONESHOT: _("Audit created. A decision engine will run it."),
    Audit.Type.CONTINUOUS: _("Audit created. A decision engine will run it on schedule."),
    Audit.Type.EVENT: _("Audit created. A decision engine will run it on each call of its webhook."),
}


class AuditFilters(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(
        label=_("State"), choices=make_choices(Audit.State.values), empty_label=_("any")
    )
    name = NameFilter()
    goal = django_filters.CharFilter(label=_("Goal"), field_name="goal__display_name", lookup_expr="icontains")
    strategy = django_filters.CharFilter(
        label=_("Strategy"), field_name="strategy__display_name", lookup_expr="icontains"
    )

    class Meta:
        model = Audit
        fields: list[str] = []


class AuditTable(tables.Table):
    compare = CompareColumn()
    state = StateColumn()
    name = NameColumn(linkify=("audits:detail", {"uuid": tables.A("uuid")}))
    audit_type = tables.Column(verbose_name=_("type"), attrs={"td": {"class": "text-nowrap"}})
    goal = PhraseColumn(accessor="goal__display_name", verbose_name=_("goal"))
    strategy = PhraseColumn(accessor="strategy__display_name", verbose_name=_("strategy"), default="—")
    next_run = DueColumn(accessor="planned_run", order_by="next_run_time", verbose_name=_("next run"), default="—")
    status_message = StoredMessageColumn(verbose_name=_("message"))
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"))

    class Meta:
        model = Audit
        sequence = ("...", "compare")
        fields = ("state", "name", "audit_type", "goal", "strategy", "next_run", "status_message", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_audit_type(self, record: Audit) -> str:
        """Return the value of the API."""
        return record.audit_type


class AuditList(ListPage):
    model = Audit
    permission_required = "audits.view_audit"
    table_class = AuditTable
    filterset_class = AuditFilters
    template_name = "audits/audit_list.html"
    heading = _("Audits")
    help_page = "concepts#audit"
    follows = True
    guidance = _("No audits yet. An audit examines the cloud and proposes an action plan.")

    def get_queryset(self) -> QuerySet[Audit]:
        return Audit.objects.present().select_related("goal", "strategy").order_by("-pk")


class AuditPage(FollowedPage):
    """An audit, with the plans that it proposed."""

    model = Audit
    permission_required = "audits.view_audit"

    template_name = "audits/audit_detail.html"
    part_template = "audits/_audit.html"

    def get_queryset(self) -> QuerySet[Audit]:
        return super().get_queryset().select_related("goal", "strategy")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        audit: Audit = self.object
        return super().get_context_data(
            plans=audit.action_plans.present().with_progress().select_related("strategy").order_by("-pk")[:20],
            moving=audit.state in {Audit.State.PENDING, Audit.State.ONGOING},
            may_delete=audit.state in audit.DELETABLE,
            may_suspend=audit.audit_type == Audit.Type.CONTINUOUS and audit.state == Audit.State.ONGOING,
            may_resume=audit.state == Audit.State.SUSPENDED,
            interval=describe_interval(audit),
            scope=describe_scope(audit.scope),
            webhook=self.request.build_absolute_uri(f"/v1/webhooks/{audit.uuid}"),
            **context,
        )


class NewAudit(ResumableFormPage, View):
    """The form of a new audit. For htmx, the fields that depend on the chosen goal and strategy."""

    permission_required = "audits.add_audit"
    history_event = "audit.create"
    http_method_names = ["get", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        data = self.resumed_data()
        # Links may set initial values in the query.
        form = AuditForm(data, url=request.path) if data else AuditForm(initial=request.GET.dict(), url=request.path)
        return render(request, "audits/audit_form.html", {"form": form})

    def post(self, request: HttpRequest) -> HttpResponse:
        if htmx := getattr(request, "htmx", None):
            form = redraw_form(request, str(htmx.source).rpartition("#id_")[2])
            response = render(request, "audits/_choices.html", {"form": form})
            # So that the form has these fields again after "back" in the browser.
            return replace_url(response, f"{request.path}?{urlencode(form.choices_made())}")
        form = AuditForm(request.POST, url=request.path)
        audit = self.create_or_refuse(form) if form.is_valid() else None
        if audit is None:
            return render(request, "audits/audit_form.html", {"form": form})
        messages.success(request, CREATED[audit.audit_type])
        return redirect("audits:detail", uuid=audit.uuid)

    def create_or_refuse(self, form: AuditForm) -> Audit | None:
        """Create the audit that the form describes, or add the refusal to the form and return None."""
        try:
            return create_audit_from_form(form)
        except Refused as refusal:
            self.record_problem(refusal, form.cleaned_data["name"])
            form.add_error(refused_field(form, str(refusal)), translate_message(str(refusal)))
            return None


def redraw_form(request: HttpRequest, trigger: str) -> AuditForm:
    """Return the form with the sent values, except parameters if the goal or the strategy was changed."""
    data = None if trigger in {"goal", "strategy"} else request.POST
    initial = {name: value for name, value in request.POST.items() if not is_parameter(name)}
    return AuditForm(initial=initial, url=request.path, drawn=data)


def create_audit_from_form(form: AuditForm) -> Audit:
    """Create the audit that the form describes. Raises: as `create_audit`."""
    values = form.cleaned_data
    return create_audit(
        audit_type=values["audit_type"],
        interval=values.get("interval"),
        start_time=values.get("start_time"),
        end_time=values.get("end_time"),
        goal=values["goal"].name,
        strategy=values["strategy"].name if values["strategy"] else None,
        name=values["name"] or None,
        parameters=values["parameters"],
        scope=values["scope"],
        auto_trigger=values["auto_trigger"],
        force=values["force"],
    )


def refused_field(form: AuditForm, refusal: str) -> str | None:
    """Return the name of the field or parameter that a refusal begins with, or None."""
    match = re.match(r"(?:Invalid parameters for strategy: )?([\w.]+)", refusal)
    path = match[1] if match else ""
    candidates = [path, f"{PREFIX}{path}", f"{PREFIX}{path.partition('.')[0]}"]
    return next((name for name in candidates if name in form.fields), None)


class AuditOperationView(OperationView):
    model = Audit

    def redirect_url(self, record: Audit, done: bool) -> str:
        return reverse("audits:detail", args=[record.uuid])


class Cancel(AuditOperationView):
    permission_required = "audits.change_audit"
    verb = _("cancel the audit")
    question = _("Cancel this audit?")
    possible_in = Audit.sources("cancel")
    consequence = _("The audit will propose no more action plans.")

    def perform(self, record: Audit) -> str:
        record.abandon()
        return gettext("Audit cancelled.")


class Suspend(AuditOperationView):
    permission_required = "audits.change_audit"
    verb = _("suspend the audit")
    question = _("Suspend this audit?")
    possible_in = Audit.sources("suspend")
    consequence = _("The audit does not run until it is resumed. The result of a run in progress is discarded.")

    def perform(self, record: Audit) -> str:
        record.suspend_series()
        return gettext("Audit suspended.")


class Resume(AuditOperationView):
    permission_required = "audits.change_audit"
    verb = _("resume the audit")
    question = _("Resume this audit?")
    possible_in = Audit.sources("resume")
    consequence = _("The audit runs again at its next scheduled time. Missed runs are skipped.")
    look = "primary"

    def perform(self, record: Audit) -> str:
        record.resume_series()
        return gettext("Audit resumed.")


class Delete(DeletionView, AuditOperationView):
    permission_required = "audits.delete_audit"
    verb = _("delete the audit")
    deleted = _("Deleted audit %(name)s.")
    question = _("Delete this audit?")
    possible_in = Audit.DELETABLE
    consequence = _("The audit is removed from all lists. The action plans that it proposed are kept.")

    def redirect_url(self, record: Audit, done: bool) -> str:
        return reverse("audits:list") if done else super().redirect_url(record, done)
