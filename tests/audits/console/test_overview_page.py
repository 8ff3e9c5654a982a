"""The overview, which is the first page of the console."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.builders import make_audit, make_node, make_plan, make_server
from watcher_site.models import Service
from watcher_site.templatetags.console import counted


def overview(client: Client, user: User) -> str:
    client.force_login(user)
    return client.get(reverse("home")).content.decode()


def test_overview_lists_recommended_plans(client: Client, cloud_admin: User) -> None:
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


def test_service_without_a_heartbeat_is_shown_as_failed(client: Client, cloud_admin: User) -> None:
    Service.objects.create(name=Service.APPLIER, host="control1", last_seen_up=timezone.now())
    Service.objects.create(name=Service.DECISION_ENGINE, host="control2", created_at="2020-01-01T00:00Z")
    text = overview(client, cloud_admin)
    assert "state-active" in text
    assert "state-failed" in text


def test_overview_without_services_is_correct_after_services_were_stopped(client: Client, cloud_admin: User) -> None:
    Service.register(Service.APPLIER, "control1").retire()
    text = overview(client, cloud_admin)
    assert "No services are running." in text
    assert "yet" not in text.partition('id="services-heading"')[2]


def test_time_of_the_last_heartbeat_is_shown(client: Client, cloud_admin: User) -> None:
    seen = timezone.now() - timedelta(seconds=45)
    Service.objects.create(name=Service.APPLIER, host="control1", last_seen_up=seen)
    assert "45 seconds ago" in overview(client, cloud_admin)


def test_lag_of_a_listener_is_shown_with_its_name(client: Client, cloud_admin: User) -> None:
    Service.register(Service.LISTENER, "control1").report(lag=90, handled=1, skipped=0, problem=None)
    assert "watcher-listener on control1 is 90 seconds behind the cloud." in overview(client, cloud_admin)


def test_plan_is_shown_with_the_name_of_its_audit(client: Client, cloud_admin: User) -> None:
    plan = make_plan({"a": []}, audit=make_audit("nightly"))
    link = reverse("plans:detail", args=[plan.uuid])
    assert f'href="{link}" title="nightly"><bdi>nightly</bdi></a>' in overview(client, cloud_admin)


def test_user_without_permissions_sees_only_how_to_get_them(client: Client, stranger: User) -> None:
    make_plan({"a": []}, audit=make_audit("secret audit"))
    text = overview(client, stranger)
    assert "ask a cloud administrator" in text
    assert "secret audit" not in text


def test_reader_sees_no_link_to_create_an_audit(client: Client, reader: User) -> None:
    assert reverse("audits:create") not in overview(client, reader)


def test_console_without_trailing_slash_redirects_to_the_overview(client: Client) -> None:
    assert client.get("/console").headers["Location"] == reverse("home")


def test_unknown_page_is_a_404_page_of_the_console(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    response = client.get("/console/nowhere/")
    assert response.status_code == 404
    assert "This page does not exist" in response.content.decode()


def test_login_redirects_to_the_requested_page(client: Client, cloud_admin: User) -> None:
    wanted = reverse("plans:list")
    login = client.get(wanted).headers["Location"]
    response = client.post(login, {"username": "alice", "password": "alice-password", "next": wanted})
    assert response.headers["Location"] == wanted


@pytest.mark.parametrize("number", [2, 12])
def test_overview_query_count_does_not_depend_on_the_number_of_records(
    client: Client, cloud_admin: User, django_assert_num_queries: Any, number: int
) -> None:
    node = make_node()
    for index in range(number):
        make_plan({"a": []}, audit=make_audit(f"audit {index}"), state="ONGOING" if index % 2 else "RECOMMENDED")
        make_server(f"server-{index}", node)
    client.force_login(cloud_admin)
    with django_assert_num_queries(12):
        client.get(reverse("home"))


@pytest.mark.parametrize(("number", "shown"), [(999, "999"), (1234, "1,234"), (10_001, "10,000+")])
def test_counts_have_group_separators(number: int, shown: str) -> None:
    assert counted(number) == shown
