"""Tokens of Keystone in X-Auth-Token: their acceptance, and the responses if Keystone refuses or fails."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from knox.models import AuthToken
from pytest_django import Settings

from tests.api import TokenCaller
from tests.builders import make_plan
from tests.waiting import wait_for
from tests.watcher_site.api.test_authentication import basic
from tests.watcher_site.keystone.identity import PROJECT, Keystone
from watcher_site.keystone import tokens
from watcher_site.keystone.tokens import middleware
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
SYSTEM: dict[str, Any] = {"project": None, "system": {"all": True}}


def get(client: Client, token: str, path: str = "/v1/goals", **headers: str) -> Any:
    return client.get(path, headers={"X-Auth-Token": token, "OpenStack-API-Version": "infra-optim 1.14", **headers})


def test_valid_token_authenticates(client: Client, keystone: Keystone) -> None:
    assert get(client, keystone.issue("rosa", "admin")).status_code == 200


def test_token_is_validated_once_and_then_cached(client: Client, keystone: Keystone) -> None:
    token = keystone.issue("rosa", "admin")
    for _ in range(3):
        assert get(client, token).status_code == 200
    assert keystone.validations == [token]


def test_read_of_an_action_takes_no_query_for_the_user(client: Client, keystone: Keystone) -> None:
    token, action = keystone.issue("rosa", "admin"), make_plan({"a": []}).actions.get()
    with CaptureQueriesContext(connection) as queries:
        assert get(client, token, f"/v1/actions/{action.uuid}").status_code == 200
    assert len(queries) == 1


def test_no_account_is_created_for_the_user(client: Client, keystone: Keystone) -> None:
    get(client, keystone.issue("rosa", "admin"))
    assert not User.objects.exists()


@pytest.mark.parametrize("token", ["", "nonsense", "a" * 500, "\u00e9", "two words", "0" * 64])
def test_forged_token_is_refused_in_the_error_format_of_keystone(
    client: Client, keystone: Keystone, token: str
) -> None:
    answer = get(client, token)
    assert answer.status_code == 401
    assert answer.json() == {
        "error": {
            "code": 401,
            "title": "Unauthorized",
            "message": "The request you have made requires authentication.",
        }
    }


def test_refusal_has_the_public_address_of_keystone(client: Client, keystone: Keystone) -> None:
    expected = 'Keystone uri="https://keystone.example.org/v3"'
    assert get(client, "nonsense")["WWW-Authenticate"] == expected
    assert client.get("/v1/goals")["WWW-Authenticate"] == expected


def test_refusal_has_the_auth_url_without_a_public_address(
    client: Client, keystone: Keystone, settings: Settings, tmp_path: Any
) -> None:
    file = keystone.write_options(tmp_path / "other.conf", www_authenticate_uri=None)
    settings.KEYSTONE_CONFIG = str(file)
    assert client.get("/v1/goals")["WWW-Authenticate"] == f'Keystone uri="{keystone.url}"'


def test_token_of_another_keystone_is_refused(client: Client, keystone: Keystone) -> None:
    token = keystone.issue("rosa", "admin")
    del keystone.tokens[token]
    assert get(client, token).status_code == 401


def test_expired_token_is_refused(client: Client, keystone: Keystone) -> None:
    assert get(client, keystone.issue("rosa", "admin", lifetime=timedelta(seconds=-1))).status_code == 401


def test_cached_token_is_refused_after_its_expiry(client: Client, keystone: Keystone) -> None:
    token = keystone.issue("rosa", "admin", lifetime=timedelta(seconds=1.5))
    assert get(client, token).status_code == 200
    wait_for(lambda: get(client, token).status_code == 401)
    assert keystone.validations == [token]


def test_token_without_a_scope_is_refused_and_logged(
    client: Client, keystone: Keystone, caplog: pytest.LogCaptureFixture
) -> None:
    assert get(client, keystone.issue("rosa", project=None)).status_code == 401
    assert "A token without a scope was refused." in caplog.text


def test_local_token_is_refused_if_only_keystone_is_a_source(
    client: Client, keystone: Keystone, cloud_admin: User
) -> None:
    token = AuthToken.objects.create(cloud_admin)[1]
    assert get(client, token).status_code == 401
    assert client.get("/v1/goals", headers={"Authorization": f"Token {token}"}).status_code == 401


def test_local_and_keystone_tokens_are_accepted_if_both_are_sources(
    client: Client, both: Keystone, cloud_admin: User
) -> None:
    own = AuthToken.objects.create(cloud_admin)[1]
    assert get(client, own).status_code == 200
    assert get(client, both.issue("rosa", "admin")).status_code == 200
    assert client.get("/v1/goals", headers={"Authorization": f"Token {own}"}).status_code == 200


def test_local_token_is_not_sent_to_keystone(client: Client, both: Keystone, cloud_admin: User) -> None:
    get(client, AuthToken.objects.create(cloud_admin)[1])
    get(client, "0" * 64)
    assert both.validations == []


def test_keystone_token_takes_no_query_for_local_tokens(client: Client, both: Keystone) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert get(client, both.issue("rosa", "admin"), "/v1/actions").status_code == 200
    assert len(queries) == 1


def test_identity_headers_of_the_client_are_ignored(client: Client, keystone: Keystone) -> None:
    forged = {"X-Roles": "admin", "X-Identity-Status": "Confirmed", "OpenStack-System-Scope": "all"}
    assert client.get("/v1/goals", headers=forged).status_code == 401
    assert get(client, keystone.issue("rosa", "nothing"), **forged).status_code == 403


def test_unknown_role_has_no_permissions(client: Client, keystone: Keystone) -> None:
    token = keystone.issue("rosa", "load-balancer_member")
    for path in ("/v1", "/v1/goals", "/v1/servers", "/compute/v2.1/servers", f"/orchestration/v1/{PROJECT}/stacks"):
        assert get(client, token, path).status_code == 403


def test_missing_permission_is_recorded_with_user_name_and_user_id(client: Client, keystone: Keystone) -> None:
    get(client, keystone.issue("rosa", "nothing"))
    entry = HistoryEntry.objects.get()
    assert (entry.user, entry.user_id, entry.outcome) == ("rosa", "id-of-rosa", "refused")


def test_refused_token_is_recorded(client: Client, keystone: Keystone) -> None:
    get(client, "nonsense")
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.outcome, entry.user) == ("user.login", "refused", "")


def test_user_name_in_any_script_is_recorded(client: Client, keystone: Keystone) -> None:
    token = keystone.issue("Zo\u00eb \u5c71\u7530", "admin")
    plan = make_plan({"a": []})
    assert TokenCaller(token).post(f"/action_plans/{plan.uuid}/start").status_code == 200
    assert HistoryEntry.objects.get().user == "Zo\u00eb \u5c71\u7530"


# Service tokens


def test_expired_token_is_accepted_with_a_service_token(client: Client, keystone: Keystone) -> None:
    service = keystone.issue("nova", "service", project="service")
    expired = keystone.issue("rosa", "admin", lifetime=timedelta(seconds=-1))
    assert get(client, expired, **{"X-Service-Token": service}).status_code == 200


def test_user_token_is_refused_as_a_service_token(client: Client, keystone: Keystone) -> None:
    person, expired = keystone.issue("ines", "member"), keystone.issue("rosa", "admin", lifetime=timedelta(seconds=-1))
    assert get(client, expired, **{"X-Service-Token": person}).status_code == 401
    assert get(client, keystone.issue("rosa", "admin"), **{"X-Service-Token": person}).status_code == 401


def test_service_token_adds_no_permissions_to_the_user(client: Client, keystone: Keystone) -> None:
    service = keystone.issue("nova", "service", "admin", **SYSTEM)
    assert get(client, keystone.issue("rosa", "nothing"), **{"X-Service-Token": service}).status_code == 403


# Application credentials


def restricted(keystone: Keystone, path: str) -> str:
    rule = {"service": "infra-optim", "method": "GET", "path": path}
    credential = {"id": "c", "name": "c", "restricted": True, "access_rules": [rule]}
    catalog = [{"id": "w", "type": "infra-optim", "name": "watcher", "endpoints": []}]
    return keystone.issue("rosa", "admin", application_credential=credential, catalog=catalog)


def test_access_rules_of_an_application_credential_are_enforced(client: Client, keystone: Keystone) -> None:
    token = restricted(keystone, "/v1/goals")
    assert get(client, token, "/v1/goals").status_code == 200
    assert get(client, token, "/v1/actions").status_code == 401


def test_access_rules_without_a_catalog_are_refused(client: Client, keystone: Keystone) -> None:
    token = restricted(keystone, "/v1/goals")
    del keystone.tokens[token]["catalog"]
    assert get(client, token, "/v1/goals").status_code == 401


# Outages of Keystone


def assert_unavailable(answer: Any) -> None:
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert "Keystone does not answer" in json.loads(answer.json()["error_message"])["faultstring"]


def test_keystone_outage_is_503(client: Client, keystone: Keystone) -> None:
    token = keystone.issue("rosa", "admin")
    keystone.shutdown()
    keystone.server_close()
    assert_unavailable(get(client, token))


def test_keystone_error_is_503(client: Client, keystone: Keystone) -> None:
    keystone.is_failing = True
    assert_unavailable(get(client, keystone.issue("rosa", "admin")))


def test_refused_service_password_is_503(
    client: Client, keystone: Keystone, settings: Settings, tmp_path: Any
) -> None:
    settings.KEYSTONE_CONFIG = str(keystone.write_options(tmp_path / "other.conf", password="wrong"))
    assert_unavailable(get(client, keystone.issue("rosa", "admin")))


def test_request_to_keystone_has_a_timeout(
    client: Client, keystone: Keystone, settings: Settings, tmp_path: Any
) -> None:
    settings.KEYSTONE_CONFIG = str(keystone.write_options(tmp_path / "other.conf", http_connect_timeout=1))
    keystone.answering.clear()
    assert_unavailable(get(client, keystone.issue("rosa", "admin")))


def test_tls_error_of_keystone_is_503(client: Client, keystone: Keystone, settings: Settings, tmp_path: Any) -> None:
    address = keystone.url.replace("http:", "https:")
    settings.KEYSTONE_CONFIG = str(keystone.write_options(tmp_path / "other.conf", auth_url=address))
    assert_unavailable(get(client, keystone.issue("rosa", "admin")))


def test_cached_tokens_and_local_accounts_are_accepted_during_a_keystone_outage(
    client: Client, both: Keystone, cloud_admin: User
) -> None:
    token, own = both.issue("rosa", "admin"), AuthToken.objects.create(cloud_admin)[1]
    assert get(client, token).status_code == 200
    both.shutdown()
    both.server_close()
    assert get(client, token).status_code == 200
    assert get(client, own).status_code == 200
    assert client.get("/v1/goals", headers=basic("alice", "alice-password")).status_code == 200
    client.force_login(cloud_admin)
    assert client.get("/console/").status_code == 200


def test_cached_token_is_accepted_while_all_threads_wait_for_keystone(
    client: Client, keystone: Keystone, hang: Callable[[], None]
) -> None:
    token = keystone.issue("rosa", "admin")
    assert get(client, token).status_code == 200
    hang()
    assert get(client, token).status_code == 200
    assert keystone.validations.count(token) == 1


def test_uncached_token_is_503_while_all_threads_wait_for_keystone(
    client: Client, keystone: Keystone, hang: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "TURN_SECONDS", 0)
    assert get(client, keystone.issue("rosa", "admin")).status_code == 200
    hang()
    assert_unavailable(get(client, keystone.issue("rosa", "admin")))


def test_token_is_accepted_after_a_keystone_outage(client: Client, keystone: Keystone) -> None:
    token = keystone.issue("rosa", "admin")
    keystone.is_failing = True
    assert get(client, token).status_code == 503
    keystone.is_failing = False
    assert get(client, token).status_code == 200


def test_default_keystone_timeout_is_ten_seconds(keystone: Keystone, settings: Settings) -> None:
    assert middleware(settings.KEYSTONE_CONFIG)._session.timeout == 10
