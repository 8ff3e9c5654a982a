"""The expiry of idle sessions, and the headers for caches and browsers."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from knox.models import AuthToken

from tests.watcher_site.site_process import run
from watcher_site.web.middleware import SlidingSession

pytestmark = pytest.mark.django_db

HOUR = 3600


def expiry() -> Any:
    return Session.objects.get().expire_date - timezone.now()


def test_idle_session_ends(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    assert client.get(reverse("home")).status_code == 200
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert client.get(reverse("home")).status_code == 302


def test_new_session_lasts_for_the_idle_timeout(
    client: Client, cloud_admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "SESSION_COOKIE_AGE", HOUR)
    client.force_login(cloud_admin)
    assert timedelta(minutes=59) < expiry() <= timedelta(hours=1)


def test_request_after_some_time_prolongs_the_session(
    client: Client, cloud_admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "SESSION_COOKIE_AGE", HOUR)
    client.force_login(cloud_admin)
    session = client.session
    session[SlidingSession.KEY] -= 600
    session.save()
    Session.objects.update(expire_date=timezone.now() + timedelta(minutes=50))
    answer = client.get(reverse("home"))
    assert timedelta(minutes=59) < expiry() <= timedelta(hours=1)
    assert answer.cookies[settings.SESSION_COOKIE_NAME]["max-age"] == HOUR


def test_request_shortly_after_another_does_not_store_the_session(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    assert settings.SESSION_COOKIE_NAME not in client.get(reverse("home")).cookies


@pytest.mark.parametrize("path", ["/v1/goals", "/v1", "/compute/v2.1/servers", "/metrics", "/v1/openapi.json"])
def test_api_response_is_not_cacheable(client: Client, cloud_admin: User, path: str) -> None:
    _, token = AuthToken.objects.create(cloud_admin)
    answer = client.get(path, headers={"X-Auth-Token": token})
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    assert {"X-Auth-Token", "Authorization", "Cookie"} <= {name.strip() for name in answer["Vary"].split(",")}


def test_console_page_is_private_for_caches(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    answer = client.get(reverse("home"))
    assert "private" in answer["Cache-Control"]
    assert "Cookie" in answer["Vary"]


def test_refusal_is_not_cacheable(client: Client) -> None:
    assert "no-store" in client.get("/v1/goals")["Cache-Control"]


def test_static_file_is_cacheable(client: Client) -> None:
    answer = client.get("/static/watcher_site/icon.svg")
    assert answer.status_code == 200
    assert "no-store" not in answer["Cache-Control"]
    assert "Cookie" not in answer.get("Vary", "")


@pytest.mark.parametrize(("variables", "preload"), [({}, False), ({"WATCHER_HSTS_PRELOAD": "true"}, True)])
def test_hsts_preloading_is_off_unless_configured(variables: dict[str, str], preload: bool) -> None:
    ended = run("manage.py", "diffsettings", "--all", **variables)
    assert f"SECURE_HSTS_PRELOAD = {preload}" in ended.stdout


@pytest.mark.parametrize("variables", [{}, {"WATCHER_HSTS_PRELOAD": "true"}])
def test_deployment_check_passes_with_and_without_hsts_preloading(variables: dict[str, str]) -> None:
    ended = run("manage.py", "check", "--deploy", "--fail-level", "WARNING", **variables)
    assert ended.returncode == 0, ended.stderr
