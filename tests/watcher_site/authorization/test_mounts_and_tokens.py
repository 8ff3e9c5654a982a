"""Rules on the paths of Nova's and Heat's clients, and on tokens."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from tests.api import Caller, TokenCaller, fault
from tests.builders import make_resource, make_server, make_stack
from tests.watcher_site.authorization.conftest import Write
from tests.watcher_site.keystone.identity import PROJECT, Keystone
from watcher_site.accounts.projects import add_member
from watcher_site.accounts.tokens import make_token

pytestmark = pytest.mark.django_db
OWN = "role:operator and project_id:%(project_id)s"


def get(keystone: Keystone, path: str, *roles: str) -> Any:
    return APIClient().get(path, headers={"X-Auth-Token": keystone.issue("otto", *roles)})


def test_a_rule_with_nova_s_name_decides_on_lists_of_servers(write: Write, keystone: Keystone) -> None:
    write(f'"os_compute_api:servers:index": "{OWN}"')
    make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    assert [one["name"] for one in get(keystone, "/compute/v2.1/servers", "operator").json()["servers"]] == ["own"]
    refused = get(keystone, "/compute/v2.1/servers", "member")
    assert refused.status_code == 403
    assert refused.json()["forbidden"]["message"] == (
        "Policy doesn't allow os_compute_api:servers:index to be performed."
    )


def test_a_rule_that_passes_without_a_project_shows_the_servers_of_all(write: Write, keystone: Keystone) -> None:
    write('"os_compute_api:servers:detail": "role:operator"')
    make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    assert len(get(keystone, "/compute/v2.1/servers/detail", "operator").json()["servers"]) == 2


def test_a_server_for_which_the_rule_does_not_pass_is_not_found(write: Write, keystone: Keystone) -> None:
    write(f'"os_compute_api:servers:show": "{OWN}"')
    own, other = make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    assert get(keystone, f"/compute/v2.1/servers/{own.uuid}", "operator").status_code == 200
    assert get(keystone, f"/compute/v2.1/servers/{other.uuid}", "operator").status_code == 404


def test_the_actions_on_a_server_have_policies_of_their_own(write: Write, keystone: Keystone) -> None:
    write('"os_compute_api:os-instance-actions:list": "!"')
    path = f"/compute/v2.1/servers/{make_server('own', project_id=PROJECT).uuid}"
    assert get(keystone, path, "member").status_code == 200
    assert get(keystone, f"{path}/os-instance-actions", "member").status_code == 403


def test_a_rule_with_heat_s_name_decides_on_the_stacks_of_a_project(write: Write, keystone: Keystone) -> None:
    write(f'"stacks:index": "{OWN}"')
    make_stack("shop", project_id=PROJECT), make_stack("other", project_id="another")
    found = get(keystone, f"/orchestration/v1/{PROJECT}/stacks", "operator").json()["stacks"]
    assert [one["stack_name"] for one in found] == ["shop"]
    refused = get(keystone, "/orchestration/v1/another/stacks", "operator")
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        403,
        "Policy doesn't allow stacks:index to be performed.",
    )


def test_the_stacks_of_all_projects_take_heat_s_policy_for_them(write: Write, keystone: Keystone) -> None:
    write('"stacks:index": "role:operator"\n"stacks:global_index": "role:auditor"')
    make_stack("shop", project_id=PROJECT), make_stack("other", project_id="another")
    path = f"/orchestration/v1/{PROJECT}/stacks?global_tenant=true"
    assert len(get(keystone, path, "operator", "auditor").json()["stacks"]) == 2
    assert len(get(keystone, path, "operator").json()["stacks"]) == 1


def test_marking_a_resource_has_heat_s_policy(write: Write, keystone: Keystone) -> None:
    write('"resource:mark_unhealthy": "role:operator"')
    stack = make_stack("shop", project_id=PROJECT)
    make_resource(stack, "web")
    path = f"/orchestration/v1/{PROJECT}/stacks/shop/{stack.uuid}/resources/web"
    statuses = [
        APIClient()
        .patch(path, {"mark_unhealthy": True}, format="json", headers={"X-Auth-Token": keystone.issue("otto", role)})
        .status_code
        for role in ("operator", "member")
    ]
    assert statuses == [200, 403]


def test_a_rule_takes_the_same_queries_for_any_number_of_projects(write: Write, stranger: User) -> None:
    write('"os_compute_api:servers:index": "project_id:%(project_id)s"')
    numbers = []
    for projects in (["p1"], ["p2", "p3", "p4"]):
        for project in projects:
            add_member("sam", project)
            make_server(project, project_id=project)
        caller = APIClient()
        caller.force_authenticate(User.objects.get(pk=stranger.pk))
        with CaptureQueriesContext(connection) as queries:
            assert caller.get("/compute/v2.1/servers").status_code == 200
        numbers.append(len(queries))
    assert numbers[0] == numbers[1]


# Tokens


def test_a_rule_on_tokens_decides_who_creates_one(write: Write, cloud_admin: User, reader: User) -> None:
    write('"token:create": "role:admin"')
    assert Caller(cloud_admin, "1.14").post("/tokens", {"name": "job"}).status_code == 201
    answer = Caller(reader, "1.14").post("/tokens", {"name": "job"})
    assert (answer.status_code, fault(answer)) == (403, "Policy doesn't allow token:create to be performed.")


def test_a_rule_shows_the_tokens_of_all_accounts_or_the_own_ones(
    write: Write, cloud_admin: User, reader: User
) -> None:
    write('"token:get_all": "role:reader or user_id:%(user_id)s"')
    for user in (cloud_admin, reader):
        make_token(user)
    assert len(Caller(reader, "1.14").get("/tokens").json()["tokens"]) == 2
    assert len(Caller(cloud_admin, "1.14").get("/tokens").json()["tokens"]) == 1


def test_no_rule_takes_the_tokens_of_users_with_more_rights(write: Write, cloud_admin: User, reader: User) -> None:
    write('"token:delete": "@"')
    made, _ = make_token(cloud_admin)
    assert Caller(reader, "1.14").delete(f"/tokens/{made.token_key}").status_code == 409


def test_a_user_of_keystone_without_a_rule_for_it_reads_no_tokens(write: Write, keystone: Keystone) -> None:
    write('"token:get_all": "role:operator"')
    assert TokenCaller(keystone.issue("ines", "member")).get("/tokens").status_code == 403
