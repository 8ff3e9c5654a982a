"""Authentication by HTTP Basic, tokens and sessions, and the permissions of an account."""

import base64
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from knox.models import AuthToken

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clear_cache() -> None:
    cache.clear()


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.mark.parametrize("path", ["/v1", "/v1/goals", "/v1/actions/detail", "/v1/services", "/v1/nothing/here"])
def test_request_without_a_login_is_refused(client: Client, path: str) -> None:
    assert client.get(path).status_code in {401, 404}
    assert "goals" not in client.get(path).content.decode()


def test_refusal_has_the_error_format_of_the_api(client: Client) -> None:
    answer = client.get("/v1/goals")
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == 401
    assert "WWW-Authenticate" in answer


def test_discovery_requires_no_login(client: Client) -> None:
    assert client.get("/").json()["versions"][0]["max_version"] == "1.17"


def test_http_basic_authenticates(client: Client, cloud_admin: User) -> None:
    assert client.get("/v1/goals", headers=basic("alice", "alice-password")).status_code == 200


def test_wrong_password_is_refused(client: Client, cloud_admin: User) -> None:
    assert client.get("/v1/goals", headers=basic("alice", "wrong")).status_code == 401


def test_repeated_password_is_verified_once(client: Client, cloud_admin: User, monkeypatch: Any) -> None:
    assert client.get("/v1/goals", headers=basic("alice", "alice-password")).status_code == 200
    monkeypatch.setattr("django.contrib.auth.base_user.check_password", None)
    assert client.get("/v1/goals", headers=basic("alice", "alice-password")).status_code == 200


def test_old_password_is_refused_after_a_change(client: Client, cloud_admin: User) -> None:
    client.get("/v1/goals", headers=basic("alice", "alice-password"))
    cloud_admin.set_password("another")
    cloud_admin.save()
    assert client.get("/v1/goals", headers=basic("alice", "alice-password")).status_code == 401


def test_disabled_account_is_refused_despite_a_cached_verification(client: Client, cloud_admin: User) -> None:
    client.get("/v1/goals", headers=basic("alice", "alice-password"))
    User.objects.filter(pk=cloud_admin.pk).update(is_active=False)
    assert client.get("/v1/goals", headers=basic("alice", "alice-password")).status_code == 401


@pytest.mark.parametrize("header", ["Basic", "Basic x", "Basic " + base64.b64encode(b"\xff\0:\0").decode(), "Token"])
def test_malformed_credential_is_refused(client: Client, header: str) -> None:
    assert client.get("/v1/goals", headers={"Authorization": header}).status_code == 401


def test_token_authenticates_in_both_headers(client: Client, cloud_admin: User) -> None:
    _, token = AuthToken.objects.create(cloud_admin)
    assert client.get("/v1/goals", headers={"X-Auth-Token": token}).status_code == 200
    assert client.get("/v1/goals", headers={"Authorization": f"Token {token}"}).status_code == 200


@pytest.mark.parametrize("token", ["", "nonsense", "a" * 500, "\u00e9"])
def test_wrong_token_is_refused(client: Client, token: str) -> None:
    assert client.get("/v1/goals", headers={"X-Auth-Token": token}).status_code == 401


def test_expired_token_is_refused(client: Client, cloud_admin: User) -> None:
    from datetime import timedelta

    _, token = AuthToken.objects.create(cloud_admin, expiry=timedelta(seconds=-1))
    assert client.get("/v1/goals", headers={"X-Auth-Token": token}).status_code == 401


def test_session_authenticates(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    assert client.get("/v1/goals").status_code == 200


def test_session_cannot_write_without_a_csrf_token(cloud_admin: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cloud_admin)
    assert client.post("/v1/audits", "{}", content_type="application/json").status_code == 403


def test_missing_permission_is_403_with_the_policy_name(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    answer = client.get("/v1/goals")
    assert answer.status_code == 403
    assert "goal:get_all" in answer.content.decode()


def test_reader_can_read_action_plans(client: Client, reader: User) -> None:
    client.force_login(reader)
    assert client.get("/v1/action_plans/detail").status_code == 200
