"""The number of statements of a request, each of which costs a round trip, and uncached permissions."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from knox.models import AuthToken

from tests.builders import make_plan
from tests.watcher_site.api.test_authentication import basic

pytestmark = pytest.mark.django_db

VERSION = {"OpenStack-API-Version": "infra-optim 1.7"}
SKIP = [{"op": "replace", "path": "/state", "value": "SKIPPED"}]


@pytest.fixture
def token(client: Client, cloud_admin: User) -> dict[str, str]:
    """Return the headers of a token that was used recently."""
    headers = VERSION | {"X-Auth-Token": AuthToken.objects.create(cloud_admin)[1]}
    client.get("/v1/goals", headers=headers)
    return headers


@pytest.fixture
def password(client: Client, cloud_admin: User) -> dict[str, str]:
    """Return the headers of HTTP Basic with a credential that was verified recently."""
    cache.clear()
    headers = VERSION | basic("alice", "alice-password")
    client.get("/v1/goals", headers=headers)
    return headers


def words(queries: CaptureQueriesContext) -> list[str]:
    return [query["sql"].split()[0] for query in queries.captured_queries]


def path_of_action() -> str:
    return f"/v1/actions/{make_plan({'a': []}).actions.get().uuid}"


@pytest.mark.parametrize("credential", ["token", "password"])
def test_read_of_an_action_takes_two_queries(client: Client, credential: str, request: pytest.FixtureRequest) -> None:
    headers, path = request.getfixturevalue(credential), path_of_action()
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path, headers=headers).status_code == 200
    assert words(queries) == ["SELECT", "SELECT"]


def test_skip_takes_one_lock_and_one_update_with_its_history_entry(client: Client, token: dict[str, str]) -> None:
    path = path_of_action()
    with CaptureQueriesContext(connection) as queries:
        answer = client.patch(path, json.dumps(SKIP), content_type="application/json", headers=token)
    assert answer.json()["state"] == "SKIPPED"
    update = {"postgresql": ["WITH"], "sqlite": ["SAVEPOINT", "UPDATE", "INSERT", "RELEASE"]}[connection.vendor]
    assert words(queries) == ["SELECT", "SAVEPOINT", "SELECT", *update, "RELEASE", "SELECT"]


@pytest.mark.parametrize("path", ["/v1/actions", "/v1/actions/detail"])
@pytest.mark.parametrize("count", [1, 50])
def test_action_list_takes_two_queries_for_any_number_of_actions(
    client: Client, token: dict[str, str], path: str, count: int, django_assert_num_queries: Any
) -> None:
    make_plan({str(number): [str(number - 1)] if number else [] for number in range(count)})
    with django_assert_num_queries(2):  # the person, the actions
        assert len(client.get(path, headers=token).json()["actions"]) == count


@pytest.mark.parametrize("count", [1, 20])
def test_plan_list_takes_three_queries_for_any_number_of_plans(
    client: Client, token: dict[str, str], count: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        make_plan()
    with django_assert_num_queries(3):  # the person, the plans, their indicators
        assert len(client.get("/v1/action_plans/detail", headers=token).json()["action_plans"]) == count


def test_revoked_permission_takes_effect_immediately(client: Client, cloud_admin: User, token: dict[str, str]) -> None:
    path = path_of_action()
    assert client.get(path, headers=token).status_code == 200
    cloud_admin.groups.clear()
    assert client.get(path, headers=token).status_code == 403


def test_permission_of_the_user_counts_like_one_of_a_group(client: Client, stranger: User) -> None:
    stranger.user_permissions.add(Permission.objects.get(codename="view_action"))
    headers = VERSION | {"X-Auth-Token": AuthToken.objects.create(stranger)[1]}
    assert client.get("/v1/actions", headers=headers).status_code == 200
    assert client.get("/v1/goals", headers=headers).status_code == 403


def test_token_of_a_disabled_account_is_refused_immediately(
    client: Client, cloud_admin: User, token: dict[str, str]
) -> None:
    assert client.get("/v1/actions", headers=token).status_code == 200
    User.objects.filter(pk=cloud_admin.pk).update(is_active=False)
    assert client.get("/v1/actions", headers=token).status_code == 401


def test_permission_created_by_a_concurrent_migration_counts(stranger: User) -> None:
    assert not stranger.has_perm("auth.invented_user")
    invented = Permission.objects.create(
        codename="invented_user", name="invented", content_type=ContentType.objects.get_for_model(User)
    )
    stranger.user_permissions.add(invented)
    person = User.objects.get(pk=stranger.pk)
    assert person.has_perm("auth.invented_user")
    assert person.get_all_permissions() == {"auth.invented_user"}
