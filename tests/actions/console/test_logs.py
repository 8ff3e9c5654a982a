"""Log lines of an action: filters by its UUID and by the IDs of the requests that concerned it."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from structlog.contextvars import get_contextvars

from actions.engine import execution
from actions.models import Action
from actions.types.base import DONE, Outcome
from actions.types.nop import Nop
from tests.actions.engine.test_interruptions import FakeLease
from tests.builders import action, make_plan
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
REQUEST = "req-5f1f9bd2-0c45-4bb0-8ff2-7f5b0f1d4f4e"


@pytest.fixture
def started() -> Action:
    """Return an action of a plan that the user rosa started by a request."""
    plan = make_plan({"a": []}, state="ONGOING")
    HistoryEntry.objects.create(
        deed="action_plan.start", user="rosa", object_uuid=plan.uuid, request_id=REQUEST, object_type="action_plan"
    )
    return action(plan, "a")


def page(client: Client, action: Action) -> str:
    return client.get(reverse("actions:detail", args=[action.uuid])).content.decode()


def test_action_page_shows_the_filters_of_its_log_lines(client: Client, cloud_admin: User, started: Action) -> None:
    client.force_login(cloud_admin)
    shown = page(client, started)
    assert f"select(.action == &quot;{started.uuid}&quot;)" in shown.replace('"', "&quot;")
    assert f'href="/console/history/?request_id={REQUEST}"' in shown


def test_log_context_of_an_execution_contains_the_action(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    def execute(self: Nop) -> Outcome:
        found.append(get_contextvars().get("action"))
        return DONE

    monkeypatch.setattr(Nop, "execute", execute)
    begun = action(make_plan({"a": []}, state="ONGOING"), "a")
    execution.execute(begun, FakeLease())
    assert found == [str(begun.uuid)]


def test_request_ids_are_hidden_without_the_history_permission(client: Client, started: Action) -> None:
    user = User.objects.create_user("rob")
    user.user_permissions.add(Permission.objects.get(codename="view_action"))
    client.force_login(user)
    shown = page(client, started)
    assert str(started.uuid) in shown
    assert REQUEST not in shown


def test_history_entry_links_to_the_entries_of_its_request(client: Client, cloud_admin: User, started: Action) -> None:
    client.force_login(cloud_admin)
    HistoryEntry.objects.create(deed="server.delete", user="max", object_type="server", request_id="req-other")
    assert f"?request_id={REQUEST}" in client.get(reverse("history:list")).content.decode()
    table = client.get(reverse("history:list"), {"request_id": REQUEST}).context["table"]
    assert [row.record.user for row in table.rows] == ["rosa"]
