"""The console's way to take back that a person skipped actions: a button beside each, on its plan's page."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from actions.skipping import restore_actions
from plans.models import ActionPlan
from plans.skips import chosen
from watcher_site.pages import Verb, perform_and_tell
from watcher_site.templatetags.console import short


class Restore(Verb):
    model = ActionPlan
    permission_required = "actions.skip_action"
    verb = "restore"

    def where_to(self, record: ActionPlan, done: bool) -> str:
        row = f"#action-{short(self.uuids[0])}" if done and self.uuids else ""
        return f"{reverse('plans:detail', args=[record.uuid])}{row}"

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        plan = self.get_object()
        self.uuids = chosen(request.POST)
        page = self.where_to(plan, perform_and_tell(self, plan))
        return HttpResponseClientRedirect(page) if getattr(request, "htmx", False) else redirect(page)

    def perform(self, record: ActionPlan) -> str:
        number = restore_actions(record, self.uuids)
        return "Restored 1 action." if number == 1 else f"Restored {number} actions."
