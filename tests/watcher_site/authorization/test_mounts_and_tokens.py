"""Rules of a policy file for the mounted APIs of Nova and Heat, and for tokens."""

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


def test_rule_with_novas_name_decides_on_server_lists(write: Write, keystone: Keystone) -> None:
    write(f'"os_compute_api:servers:index": "{OWN}"')
    make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    assert [one["name"] for one in get(keystone, "/compute/v2.1/servers", "operator").json()["servers"]] == ["own"]
    refused = get(keystone, "/compute/v2.1/servers", "member")
    assert refused.status_code == 403
    assert refused.json()["forbidden"]["message"] == (
        "Policy doesn't allow os_compute_api:servers:index to be performed."
    )


def test_rule_without_a_project_shows_servers_of_all_projects(write: Write, keystone: Keystone) -> None:
    write('"os_compute_api:servers:detail": "role:operator"')
    make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    assert len(get(keystone, "/compute/v2.1/servers/detail", "operator").json()["servers"]) == 2


def test_server_refused_by_the_rule_is_404(write: Write, keystone: Keystone) -> None:
    write(f'"os_compute_api:servers:show": "{OWN}"')
    own, other = make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    assert get(keystone, f"/compute/v2.1/servers/{own.uuid}", "operator").status_code == 200
    assert get(keystone, f"/compute/v2.1/servers/{other.uuid}", "operator").status_code == 404


def test_instance_actions_have_a_separate_policy(write: Write, keystone: Keystone) -> None:
    write('"os_compute_api:os-instance-actions:list": "!"')
    path = f"/compute/v2.1/servers/{make_server('own', project_id=PROJECT).uuid}"
    assert get(keystone, path, "member").status_code == 200
    assert get(keystone, f"{path}/os-instance-actions", "member").status_code == 403


def test_rule_with_heats_name_decides_on_the_stacks_of_a_project(write: Write, keystone: Keystone) -> None:
    write(f'"stacks:index": "{OWN}"')
    make_stack("shop", project_id=PROJECT), make_stack("other", project_id="another")
    found = get(keystone, f"/orchestration/v1/{PROJECT}/stacks", "operator").json()["stacks"]
    assert [one["stack_name"] for one in found] == ["shop"]
    refused = get(keystone, "/orchestration/v1/another/stacks", "operator")
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        403,
        "Policy doesn't allow stacks:index to be performed.",
    )


def test_stacks_of_all_projects_use_heats_global_policy(write: Write, keystone: Keystone) -> None:
    write('"stacks:index": "role:operator"\n"stacks:global_index": "role:auditor"')
    make_stack("shop", project_id=PROJECT), make_stack("other", project_id="another")
    path = f"/orchestration/v1/{PROJECT}/stacks?global_tenant=true"
    assert len(get(keystone, path, "operator", "auditor").json()["stacks"]) == 2
    assert len(get(keystone, path, "operator").json()["stacks"]) == 1


def test_marking_a_resource_uses_heats_policy(write: Write, keystone: Keystone) -> None:
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


def test_query_count_of_a_rule_does_not_depend_on_the_number_of_projects(write: Write, stranger: User) -> None:
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


def test_rule_decides_on_the_creation_of_tokens(write: Write, cloud_admin: User, reader: User) -> None:
    write('"token:create": "role:admin"')
    assert Caller(cloud_admin, "1.14").post("/tokens", {"name": "job"}).status_code == 201
    answer = Caller(reader, "1.14").post("/tokens", {"name": "job"})
    assert (answer.status_code, fault(answer)) == (403, "Policy doesn't allow token:create to be performed.")


def test_rule_decides_between_all_and_own_tokens(write: Write, cloud_admin: User, reader: User) -> None:
    write('"token:get_all": "role:reader or user_id:%(user_id)s"')
    for user in (cloud_admin, reader):
        make_token(user)
    assert len(Caller(reader, "1.14").get("/tokens").json()["tokens"]) == 2
    assert len(Caller(cloud_admin, "1.14").get("/tokens").json()["tokens"]) == 1


def test_no_rule_revokes_tokens_of_users_with_more_permissions(write: Write, cloud_admin: User, reader: User) -> None:
    write('"token:delete": "@"')
    made, _ = make_token(cloud_admin)
    assert Caller(reader, "1.14").delete(f"/tokens/{made.token_key}").status_code == 409


def test_keystone_user_without_the_role_of_the_rule_reads_no_tokens(write: Write, keystone: Keystone) -> None:
    write('"token:get_all": "role:operator"')
    assert TokenCaller(keystone.issue("ines", "member")).get("/tokens").status_code == 403
