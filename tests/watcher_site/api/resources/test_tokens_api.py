"""``/v1/tokens``: the list, creation and revocation of tokens in the API."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from knox.models import AuthToken

from tests.api import Caller, fault
from tests.watcher_site.api.test_authentication import basic
from watcher_site.accounts.tokens import make_token
from watcher_site.models import HistoryEntry, TokenDetails

pytestmark = pytest.mark.django_db

VERSION = "1.14"
HEADERS = {"OpenStack-API-Version": f"infra-optim {VERSION}"}


@pytest.fixture
def rob(reader: User) -> Caller:
    return Caller(reader, VERSION)


@pytest.fixture
def alice(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, VERSION)


def with_token(token: str, method: str, path: str, body: Any = None) -> Any:
    headers = HEADERS | {"X-Auth-Token": token}
    data = json.dumps(body) if body is not None else ""
    return Client().generic(method, path, data, content_type="application/json", headers=headers)


def ids(answer: Any) -> set[str]:
    return {token["id"] for token in answer.json()["tokens"]}


def test_tokens_require_their_version(reader: User) -> None:
    assert Caller(reader, "1.13").get("/tokens").status_code == 406
    assert "tokens" not in Caller(reader, "1.13").get("/").json()
    assert "tokens" in Caller(reader, VERSION).get("/").json()


def test_login_is_required(client: Client) -> None:
    assert client.get("/v1/tokens", headers=HEADERS).status_code == 401


def test_created_token_is_returned_only_once(rob: Caller) -> None:
    made = rob.post("/tokens", {"name": "night job", "hours": 2, "read_only": True, "group": "reader"})
    token = made.json()
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    assert made["Location"].endswith(f"/v1/tokens/{token['id']}")
    assert with_token(token["token"], "GET", "/v1/goals").status_code == 200
    shown = rob.get(f"/tokens/{token['id']}").json()
    listed = rob.get("/tokens/detail").json()["tokens"]
    assert {**shown, "token": token["token"], "last_used_at": None} == token
    assert listed == [shown]
    values = (shown["name"], shown["user"], shown["read_only"], shown["group"])
    assert values == ("night job", "rob", True, "reader")
    assert token["token"] not in str(list(HistoryEntry.objects.values()))


def test_token_is_created_without_attributes(rob: Caller) -> None:
    made = rob.post("/tokens", {}).json()
    assert (made["name"], made["read_only"], made["group"]) == ("", False, "")


def test_http_basic_creates_a_token(client: Client, reader: User) -> None:
    cache.clear()
    headers = HEADERS | basic("rob", "rob-password")
    assert client.post("/v1/tokens", "{}", content_type="application/json", headers=headers).status_code == 201


def test_session_cannot_create_a_token_without_a_csrf_token(reader: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(reader)
    assert client.post("/v1/tokens", "{}", content_type="application/json", headers=HEADERS).status_code == 403
    assert not AuthToken.objects.exists()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"hours": 0}, "hours"),
        ({"hours": 87601}, "hours"),
        ({"hours": "2"}, "hours"),
        ({"hours": True}, "hours"),
        ({"name": 1}, "name"),
        ({"name": None}, "name. Value: 'None'. It must be a text, or be left out."),
        ({"name": "a" * 101}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"group": "cloud-admin"}, "group"),
        ({"group": ["reader"]}, "group"),
        ({"read_only": "yes"}, "read_only"),
        ({"user": "alice"}, "user"),
        ({"token": "x"}, "token"),
        ([], "token"),
    ],
)
def test_invalid_body_is_refused(rob: Caller, body: Any, reason: str) -> None:
    answer = rob.post("/tokens", body)
    assert answer.status_code == 400
    assert reason in fault(answer)
    assert not AuthToken.objects.exists()


@pytest.mark.parametrize("limits", [{}, {"read_only": True}, {"group": "reader"}])
def test_token_cannot_create_a_token(reader: User, limits: dict[str, Any]) -> None:
    _, token = make_token(reader, **limits)
    assert with_token(token, "POST", "/v1/tokens", {}).status_code == 403
    assert AuthToken.objects.count() == 1


@pytest.mark.parametrize(("limits", "status"), [({}, 204), ({"read_only": True}, 403), ({"group": "reader"}, 403)])
def test_only_an_unlimited_token_revokes_tokens(reader: User, limits: dict[str, Any], status: int) -> None:
    made, token = make_token(reader, **limits)
    assert with_token(token, "DELETE", f"/v1/tokens/{made.token_key}").status_code == status


def test_revoked_token_is_refused(rob: Caller, reader: User) -> None:
    made, token = make_token(reader)
    assert rob.delete(f"/tokens/{made.token_key}").status_code == 204
    assert with_token(token, "GET", "/v1/tokens").status_code == 401
    assert rob.delete(f"/tokens/{made.token_key}").status_code == 404
    entry = HistoryEntry.objects.get(deed="token.revoke")
    assert (entry.object_name, entry.details) == ("rob", {"key": made.token_key})


def test_tokens_of_other_accounts_are_neither_shown_nor_revoked(rob: Caller, cloud_admin: User) -> None:
    made, token = make_token(cloud_admin)
    path = f"/tokens/{made.token_key}"
    assert ids(rob.get("/tokens")) == ids(rob.get("/tokens?user=alice")) == set()
    assert (rob.get(path).status_code, rob.delete(path).status_code) == (404, 404)
    assert with_token(token, "GET", "/v1/goals").status_code == 200


def test_user_manager_lists_all_tokens_and_filters_by_user(alice: Caller, cloud_admin: User, reader: User) -> None:
    mine, robs = (make_token(user)[0].token_key for user in (cloud_admin, reader))
    assert ids(alice.get("/tokens")) == {mine, robs}
    assert ids(alice.get("/tokens?user=rob")) == {robs}


def test_token_limited_to_another_group_lists_only_own_tokens(cloud_admin: User, reader: User) -> None:
    make_token(reader)
    cloud_admin.groups.add(reader.groups.get())
    made, token = make_token(cloud_admin, group="reader")
    assert ids(with_token(token, "GET", "/v1/tokens")) == {made.token_key}


def test_user_manager_revokes_the_token_of_another_account(alice: Caller, reader: User) -> None:
    made, _ = make_token(reader)
    assert alice.delete(f"/tokens/{made.token_key}").status_code == 204


def test_token_of_an_account_with_more_permissions_is_not_revoked(alice: Caller) -> None:
    made, _ = make_token(User.objects.create_superuser("root", password="root-password"))
    answer = alice.delete(f"/tokens/{made.token_key}")
    assert (answer.status_code, AuthToken.objects.count()) == (409, 1)
    assert "rights that you do not have" in fault(answer)


def test_expired_tokens_are_not_listed(rob: Caller, reader: User) -> None:
    AuthToken.objects.create(reader, expiry=timedelta(seconds=-1))
    assert ids(rob.get("/tokens")) == set()


def test_token_of_an_earlier_release_is_listed(rob: Caller, reader: User) -> None:
    AuthToken.objects.create(reader)
    assert not TokenDetails.objects.exists()
    (shown,) = rob.get("/tokens/detail").json()["tokens"]
    assert (shown["name"], shown["read_only"], shown["group"], shown["last_used_at"]) == ("", False, "", None)


@pytest.mark.parametrize("sort_key", ["id", "created_at", "expires_at"])
def test_list_is_paged(rob: Caller, reader: User, sort_key: str) -> None:
    made = {make_token(reader, hours)[0].token_key for hours in (1, 2, 3)}
    first = rob.get(f"/tokens?limit=2&sort_key={sort_key}").json()
    marker = first["tokens"][-1]["id"]
    second = rob.get(f"/tokens?limit=2&sort_key={sort_key}&marker={marker}").json()
    assert {token["id"] for token in first["tokens"] + second["tokens"]} == made
    assert f"marker={marker}" in first["next"]


@pytest.mark.parametrize("query", ["marker=x", "sort_key=digest", "name=x", "user=%00"])
def test_invalid_query_argument_is_refused(rob: Caller, query: str) -> None:
    assert rob.get(f"/tokens?{query}").status_code in {400, 404}


@pytest.mark.parametrize("count", [1, 20])
def test_list_query_count_does_not_depend_on_the_number_of_tokens(
    reader: User, count: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        _, token = make_token(reader)
    with_token(token, "GET", "/v1/tokens")
    with django_assert_num_queries(2):  # the person with the token, the tokens
        assert len(ids(with_token(token, "GET", "/v1/tokens/detail"))) == count
