"""A page shows a consistent snapshot of the database, despite concurrent changes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from actions.models import Action
from plans.console import views
from plans.models import ActionPlan
from tests.builders import make_plan
from watcher_site.database.consistent_reads import consistent_reads
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db(transaction=True)


def commit_concurrently(change: Callable[[], Any]) -> None:
    """Commit a change on another connection."""

    def work() -> None:
        try:
            change()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result(60)


def test_change_between_two_queries_of_a_page_is_not_shown(
    client: Client, cloud_admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING")
    list_actions = views.list_actions

    def interrupted(*arguments: Any) -> Any:
        commit_concurrently(lambda: Action.objects.update(state="FAILED"))
        return list_actions(*arguments)

    monkeypatch.setattr(views, "list_actions", interrupted)
    client.force_login(cloud_admin)
    page = client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert ("2 PENDING" in page, "state-failed" in page) == (True, False)
    assert "state-failed" in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()


def test_connection_is_writable_after_a_page(client: Client, cloud_admin: User) -> None:
    plan = make_plan({"a": []})
    client.force_login(cloud_admin)
    assert client.get(reverse("plans:detail", args=[plan.uuid])).status_code == 200
    ActionPlan.objects.update(state="CANCELLED")
    assert not connection.in_atomic_block
    with consistent_reads():
        assert ActionPlan.objects.get().state == "CANCELLED"


def test_refused_page_is_recorded_in_history(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse("plans:detail", args=[make_plan({"a": []}).uuid])).status_code == 403
    assert HistoryEntry.objects.filter(outcome="refused").exists()


@pytest.mark.postgresql
def test_page_cannot_write(client: Client, cloud_admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []})
    monkeypatch.setattr(views, "efficacy_of", lambda plan: plan.save())
    client.force_login(cloud_admin)
    client.raise_request_exception = False
    assert client.get(reverse("plans:detail", args=[plan.uuid])).status_code == 500
    ActionPlan.objects.update(state="CANCELLED")
