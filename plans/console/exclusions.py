"""The console's list, pages and operations of exclusions."""

from datetime import datetime
from typing import Any

import django_filters
import django_tables2 as tables
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views import View

from actions.exclusions.records import (
    change_exclusion,
    create_exclusion,
    delete_exclusion,
    draft_change,
    draft_exclusion,
)
from actions.exclusions.rules import Rule, describe_force, describe_scope
from actions.exclusions.targets import KINDS, names_of
from actions.models import Action
from actions.models.exclusions import Exclusion
from plans.console.exclusion_forms import MOST_PROPOSED, ExclusionForm, TrialForm, values_excluding
from plans.operations.exclusion_trials import Trial, try_rule
from watcher_site.console.columns import TABLE_ATTRIBUTES, DueColumn, MessageColumn, TimeColumn
from watcher_site.console.lists.filters import NameFilter
from watcher_site.console.pages import ByUUID, ListPage, OperationView, RecordPage
from watcher_site.console.resumable_forms import ResumableFormPage
from watcher_site.database.records import parse_uuid
from watcher_site.messages import Text, translate_message
from watcher_site.refusals import Refused
from watcher_site.windows.wall_clock import describe_window

SWITCH = [("True", _("enabled")), ("False", _("disabled"))]
SHOWN = 50
TO_TRY = ("plans.view_actionplan", "actions.view_action")


class ExclusionFilters(django_filters.FilterSet):
    name = NameFilter()
    owner = django_filters.CharFilter(label=_("Owner"), lookup_expr="icontains")
    enabled = django_filters.ChoiceFilter(label=_("Enabled"), choices=SWITCH, empty_label=_("any"))

    class Meta:
        model = Exclusion
        fields: list[str] = []


