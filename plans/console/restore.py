"""The console's way to take back that a person skipped actions: a button beside each, on its plan's page."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRefresh

from actions.console.descriptions import explain_refusal
from actions.models import Action
from actions.models.refusals import PERMISSIONS, Operation
from actions.operations.skipping import restore_actions
from plans.console.skips import chosen
from plans.models import ActionPlan
from watcher_site.console.pages import Verb, perform_and_tell
from watcher_site.refusals import Conflict
from watcher_site.templatetags.console import short


class Restore(Verb):
    model = ActionPlan
    permission_required = PERMISSIONS[Operation.RESTORE]
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
        return "Restored 1 action." if number == 1 else f"Restored {number} actions."

    def reason(self) -> str | None:
        """Return why the first of them that cannot be restored cannot."""
        found = Action.objects.present().filter(uuid__in=self.uuids).select_related("action_plan").order_by("pk")
        explanations = (explain_refusal(Operation.RESTORE, action) for action in found)
        return next(filter(None, explanations), None)
