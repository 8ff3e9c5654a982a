"""The pages that skip actions with a reason, and restore skipped actions."""

from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django_htmx.http import HttpResponseClientRefresh

from actions.console.descriptions import explain_refusal
from actions.console.views import ReasonForm
from actions.models import Action
from actions.models.querysets import ActionQuerySet
from actions.models.refusals import PERMISSIONS, Operation
from actions.operations.skipping import restore_actions, skip_actions
from plans.console.exclusion_forms import MOST_PROPOSED
from plans.console.pruning.selection import Selection
from plans.models import ActionPlan
from plans.models.refusals import PLAN_POLICIES, PlanOperation
from watcher_site.console.pages import OperationView, perform_with_message
from watcher_site.console.resumable_forms import ResumableFormPage
from watcher_site.database.counting import MOST_COUNTED
from watcher_site.messages import translate_message
from watcher_site.refusals import Conflict, Refused
from watcher_site.state_machine import ConcurrentTransition
from watcher_site.templatetags.names import plan_name, short, visible

# The maximum number of actions of several plans that one transaction changes. The list does not count more, either.
MOST_OF_ALL_PLANS = MOST_COUNTED


class SelectionView(ResumableFormPage, OperationView):
    """An operation on the selected actions of a plan, or of all plans: all of them, or none.

    An operation on all actions that match the filters requires a confirmation, and another one if the matching actions
    have changed since then.
    """

    model = ActionPlan
    is_within = True
    operation: ClassVar[Operation]
    dialog: ClassVar[str]

    def get_object(self, queryset: Any = None) -> ActionPlan | None:
        """Return the plan in the path; None in the list of the actions of all plans."""
        return super().get_object(queryset) if self.slug_url_kwarg in self.kwargs else None

    def redirect_url(self, record: ActionPlan | None, done: bool) -> str:
        """Return the address of the page with the table, after the operation with the first changed row."""
        place, uuids = self.selection.place.urlencode(), self.selection.uuids
        page = reverse("plans:detail", args=[record.uuid]) if record else reverse("actions:list")
        address = f"{page}{'?' if place else ''}{place}"
        if not done:
            return address
        return f"{address}#actions-heading" if self.selection.is_matching else f"{address}#action-{short(uuids[0])}"

    def read(self, plan: ActionPlan | None, sent: QueryDict) -> None:
        self.selection = Selection(self.operation, plan, sent, self.request.user)

    def render_confirmation(self, plan: ActionPlan | None, refusal: Exception | None = None) -> HttpResponse:
        context = self.summarize_matching(plan) if self.selection.is_matching else self.summarize_named()
        if refusal and not context["problems"]:
            context["problems"] = [translate_message(str(refusal))]
        return render(
            self.request,
            "plans/selection.html",
            {
                **context,
                "plan": plan,
                "back": self.redirect_url(plan, False),
                "refused": bool(refusal),
                "is_matching": self.selection.is_matching,
                "place": self.selection.sent.get("place", ""),
                "form": getattr(self, "form", None),
                "dialog": self.dialog,
                "offers_exclusion": context["number"] <= MOST_PROPOSED and self.may("actions.add_exclusion"),
            },
            status=409 if refusal else 200,
        )

    def summarize_matching(self, plan: ActionPlan | None) -> dict[str, Any]:
        problem = None
        if plan and not plan.is_prunable:
            any_action = plan.actions.present().select_related("action_plan").first()
            problem = any_action and explain_refusal(self.operation, any_action)
        summary = self.selection.summarize()
        if plan is None and summary["number"] > MOST_OF_ALL_PLANS:
            text = _("%(number)s actions match, and at most %(most)s can be changed at once. Set further filters.")
            problem = text % {"number": number_format(summary["number"]), "most": number_format(MOST_OF_ALL_PLANS)}
            summary |= {"number": 0, "actions": [], "more": 0, "is_too_many": True}
        return {**summary, "problems": [problem] if problem else []}

    def summarize_named(self) -> dict[str, Any]:
        """Return the selected actions that can be changed, and the reasons why the others cannot."""
        actions = {action: self.explain(action) for action in self.named}
        problems = list(dict.fromkeys(filter(None, actions.values())))
        if absent := len(set(self.selection.uuids)) - len(actions):
            not_found = ngettext("%(number)s action not found.", "%(number)s actions not found.", absent)
            problems.append(not_found % {"number": number_format(absent)})
        possible = [action for action, problem in actions.items() if not problem]
        return {"actions": possible, "number": len(possible), "confirmed": "yes", "problems": problems}

    @property
    def named(self) -> ActionQuerySet:
        return self.selection.named.with_plans().select_related("derived_from")

    def explain(self, action: Action) -> str | None:
        """Return the reason why an action cannot be changed, with the plan if the table has several plans, or None."""
        plan, problem = action.action_plan, explain_refusal(self.operation, action)
        is_of_plan = problem and self.selection.plan is None and not plan.is_prunable
        return f"{visible(plan_name(plan))} ({short(plan.uuid)}): {problem}" if is_of_plan else problem


