"""The limit on the number of requests of a person."""

import json
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.core.cache import caches
from django.test import Client
from pytest_django import Settings
from rest_framework.views import APIView

from tests.api import Caller, fault
from tests.watcher_site.site_process import run
from watcher_site.api.rates import RequestRate
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def limited(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """At most two requests in a minute."""
    settings.API_MOST_REQUESTS = 2
    monkeypatch.setattr(APIView, "throttle_classes", [RequestRate])
    caches["request_rates"].clear()
    yield
    caches["request_rates"].clear()


def statuses(caller: Caller, number: int = 3) -> list[int]:
    return [caller.get("/goals").status_code for _ in range(number)]


def test_requests_are_not_limited_without_the_setting(api: Caller) -> None:
    assert APIView.throttle_classes == []
    assert set(statuses(api, 10)) == {200}


def test_requests_beyond_the_limit_are_429_with_retry_after(limited: None, api: Caller) -> None:
    assert statuses(api, 2) == [200, 200]
    refused = api.get("/goals")
    assert refused.status_code == 429
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert "throttled" in fault(refused)


def test_refused_request_changes_nothing(limited: None, api: Caller) -> None:
    statuses(api)
    assert api.post("/audits", {"goal": "dummy", "audit_type": "ONESHOT"}).status_code == 429
    assert not HistoryEntry.objects.filter(deed="audit.create").exists()


def test_each_user_has_a_separate_limit(limited: None, api: Caller, reader: User) -> None:
    statuses(api)
    assert statuses(Caller(reader, "1.7")) == [200, 200, 429]


def test_anonymous_clients_are_counted_by_address(limited: None, client: Client) -> None:
    assert [client.get("/", headers={"Accept": "application/json"}).status_code for _ in range(3)] == [200, 200, 429]
    other = client.get("/", headers={"Accept": "application/json"}, REMOTE_ADDR="192.0.2.9")
    assert other.status_code == 200


def test_mount_reports_the_limit_in_the_format_of_its_service(
    limited: None, client: Client, cloud_admin: User
) -> None:
    client.force_login(cloud_admin)
    for _ in range(2):
        client.get("/compute/v2.1/servers")
    refused = client.get("/compute/v2.1/servers")
    assert (refused.status_code, list(json.loads(refused.content))) == (429, ["overLimit"])
    assert "Retry-After" in refused


def test_environment_variable_sets_the_limit() -> None:
    code = "from rest_framework.views import APIView; print(APIView.throttle_classes)"
    ended = run("manage.py", "shell", "-c", code, WATCHER_API_MOST_REQUESTS="600")
    assert "watcher_site.api.rates.RequestRate" in ended.stdout