class ExclusionTable(tables.Table):
    name = tables.Column(linkify=("exclusions:detail", {"uuid": tables.A("uuid")}), attrs={"td": {"class": "name"}})
    force = tables.Column(accessor="pk", verbose_name=_("in force"), orderable=False)
    action_types = tables.Column(verbose_name=_("actions"), accessor="pk", orderable=False)
    window = tables.Column(verbose_name=_("hours"), accessor="pk", orderable=False)
    reason = MessageColumn()
    owner = tables.Column()
    expires_at = DueColumn(accessor="expires_at", verbose_name=_("expires"), default=_("never"))
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"))

    class Meta:
        model = Exclusion
        fields = ("name", "force", "action_types", "window", "reason", "owner", "expires_at", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_force(self, record: Exclusion) -> str:
        return describe_force(record)

    def render_action_types(self, record: Exclusion) -> str:
        return describe_scope(record)

    def render_window(self, record: Exclusion) -> str:
        return describe_window(record.window, record.zone) or gettext("all hours")


class ExclusionList(ListPage):
    model = Exclusion
    permission_required = "actions.view_exclusion"
    table_class = ExclusionTable
    filterset_class = ExclusionFilters
    template_name = "exclusions/exclusion_list.html"
    heading = _("Exclusions")
    help_page = "concepts#exclusion"
    guidance = _("No exclusions yet. Actions that match an exclusion are skipped in every plan.")

    def get_queryset(self) -> QuerySet[Exclusion]:
        return Exclusion.objects.present().order_by("name", "pk")


class ExclusionPage(RecordPage):
    """One exclusion: its attributes, the actions that it skipped, and a test on a plan."""

    model = Exclusion
    permission_required = "actions.view_exclusion"
    template_name = "exclusions/exclusion_detail.html"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        exclusion: Exclusion = self.object
        skipped = exclusion.actions.present().with_plans().order_by("-pk")
        may_try = all(map(self.may, TO_TRY))
        return super().get_context_data(
            exclusion=exclusion,
            force=describe_force(exclusion),
            next_in_force=next_in_force(exclusion),
            targets=[(gettext(KINDS[kind][0]), found) for kind, found in names_of(exclusion.targets).items()],
            window=describe_window(exclusion.window, exclusion.zone),
            skipped=skipped[:SHOWN] if self.may("actions.view_action") else [],
            **(self.try_out(exclusion) if may_try else {}),
            **context,
        )

    def try_out(self, exclusion: Exclusion) -> dict[str, Any]:
        form = TrialForm(self.request.GET if "plan" in self.request.GET else None)
        plan = form.cleaned_data.get("plan") if form.is_valid() else None
        return {"trial_form": form, **trial_context(try_rule(exclusion, plan) if plan else None)}


def next_in_force(exclusion: Exclusion) -> datetime | None:
    """Return when an exclusion is in force again, or None if it is in force, disabled or expired."""
    now, rule = timezone.now(), Rule.of(exclusion)
    return rule.next_in_force(now) if exclusion.enabled and not rule.is_in_force(now) else None


def trial_context(trial: Trial | None) -> dict[str, Any]:
    if trial is None:
        return {}
    return {"trial": trial, "tried": trial.found[:SHOWN], "more": max(0, len(trial.found) - SHOWN)}


class ExclusionEditing(ResumableFormPage, View):
    """A form for an exclusion, which is saved, or with ``try`` only tested."""

    http_method_names = ["get", "post"]
    saved: Text

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        return self.show(ExclusionForm(self.resumed_data(), exclusion=self.current(), proposed=self.propose()))

    def propose(self) -> dict[str, Any]:
        """Return the initial values of the fields of a new rule."""
        return {}

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        current = self.current()
        form = ExclusionForm(request.POST, exclusion=current)
        trial, made = None, None
        if form.is_valid():
            try:
                if "try" in request.POST:
                    trial = form.trial_of(self.build_record(current, form.attributes()))
                else:
                    made = self.save(current, form.attributes())
            except Refused as refusal:
                form.add_refusal(translate_message(str(refusal)))
                self.record_problem(refusal, current)
        if made is None:
            return self.show(form, trial)
        messages.success(request, self.saved)
        return redirect("exclusions:detail", uuid=made.uuid)

    def show(self, form: ExclusionForm, trial: Trial | None = None) -> HttpResponse:
        may_try = all(map(self.may, TO_TRY))
        context = {"form": form, "exclusion": self.current(), "may_try": may_try, **trial_context(trial)}
        return render(self.request, "exclusions/exclusion_form.html", context)

    @property
    def requested_by(self) -> str:
        return self.request.user.get_username()

    def current(self) -> Exclusion | None:
        return None

    def build_record(self, current: Exclusion | None, attributes: dict[str, Any]) -> Exclusion:
        return draft_exclusion(attributes, self.requested_by)

    def save(self, current: Exclusion | None, attributes: dict[str, Any]) -> Exclusion:
        return create_exclusion(attributes, self.requested_by)


class NewExclusion(ExclusionEditing):
    permission_required = "actions.add_exclusion"
    history_event = "exclusion.create"
    saved = _("Exclusion created. Matching actions are skipped from now on.")

    def propose(self) -> dict[str, Any]:
        """Return values for a rule that excludes the actions in the query of the URL."""
        uuids = list(filter(None, map(parse_uuid, self.request.GET.getlist("action"))))[:MOST_PROPOSED]
        if not uuids or not self.may("actions.view_action"):
            return {}
        return values_excluding(list(Action.objects.present().filter(uuid__in=uuids)))


class ChangeExclusion(ByUUID, ExclusionEditing):
    model = Exclusion
    permission_required = "actions.change_exclusion"
    history_event = "exclusion.update"
    saved = _("Exclusion saved. It applies to all actions that have not begun.")

    def current(self) -> Exclusion | None:
        found: Exclusion = self.get_object()
        return found

    def build_record(self, current: Any, attributes: dict[str, Any]) -> Exclusion:
        return draft_change(current, attributes, self.requested_by)

    def save(self, current: Any, attributes: dict[str, Any]) -> Exclusion:
        return change_exclusion(current, attributes, self.requested_by)


class EnableExclusion(OperationView):
    model = Exclusion
    history_event = "exclusion.update"
    permission_required = "actions.change_exclusion"
    verb = _("enable the exclusion")
    question = _("Enable this exclusion?")
    consequence = _("Matching actions are skipped from now on.")
    look = "primary"
    enabled = True

    def perform(self, record: Exclusion) -> str:
        changed = change_exclusion(record, {"enabled": self.enabled}, self.request.user.get_username())
        text = _("Exclusion %(name)s enabled.") if changed.enabled else _("Exclusion %(name)s disabled.")
        return text % {"name": changed}

    def redirect_url(self, record: Exclusion, done: bool) -> str:
        return reverse("exclusions:detail", args=[record.uuid])


class DisableExclusion(EnableExclusion):
    verb = _("disable the exclusion")
    question = _("Disable this exclusion?")
    consequence = _("No more actions are skipped until the exclusion is enabled again. Skipped actions stay skipped.")
    look = "danger"
    enabled = False


class DeleteExclusion(OperationView):
    model = Exclusion
    permission_required = "actions.delete_exclusion"
    verb = _("delete the exclusion")
    question = _("Delete this exclusion?")
    consequence = _("Skipped actions stay skipped. They can be restored until their plan begins.")

    def perform(self, record: Exclusion) -> str:
        delete_exclusion(record)
        return _("Deleted exclusion %(name)s.") % {"name": record}

    def redirect_url(self, record: Exclusion, done: bool) -> str:
        return reverse("exclusions:list") if done else reverse("exclusions:detail", args=[record.uuid])
