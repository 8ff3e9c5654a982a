"""The console's pages to skip actions of a plan with a reason, one or many, and to restore skipped actions."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django_htmx.http import HttpResponseClientRefresh

from actions.console.descriptions import explain_refusal
from actions.console.views import ReasonForm
from actions.models import Action
from actions.models.refusals import PERMISSIONS, Operation
from actions.operations.skipping import restore_actions, skip_actions
from plans.models import ActionPlan
from plans.models.refusals import PLAN_POLICIES, PlanOperation
from watcher_site.console.pages import Verb, perform_and_tell
from watcher_site.console.resumable_forms import KeepsForm
from watcher_site.database.records import parse_uuid
from watcher_site.refusals import Conflict, Refused
from watcher_site.state_machine import ConcurrentTransition
from watcher_site.templatetags.console import short


class Skip(KeepsForm, Verb):
    """Two steps, both by POST as many UUIDs would make too long a URL: first ask for the reason, then skip.

    The boxes are named ``actions``; the button beside one action is named ``only`` and leaves them aside. What can
    not be skipped any more is named and left out of the form, which keeps the rest and the reason.
    """

    model = ActionPlan
    permission_required = PERMISSIONS[Operation.SKIP]
    policy = PLAN_POLICIES[PlanOperation.SKIP_ACTIONS]
    verb, history_event, is_within = "skip", "action.skip", True

    def where_to(self, record: ActionPlan, done: bool) -> str:
        """Return to the page of the table that it was, and where it was done, to the first of the rows."""
        place = QueryDict(self.sent.get("place", "")).urlencode()
        row = f"#action-{short(self.uuids[0])}" if done else ""
        return f"{reverse('plans:detail', args=[record.uuid])}{'?' if place else ''}{place}{row}"

    def get(self, request: HttpRequest, **_: Any) -> HttpResponse:
        """Show a form again that was sent too late; else there is nothing to ask."""
        plan, kept = self.get_object(), self.kept()
        self.read(kept or QueryDict())
        if not self.uuids:
            return redirect(self.where_to(plan, False))
        self.form = ReasonForm(initial={"reason": self.sent.get("reason", "")})
        return self.ask(plan)

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        plan = self.get_object()
        self.read(request.POST)
        if not self.uuids:
            messages.warning(request, "Select at least one action.")
            return redirect(self.where_to(plan, False))
        self.form = ReasonForm(request.POST if "confirmed" in request.POST else None)
        if not self.form.is_valid():
            return self.ask(plan)
        try:
            messages.success(request, self.perform(plan))
        except (Refused, ConcurrentTransition) as refusal:
            self.note(refusal, plan)
            return self.ask(plan, refusal)
        return redirect(self.where_to(plan, True))

    def read(self, sent: QueryDict) -> None:
        self.sent, self.uuids = sent, chosen(sent)

    def perform(self, record: ActionPlan) -> str:
        reason = self.form.cleaned_data["reason"]
        number = skip_actions(record, self.uuids, self.request.user.get_username(), reason)
        return f"{number} action{pluralize(number)} skipped."

    def ask(self, plan: ActionPlan, refusal: Exception | None = None) -> HttpResponse:
        found = Action.objects.present().filter(action_plan=plan, uuid__in=self.uuids).select_related("action_plan")
        actions = {action: explain_refusal(Operation.SKIP, action) for action in found.order_by("pk")}
        problems = list(dict.fromkeys(filter(None, actions.values())))
        if absent := len(set(self.uuids)) - len(actions):
            problems.append(f"{absent} action{pluralize(absent)} not found.")
        if refusal and not problems:
            problems.append(str(refusal))
        context = {
            "plan": plan,
            "actions": [action for action, problem in actions.items() if not problem],
            "problems": problems,
            "refused": bool(refusal),
            "form": self.form,
            "place": self.sent.get("place", ""),
        }
        return render(self.request, "plans/skip.html", context, status=409 if refusal else 200)


def chosen(sent: QueryDict) -> list[UUID]:
    """Return the actions that a form names; what is no UUID can only be the work of somebody who plays with it."""
    only = sent.get("only")
    names = [only] if only else sent.getlist("actions")
    return [uuid for uuid in map(parse_uuid, map(str, names)) if uuid]


class Restore(Verb):
    model = ActionPlan
    permission_required = PERMISSIONS[Operation.RESTORE]
    policy = "action_plan:restore"
    verb, history_event, is_within = "restore", "action.restore", True

    def where_to(self, record: ActionPlan, done: bool) -> str:
        row = f"#action-{short(self.uuids[0])}" if done and self.uuids else ""
        return f"{reverse('plans:detail', args=[record.uuid])}{row}"

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        plan = self.get_object()
        self.uuids = chosen(request.POST)
        page = self.where_to(plan, perform_and_tell(self, plan))
        # The button stands on that very page: to go to another place of it would leave everything as it was.
        return HttpResponseClientRefresh() if getattr(request, "htmx", False) else redirect(page)

    def perform(self, record: ActionPlan) -> str:
        try:
            number = restore_actions(record, self.uuids)
        except Conflict as refusal:
            raise Conflict(self.reason() or str(refusal)) from refusal
        return f"{number} action{pluralize(number)} restored."

    def reason(self) -> str | None:
        """Return why the first of them that cannot be restored cannot."""
        found = Action.objects.present().filter(uuid__in=self.uuids).select_related("action_plan").order_by("pk")
        explanations = (explain_refusal(Operation.RESTORE, action) for action in found)
        return next(filter(None, explanations), None)
