"""The console's way to skip actions of a plan: choose one or many, say why, and it is done."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from actions.forms import ReasonForm
from actions.models import Action
from actions.skipping import skip_actions
from plans.models import ActionPlan
from watcher_site.pages import Verb, attempt
from watcher_site.templatetags.console import short


class Skip(Verb):
    """Two steps, both by POST as many UUIDs would make too long a URL: first ask for the reason, then skip.

    The boxes are named ``actions``; the button beside one action is named ``only`` and leaves them aside.
    """

    model = ActionPlan
    permission_required = "actions.skip_action"
    verb = "skip"

    def where_to(self, record: ActionPlan, done: bool) -> str:
        """Return to the page of the table that it was, and where it was done, to the first of the rows."""
        place = QueryDict(self.request.POST.get("place", "")).urlencode()
        row = f"#action-{short(self.uuids[0])}" if done else ""
        return f"{reverse('plans:detail', args=[record.uuid])}{'?' if place else ''}{place}{row}"

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        plan = self.get_object()
        self.uuids = chosen(request)
        if not self.uuids:
            messages.warning(request, "Choose at least one action.")
            return redirect(self.where_to(plan, False))
        self.form = ReasonForm(request.POST if "confirmed" in request.POST else None)
        if self.form.is_valid():
            return redirect(self.where_to(plan, attempt(self, plan)))
        return self.ask(plan)

    def perform(self, record: ActionPlan) -> str:
        reason = self.form.cleaned_data["reason"]
        number = skip_actions(record, self.uuids, self.request.user.get_username(), reason)
        return "Skipped 1 action." if number == 1 else f"Skipped {number} actions."

    def ask(self, plan: ActionPlan) -> HttpResponse:
        actions: QuerySet[Action] = Action.objects.present().filter(action_plan=plan, uuid__in=self.uuids)
        return render(
            self.request,
            "plans/skip.html",
            {
                "plan": plan,
                "actions": actions.order_by("pk"),
                "form": self.form,
                "place": self.request.POST.get("place", ""),
            },
        )


def chosen(request: HttpRequest) -> list[UUID]:
    """Return the actions that a form names; what is no UUID can only be the work of somebody who plays with it."""
    names = [request.POST["only"]] if request.POST.get("only") else request.POST.getlist("actions")
    return [uuid for uuid in map(read_uuid, names) if uuid]


def read_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
