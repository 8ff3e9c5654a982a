"""The console's first page."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.builders import make_audit, make_node, make_plan, make_server
from watcher_site.models import Service


def overview(client: Client, user: User) -> str:
    client.force_login(user)
    return client.get(reverse("home")).content.decode()


def test_a_plan_that_waits_for_a_decision_stands_there(client: Client, cloud_admin: User) -> None:
    waiting, over = make_plan({"a": []}), make_plan({"a": []}, state="FAILED")
    text = overview(client, cloud_admin)
    assert str(waiting.uuid) in text
    assert str(over.uuid) not in text


def test_records_are_counted_up_to_a_limit(client: Client, cloud_admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("audits.console.overview", "watcher_site.templatetags.console"):
        monkeypatch.setattr(f"{module}.MOST_COUNTED", 2)
    make_plan({"a": [], "b": [], "c": []})
    text = overview(client, cloud_admin)
    assert "<strong>2+</strong> actions" in text
    assert "2+ pending" in text
    assert "<strong>1</strong> plan" in text


def test_a_service_that_gave_no_sign_of_life_is_failed(client: Client, cloud_admin: User) -> None:
    Service.objects.create(name=Service.APPLIER, host="control1", last_seen_up=timezone.now())
    Service.objects.create(name=Service.DECISION_ENGINE, host="control2", created_at="2020-01-01T00:00Z")
    text = overview(client, cloud_admin)
    assert "state-active" in text
    assert "state-failed" in text


def test_a_service_that_is_gone_is_not_said_to_have_been_seen_just_now(client: Client, cloud_admin: User) -> None:
    seen = timezone.now() - timedelta(seconds=45)
    Service.objects.create(name=Service.APPLIER, host="control1", last_seen_up=seen)
    assert "45 seconds ago" in overview(client, cloud_admin)


def test_a_listener_that_lags_is_named(client: Client, cloud_admin: User) -> None:
    Service.register(Service.LISTENER, "control1").report(lag=90, handled=1, skipped=0, problem=None)
    assert "watcher-listener on control1 is 90 seconds behind the cloud." in overview(client, cloud_admin)


def test_a_plan_is_called_by_the_name_of_its_audit(client: Client, cloud_admin: User) -> None:
    plan = make_plan({"a": []}, audit=make_audit("nightly"))
    link = reverse("plans:detail", args=[plan.uuid])
    assert f'href="{link}" title="nightly"><bdi>nightly</bdi></a>' in overview(client, cloud_admin)


def test_someone_without_rights_reads_whom_to_ask(client: Client, stranger: User) -> None:
    make_plan({"a": []}, audit=make_audit("secret audit"))
    text = overview(client, stranger)
    assert "ask a cloud administrator" in text
    assert "secret audit" not in text


def test_a_reader_is_not_offered_a_new_audit(client: Client, reader: User) -> None:
    assert reverse("audits:create") not in overview(client, reader)


def test_the_console_is_found_without_the_slash(client: Client) -> None:
    assert client.get("/console").headers["Location"] == reverse("home")


def test_a_page_that_is_not_there_looks_like_the_others(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    response = client.get("/console/nowhere/")
    assert response.status_code == 404
    assert "This page does not exist" in response.content.decode()


def test_logging_in_leads_back_to_where_one_was_going(client: Client, cloud_admin: User) -> None:
    wanted = reverse("plans:list")
    login = client.get(wanted).headers["Location"]
    response = client.post(login, {"username": "alice", "password": "alice-password", "next": wanted})
    assert response.headers["Location"] == wanted


@pytest.mark.parametrize("number", [2, 12])
def test_the_overview_takes_the_same_queries_whatever_there_is(
    client: Client, cloud_admin: User, django_assert_num_queries: Any, number: int
) -> None:
    node = make_node()
    for index in range(number):
        make_plan({"a": []}, audit=make_audit(f"audit {index}"), state="ONGOING" if index % 2 else "RECOMMENDED")
        make_server(f"server-{index}", node)
    client.force_login(cloud_admin)
    with django_assert_num_queries(12):
        client.get(reverse("home"))