class Skip(SelectionView):
    """The form for the reason, and the skip. Both use POST, because a URL with many UUIDs would be too long.

    Actions that can no longer be skipped are reported and removed from the form. The others and the reason are kept.
    """

    permission_required = PERMISSIONS[Operation.SKIP]
    policy = PLAN_POLICIES[PlanOperation.SKIP_ACTIONS]
    verb, history_event = _("skip"), "action.skip"
    operation = Operation.SKIP
    dialog = "plans/_skip.html"

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        """Show a form again whose session had expired when it was sent; otherwise redirect to the table."""
        plan, kept = self.get_object(), self.resumed_data()
        self.read(plan, kept or QueryDict())
        if not self.selection:
            return redirect(self.redirect_url(plan, False))
        self.form = ReasonForm(initial={"reason": self.selection.sent.get("reason", "")})
        return self.render_confirmation(plan)

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        plan = self.get_object()
        self.read(plan, request.POST)
        if not self.selection:
            messages.warning(request, _("Select at least one action."))
            return redirect(self.redirect_url(plan, False))
        self.form = ReasonForm(request.POST if "confirmed" in request.POST else None)
        if not self.form.is_valid():
            return self.render_confirmation(plan)
        chosen = self.selection.list_uuids(MOST_PROPOSED) if "exclude" in request.POST else []
        try:
            messages.success(request, self.perform(plan))
        except (Refused, ConcurrentTransition) as refusal:
            self.record_problem(refusal, plan)
            return self.render_confirmation(self.get_object(), refusal)
        if chosen:
            return redirect(f"{reverse('exclusions:new')}?{urlencode([('action', uuid) for uuid in chosen])}")
        return redirect(self.redirect_url(plan, True))

    def perform(self, record: ActionPlan | None) -> str:
        reason = self.form.cleaned_data["reason"]
        number = skip_actions(record, self.selection.selected, self.request.user.get_username(), reason)
        skipped = ngettext("%(number)s action skipped.", "%(number)s actions skipped.", number)
        return skipped % {"number": number_format(number)}


class Restore(SelectionView):
    permission_required = PERMISSIONS[Operation.RESTORE]
    policy = "action_plan:restore"
    verb, history_event = _("restore"), "action.restore"
    operation = Operation.RESTORE
    dialog = "plans/_restore.html"

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        """Show a form again whose session had expired when it was sent; otherwise redirect to the table."""
        plan, kept = self.get_object(), self.resumed_data()
        self.read(plan, kept or QueryDict())
        return self.render_confirmation(plan) if self.selection else redirect(self.redirect_url(plan, False))

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        plan = self.get_object()
        self.read(plan, request.POST)
        if not self.selection:
            messages.warning(request, _("Select at least one action."))
            return self.show(plan, done=False)
        if not self.selection.is_matching:
            return self.show(plan, done=perform_with_message(self, plan))
        if "confirmed" not in request.POST:
            return self.render_confirmation(plan)
        try:
            messages.success(request, self.perform(plan))
        except (Refused, ConcurrentTransition) as refusal:
            self.record_problem(refusal, plan)
            return self.render_confirmation(self.get_object(), refusal)
        return redirect(self.redirect_url(plan, True))

    def show(self, plan: ActionPlan | None, done: bool) -> HttpResponse:
        # The button is on the same page: a redirect that only changes the fragment would not reload it.
        is_htmx = getattr(self.request, "htmx", False)
        return HttpResponseClientRefresh() if is_htmx else redirect(self.redirect_url(plan, done))

    def perform(self, record: ActionPlan | None) -> str:
        try:
            number = restore_actions(record, self.selection.selected)
        except Conflict as refusal:
            raise Conflict(self.reason() or str(refusal)) from refusal
        restored = ngettext("%(number)s action restored.", "%(number)s actions restored.", number)
        return restored % {"number": number_format(number)}

    def reason(self) -> str | None:
        """Return the reason why one of the selected actions cannot be restored, or None."""
        return next(filter(None, map(self.explain, self.named)), None)
