"""The console's pages of actions, and the forms and buttons that skip, restore and signal an action."""

from functools import reduce
from operator import or_
from typing import Any, ClassVar

import django_filters
from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from actions.console.descriptions import describe_last_change, explain_refusal
from actions.console.intervals import Kind, intervals_of, total_duration
from actions.console.lookups import action_conditions, match_plans, match_targets
from actions.console.tables import ActionTable
from actions.event_details import sees_details
from actions.models import REASON_LENGTH, Action, ActionEvent
from actions.models.refusals import PERMISSIONS, Operation, allowed_signals, is_allowed
from actions.operations.signals import signal_action
from actions.operations.skipping import change_reason, restore_action, skip_action
from watcher_site import plugins
from watcher_site.console.columns import make_choices
from watcher_site.console.lists.filters import LONGEST, ObjectFilter
from watcher_site.console.pages import (
    CANNOT,
    FollowedPage,
    ListPage,
    OperationView,
    compose_version,
    perform_with_message,
)
from watcher_site.console.resumable_forms import ResumableFormPage
from watcher_site.database.counting import MOST_COUNTED, count_up_to
from watcher_site.messages import Text
from watcher_site.refusals import Conflict, worded
from watcher_site.templatetags.console import short

SHOWN_RELATIVES = 50
Signal = Action.Signal


