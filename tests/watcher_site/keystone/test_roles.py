"""The permissions of the roles of a token, in the system and in a project."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from pytest_django import Settings

from cluster.models import Server, Stack
from tests.api import TokenCaller, fault
from tests.builders import make_flavor, make_plan, make_server, make_stack
from tests.watcher_site.keystone.identity import PROJECT, Keystone
from watcher_site.configuration.keystone import ROLES
from watcher_site.keystone.users import KeystoneUser

pytestmark = pytest.mark.django_db
SYSTEM: dict[str, Any] = {"project": None, "system": {"all": True}}
# Keystone implies the roles below one: a member of a project is a reader, too.
MEMBER = ("member", "reader")


def user(*roles: str, scope: str = "project") -> KeystoneUser:
    return KeystoneUser("id", "rosa", scope, PROJECT if scope == "project" else None, frozenset(roles))


def names(permissions: Any) -> set[str]:
    return {f"{app}.{codename}" for app, codename in permissions.values_list("content_type__app_label", "codename")}


@pytest.mark.parametrize(
    ("role", "scope", "group"), [("admin", "project", "cloud-admin"), ("reader", "system", "reader")]
)
def test_role_has_the_permissions_of_its_group(role: str, scope: str, group: str) -> None:
    one = user(role, scope=scope)
    granted = names(Group.objects.get(name=group).permissions)
    assert {name for name in names(Permission.objects) if one.has_perm(name)} == granted


@pytest.mark.parametrize(
    ("roles", "scope", "rights"),
    [
        (("admin",), "project", {"cloud-admin"}),
        (("admin",), "system", {"cloud-admin"}),
        (("admin",), "domain", set()),
        (("reader",), "system", {"reader"}),
        (("reader",), "project", {"project-reader"}),
        (MEMBER, "project", {"member", "project-reader"}),
        (("member",), "system", set()),
        (("load-balancer_member",), "project", set()),
    ],
)
def test_role_is_limited_to_its_scope(roles: tuple[str, ...], scope: str, rights: set[str]) -> None:
    assert user(*roles, scope=scope).rights == rights


def test_roles_are_mapped_by_the_setting(settings: Settings) -> None:
    settings.KEYSTONE_ROLES = {"operator": "cloud-admin", "reader": "reader"}
    assert user("operator").rights == {"cloud-admin"}
    assert user("reader").rights == {"reader"}
    assert user("admin").rights == set()


def test_role_names_are_case_insensitive(keystone: Keystone) -> None:
    assert TokenCaller(keystone.issue("rosa", "Admin")).get("/goals").status_code == 200


def test_project_admin_can_start_plans(keystone: Keystone) -> None:
    caller, plan = TokenCaller(keystone.issue("rosa", "admin")), make_plan({"a": []})
    assert caller.post(f"/action_plans/{plan.uuid}/start").status_code == 200


def test_system_admin_can_start_plans(keystone: Keystone) -> None:
    caller, plan = TokenCaller(keystone.issue("rosa", "admin", **SYSTEM)), make_plan({"a": []})
    assert caller.post(f"/action_plans/{plan.uuid}/start").status_code == 200


def test_domain_admin_has_no_permissions(keystone: Keystone) -> None:
    domain = {"project": None, "domain": {"id": "default", "name": "Default"}}
    answer = TokenCaller(keystone.issue("rosa", "admin", **domain)).get("/goals")
    assert (answer.status_code, fault(answer)) == (
        403,
        "No role of your token gives a right here. Its scope: domain.",
    )


def test_system_reader_sees_everything_and_changes_nothing(keystone: Keystone) -> None:
    caller, server = TokenCaller(keystone.issue("rosa", "reader", **SYSTEM)), make_server(project_id="another")
    assert caller.get("/action_plans").status_code == 200
    assert caller.get(f"/servers/{server.uuid}").status_code == 200
    assert caller.delete(f"/servers/{server.uuid}").status_code == 403


def test_member_sees_only_servers_and_stacks_of_the_project(keystone: Keystone) -> None:
    caller = TokenCaller(keystone.issue("ines", *MEMBER))
    own, stack = make_server("own", project_id=PROJECT), make_stack("own", project_id=PROJECT)
    make_server("other", project_id="another"), make_stack("other", project_id="another")
    assert [one["id"] for one in caller.get("/servers").json()["servers"]] == [str(own.uuid)]
    assert [one["id"] for one in caller.get("/stacks").json()["stacks"]] == [str(stack.uuid)]
    assert caller.get("/action_plans").status_code == 403


def test_member_deletes_only_servers_of_the_project(keystone: Keystone) -> None:
    caller = TokenCaller(keystone.issue("ines", *MEMBER))
    own, other = make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    assert caller.delete(f"/servers/{own.uuid}").status_code == 204
    assert caller.delete(f"/servers/{other.uuid}").status_code == 404


def test_project_reader_sees_servers_and_changes_none(keystone: Keystone) -> None:
    caller, own = TokenCaller(keystone.issue("rob", "reader")), make_server("own", project_id=PROJECT)
    assert caller.get(f"/servers/{own.uuid}").status_code == 200
    assert caller.delete(f"/servers/{own.uuid}").status_code == 403
    assert caller.post("/servers", {"server": {"name": "web", "flavorRef": "small"}}).status_code == 403


def test_project_reader_cannot_mark_resources_of_stacks(keystone: Keystone) -> None:
    make_stack("own", project_id=PROJECT)
    caller, path = TokenCaller(keystone.issue("rob", "reader")), f"/orchestration/v1/{PROJECT}/stacks"
    headers = {"X-Auth-Token": caller.headers["X-Auth-Token"]}
    assert caller.client.get(path, headers=headers).status_code == 200
    marked = caller.client.patch(f"{path}/own/{'0' * 32}/resources/web", {}, headers=headers)
    assert marked.status_code == 403


def test_member_sees_servers_of_the_project_in_the_compute_mount(keystone: Keystone) -> None:
    make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    headers = {"X-Auth-Token": keystone.issue("ines", *MEMBER)}
    answer = TokenCaller("").client.get("/compute/v2.1/servers", headers=headers)
    assert [one["name"] for one in answer.json()["servers"]] == ["own"]


def test_new_server_belongs_to_the_project_and_the_user_of_the_token(keystone: Keystone) -> None:
    make_flavor()
    answer = TokenCaller(keystone.issue("ines", *MEMBER)).post(
        "/servers", {"server": {"name": "web", "flavorRef": "small"}}
    )
    assert answer.status_code == 202
    assert Server.objects.values_list("project_id", "user_id").get() == (PROJECT, "id-of-ines")


def test_new_stack_belongs_to_the_project_of_the_token(keystone: Keystone) -> None:
    make_flavor()
    template = {"resources": {"web": {"type": "server", "properties": {"flavor": "small"}}}}
    answer = TokenCaller(keystone.issue("ines", *MEMBER)).post("/stacks", {"name": "shop", "template": template})
    assert answer.status_code == 202, answer.content
    assert Stack.objects.values_list("project_id", "user_id").get() == (PROJECT, "ines")


def test_default_role_table_is_the_setting(settings: Settings) -> None:
    assert settings.KEYSTONE_ROLES == ROLES