class ActionFilters(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(
        label=_("State"), choices=make_choices(Action.State.values), empty_label=_("any")
    )
    action_type = django_filters.CharFilter(label=_("Type"), method="with_type")
    target = ObjectFilter(match_targets, label=_("Server or resource"), lookup_expr="in")
    action_plan = ObjectFilter(match_plans, label=_("Action plan"))
    text = django_filters.CharFilter(label=_("Name, UUID or type"), method="with_text", max_length=LONGEST)

    class Meta:
        model = Action
        fields: list[str] = []

    def with_type(self, actions: QuerySet[Action], _: str, text: str) -> QuerySet[Action]:
        """Select by a type, ignoring case. The index of the column does not support comparisons that ignore case."""
        names = (name for name in plugins.load("ACTION_TYPES") if name.lower() == text.lower())
        return actions.filter(action_type__in=[text, *names])

    def with_text(self, actions: QuerySet[Action], _: str, text: str) -> QuerySet[Action]:
        return actions.filter(reduce(or_, action_conditions(text)))


class ReasonForm(forms.Form):
    """The reason of a skip, which fits into the action's message with its prefix."""

    reason = forms.CharField(
        required=False,
        max_length=REASON_LENGTH,
        label=_("Reason (optional)"),
        help_text=_("Shown with the action. The plan's message has as much of it as fits."),
        widget=forms.Textarea(attrs={"rows": 2, "autofocus": True}),
    )


class NewReasonForm(ReasonForm):
    reason = forms.CharField(max_length=REASON_LENGTH, label=_("New reason"), widget=forms.Textarea(attrs={"rows": 2}))


class ActionList(ListPage):
    model = Action
    permission_required = "actions.view_action"
    table_class = ActionTable
    filterset_class = ActionFilters
    heading = _("Actions")
    help_page = "concepts#action"
    follows = True
    guidance = _("No actions yet. Audits propose action plans, which consist of actions.")
    rows_template = "actions/_rows.html"

    def get_queryset(self) -> QuerySet[Action]:
        return Action.objects.present().with_plans().select_related("derived_from").order_by("-pk")

    def get_table_kwargs(self) -> dict[str, Any]:
        return {"may_skip": self.may_skip}

    @cached_property
    def may_skip(self) -> bool:
        return self.may(PERMISSIONS[Operation.SKIP], "action_plan:skip")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        context = super().get_context_data(**context)
        if not self.may_skip:
            return context
        # The check box in the heading selects all rows of a single page.
        is_partial = context["is_filtered"] or context["table"].paginator.num_pages > 1
        actions = self.object_list.prunable()
        numbers = count_up_to(MOST_COUNTED, [actions.pending(), actions.restorable()])
        is_too_many = max(numbers) > MOST_COUNTED
        hint = _("Set filters to skip or restore all actions that match: at most %(most)s at once.")
        return {
            **context,
            "skippable": numbers[0],
            "restorable": numbers[1],
            "selects_matching": is_partial and not is_too_many,
            "guidance_of_selection": hint % {"most": number_format(MOST_COUNTED)} if is_too_many else "",
        }

    def version_of(self, context: dict[str, Any]) -> tuple[Any, ...]:
        return (*super().version_of(context), context.get("skippable"), context.get("restorable"))


class ActionPage(FollowedPage):
    """The page of an action: its parameters, parents and children, and its events."""

    model = Action
    permission_required = "actions.view_action"

    template_name = "actions/action_detail.html"
    part_template = "actions/_action.html"

    def get_version(self) -> str:
        action: Action = self.object
        plan = action.action_plan
        relatives = [(relative.state, relative.updated_at) for relative in (*self.parents, *self.children)]
        events = [(event.pk, event.finish_time) for event in self.events]
        return compose_version(
            action.updated_at, action.state, action.owner_id, plan.state, plan.updated_at, relatives, events
        )

    @cached_property
    def parents(self) -> list[Action]:
        return list(self.object.parents.order_by("pk")[: SHOWN_RELATIVES + 1])

    @cached_property
    def children(self) -> list[Action]:
        return list(self.object.children.order_by("pk")[: SHOWN_RELATIVES + 1])

    @cached_property
    def events(self) -> list[ActionEvent]:
        return list(self.object.events.all())

    def get_queryset(self) -> QuerySet[Action]:
        return with_page_relations(super().get_queryset())

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        action: Action = self.object
        # A skip can be undone until the plan begins; a cancellation cannot, and makes the plan CANCELLED.
        may_skip = is_allowed(Operation.SKIP, action, self.request.user)
        intervals = intervals_of(action, self.events, timezone.now())
        return super().get_context_data(
            first_start=intervals[0].start if intervals else None,
            suspended_for=total_duration(intervals, Kind.SUSPENDED),
            deferred_for=total_duration(intervals, Kind.DEFERRED),
            parents=self.parents,
            derived_from=[action.derived_from] if action.derived_from else [],
            children=self.children,
            events=self.events,
            sees_details=sees_details(self.request.user),
            moving=action.state not in action.FINAL and not action.action_plan.is_prunable,
            form=context.pop("form", None) or reason_form(self.request, action),
            signals=[] if may_skip else allowed_signals(action, self.request.user),
            may_restore=is_allowed(Operation.RESTORE, action, self.request.user),
            **context,
        )


def with_page_relations(actions: QuerySet[Action]) -> QuerySet[Action]:
    """Select the plan, the owner and the deriving action for the page of an action."""
    return actions.select_related("action_plan__audit", "owner", "derived_from")


def reason_form(request: HttpRequest, action: Action, typed: str = "") -> ReasonForm | None:
    """Return the form that this user may submit in the action's state, if any, with the text entered before."""
    if is_allowed(Operation.CHANGE_REASON, action, request.user):
        return NewReasonForm(initial={"reason": typed or action.reason})
    if is_allowed(Operation.SKIP, action, request.user):
        return ReasonForm(initial={"reason": typed})
    return None


class ReasonView(ResumableFormPage, OperationView):
    """A button on the action's page with a reason. If the operation is refused, the form keeps the reason."""

    model = Action
    permission_required = PERMISSIONS[Operation.SKIP]
    form_class: type[ReasonForm] = ReasonForm

    def get_queryset(self) -> QuerySet[Action]:
        return with_page_relations(super().get_queryset())

    def redirect_url(self, record: Action, done: bool) -> str:
        return reverse("actions:detail", args=[record.uuid])

    def get(self, request: HttpRequest, **path: Any) -> HttpResponse:
        data = self.resumed_data()
        return self.show(data.get("reason", "")) if data else super().get(request, **path)

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        self.form = self.form_class(request.POST)
        if not self.form.is_valid():
            return self.show(form=self.form)
        action = self.get_object()
        if perform_with_message(self, action):
            return redirect(self.redirect_url(action, True))
        return self.show(self.form.cleaned_data["reason"], status=409)

    def show(self, reason: str = "", form: ReasonForm | None = None, status: int = 200) -> HttpResponse:
        """Show the current action, with the entered text in the form that its state allows."""
        action = self.get_object()
        allowed = reason_form(self.request, action, reason)
        if form is None or type(form) is not type(allowed):
            form, reason = allowed, reason or self.request.POST.get("reason", "")
        if reason and form is None:
            messages.info(self.request, _("Reason that you entered: %(reason)s") % {"reason": reason})
        page = ActionPage(request=self.request, object=action, kwargs=self.kwargs)
        return page.render_to_response(page.get_context_data(form=form), status=status)


def explain_conflict(operation: Operation, action: Action, refusal: Conflict) -> Conflict:
    """Return a refusal with the explanation of the action's state, if there is one."""
    return Conflict(worded(lambda: explain_refusal(operation, action) or str(refusal)))


class SkipAction(ReasonView):
    verb = _("skip the action")

    def perform(self, record: Action) -> str:
        try:
            skip_action(record.uuid, self.request.user.get_username(), self.form.cleaned_data["reason"])
        except Conflict as refusal:
            raise explain_conflict(Operation.SKIP, self.get_object(), refusal) from refusal
        return gettext("Action skipped.")


class ChangeReason(ReasonView):
    verb = _("change the reason")
    history_event = "action.update"
    form_class = NewReasonForm

    def perform(self, record: Action) -> str:
        change_reason(record.uuid, self.form.cleaned_data["reason"])
        return gettext("Reason changed.")


class RestoreAction(OperationView):
    model = Action
    permission_required = PERMISSIONS[Operation.RESTORE]
    verb = _("restore the action")

    def redirect_url(self, record: Action, done: bool) -> str:
        return reverse("actions:detail", args=[record.uuid])

    def perform(self, record: Action) -> str:
        try:
            restore_action(record.uuid)
        except Conflict as refusal:
            raise explain_conflict(Operation.RESTORE, self.get_object(), refusal) from refusal
        return gettext("Action restored. It will run with its plan.")


class ActionSignalView(OperationView):
    """A button on the action's page, or on its plan's page."""

    model = Action
    history_event = "action.signal"
    permission_required = PERMISSIONS[Operation.CANCEL]
    signal: ClassVar[Action.Signal]
    notice: ClassVar[Text]

    def redirect_url(self, record: Action, done: bool) -> str:
        if self.request.POST.get("page") != "plan":
            return reverse("actions:detail", args=[record.uuid])
        return f"{reverse('plans:detail', args=[record.action_plan.uuid])}#action-{short(record.uuid)}"

    def perform(self, record: Action) -> str:
        try:
            action = signal_action(record.uuid, self.signal, self.request.user.get_username())
        except Conflict as refusal:
            current: Action = self.get_object()
            raise Conflict(worded(lambda: self.explain(current))) from refusal
        return gettext("Action cancelled.") if action.state == Action.State.CANCELLED else str(self.notice)

    def explain(self, action: Action) -> str:
        state = {"action": action.called, "state": action.state, "since": describe_last_change(action)}
        return CANNOT % {"verb": self.verb, "why": _("%(action)s is %(state)s (%(since)s).") % state}


class Suspend(ActionSignalView):
    signal = Signal.SUSPEND
    verb = _("suspend the action")
    notice = _("The action will pause at its next checkpoint, until it is resumed.")


class Resume(ActionSignalView):
    signal = Signal.RESUME
    verb = _("resume the action")
    notice = _("Action resumed.")


class Cancel(ActionSignalView):
    signal = Signal.CANCEL
    verb = _("cancel the action")
    question = _("Cancel this action?")
    possible_in = frozenset({Action.State.PENDING, *Action.BEGUN})
    consequence = _(
        "A running action is aborted at its next checkpoint. The rest of the plan runs, except dependent actions if"
        " the plan stops them on failure. The plan ends CANCELLED, and a new plan can continue it. A cancelled action"
        " cannot be restored; a skipped action can, until the plan begins."
    )
    notice = _("The action will be aborted at its next checkpoint.")
