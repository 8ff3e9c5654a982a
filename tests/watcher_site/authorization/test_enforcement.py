"""The rules of a policy file: requests that they allow and refuse, of users of Keystone and of accounts."""

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from actions.event_details import sees_details
from tests.api import Caller, TokenCaller, fault
from tests.builders import action, make_plan, make_server
from tests.conftest import person
from tests.watcher_site.authorization.conftest import Write
from tests.watcher_site.keystone.identity import PROJECT, Keystone
from watcher_site.accounts.projects import add_member
from watcher_site.accounts.tokens import make_token
from watcher_site.authorization.enforcement import decide
from watcher_site.keystone.users import KeystoneUser
from watcher_site.management.commands.generate_policy import default_rules
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
SKIP = [{"op": "replace", "path": "/state", "value": "SKIPPED"}]


def skip(caller: Caller) -> Any:
    return caller.patch(f"/actions/{action(make_plan({'a': []}), 'a').uuid}", SKIP)


def test_rule_grants_a_keystone_role_more_than_the_role_table(write: Write, keystone: Keystone) -> None:
    write('"action:update": "role:operator"')
    operator = TokenCaller(keystone.issue("otto", "operator"))
    assert skip(operator).status_code == 200
    assert operator.get("/actions").status_code == 403
    assert operator.post(f"/action_plans/{make_plan({'a': []}).uuid}/start").status_code == 403


def test_rule_revokes_a_permission(write: Write, cloud_admin: User) -> None:
    write('"action_plan:start": "!"')
    answer = Caller(cloud_admin).post(f"/action_plans/{make_plan({'a': []}).uuid}/start")
    assert (answer.status_code, fault(answer)) == (
        403,
        "Policy doesn't allow action_plan:start to be performed.",
    )
    assert HistoryEntry.objects.values_list("deed", "outcome").get() == ("action_plan.start", "refused")


def test_policy_without_a_rule_is_decided_by_permissions(write: Write, cloud_admin: User, reader: User) -> None:
    write('"action_plan:start": "!"')
    assert skip(Caller(cloud_admin)).status_code == 200
    assert skip(Caller(reader)).status_code == 403


def test_policy_file_of_upstream_is_enforced(
    write: Write, cloud_admin: User, reader: User, keystone: Keystone
) -> None:
    write('"admin_api": "role:admin or role:administrator"\n"action:update": "rule:admin_api"\n')
    assert skip(Caller(cloud_admin)).status_code == 200
    assert skip(Caller(reader)).status_code == 403
    assert skip(TokenCaller(keystone.issue("rosa", "administrator"))).status_code == 200
    assert skip(TokenCaller(keystone.issue("rob", "reader"))).status_code == 403


def test_groups_of_an_account_are_its_roles(write: Write, reader: User, stranger: User) -> None:
    write('"action:update": "role:reader"')
    assert skip(Caller(reader)).status_code == 200
    assert skip(Caller(stranger)).status_code == 403


def test_group_token_has_only_the_role_of_its_group(write: Write, cloud_admin: User) -> None:
    cloud_admin.groups.add(Group.objects.get(name="reader"))
    limited = TokenCaller(make_token(cloud_admin, group="reader")[1])
    write('"action:update": "role:admin or role:cloud-admin"')
    assert skip(limited).status_code == 403
    write('"action:update": "role:reader"\n# of another length')
    assert skip(limited).status_code == 200


def test_read_only_token_changes_nothing_under_any_rule(write: Write, cloud_admin: User) -> None:
    write('"action:update": "@"')
    assert skip(TokenCaller(make_token(cloud_admin, read_only=True)[1])).status_code == 403


def test_rule_can_require_system_scope(write: Write, keystone: Keystone) -> None:
    write('"goal:get_all": "role:reader and system_scope:all"')
    scope: dict[str, Any] = {"project": None, "system": {"all": True}}
    assert TokenCaller(keystone.issue("rob", "reader", **scope)).get("/goals").status_code == 200
    assert TokenCaller(keystone.issue("rob", "reader")).get("/goals").status_code == 403


def test_rule_on_the_project_is_decided_for_each_server(write: Write, keystone: Keystone) -> None:
    rule = "role:operator and project_id:%(project_id)s"
    write("\n".join(f'"server:{name}": "{rule}"' for name in ("get_all", "get", "delete")))
    own, other = make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    operator = TokenCaller(keystone.issue("otto", "operator"))
    assert [one["name"] for one in operator.get("/servers").json()["servers"]] == ["own"]
    assert operator.get(f"/servers/{own.uuid}").status_code == 200
    assert operator.get(f"/servers/{other.uuid}").status_code == 404
    assert operator.delete(f"/servers/{other.uuid}").status_code == 404
    assert operator.delete(f"/servers/{own.uuid}").status_code == 204


def test_rule_without_a_project_shows_servers_of_all_projects(write: Write, keystone: Keystone) -> None:
    write('"server:get_all": "role:operator"')
    make_server("own", project_id=PROJECT), make_server("other", project_id="another")
    operator = TokenCaller(keystone.issue("otto", "operator"))
    assert len(operator.get("/servers").json()["servers"]) == 2


def test_membership_puts_an_account_in_the_project_of_an_object(write: Write, stranger: User) -> None:
    write('"server:get": "project_id:%(project_id)s"')
    own, other = make_server("own", project_id="shop"), make_server("other", project_id="another")
    add_member("sam", "shop")
    caller = Caller(stranger, "1.14")
    assert caller.get(f"/servers/{own.uuid}").status_code == 200
    assert caller.get(f"/servers/{other.uuid}").status_code == 404


def test_right_by_body_in_a_rule_depends_on_the_body(write: Write, cloud_admin: User) -> None:
    write('"action_plan:update": "right:by_body or role:operator"')
    plan = make_plan({"a": []}, state="PENDING")
    cancel = [{"op": "replace", "path": "/state", "value": "CANCELLED"}]
    starter = person("stella")
    starter.user_permissions.add(Permission.objects.get(codename="start_actionplan"))
    starter = User.objects.get(pk=starter.pk)
    assert Caller(starter).patch(f"/action_plans/{plan.uuid}", cancel).status_code == 403
    assert Caller(cloud_admin).patch(f"/action_plans/{plan.uuid}", cancel).status_code == 200


def test_rule_decides_on_the_details_of_server_events(write: Write, reader: User, keystone: Keystone) -> None:
    write('"os_compute_api:os-instance-actions:events:details": "role:auditor and project_id:%(project_id)s"')
    auditor = KeystoneUser("id", "ann", "project", PROJECT, frozenset({"auditor"}))
    assert sees_details(auditor, PROJECT)
    assert not sees_details(auditor, "another")
    assert not sees_details(reader)


@pytest.mark.parametrize("group", ["cloud-admin", "reader", "member", None])
def test_generated_rules_decide_like_permissions(write: Write, group: str | None, settings: Settings) -> None:
    printed = StringIO()
    call_command("generate_policy", stdout=printed)
    write(printed.getvalue().replace('#"', '"'))
    user = person("somebody", group)
    for name, (rule, _) in default_rules().items():
        permission = rule.partition(" or ")[0].removeprefix("right:")
        expected = permission == "by_body" or user.has_perm(permission)
        assert decide(name, user) == expected, name
    settings.POLICY_FILE = ""
    assert decide("action:update", user) is None


def test_generated_rules_limit_members_to_their_projects(write: Write, keystone: Keystone) -> None:
    printed = StringIO()
    call_command("generate_policy", stdout=printed)
    write(printed.getvalue().replace('#"', '"'))
    own = make_server("own", project_id=PROJECT)
    make_server("other", project_id="another")
    member, reader = TokenCaller(keystone.issue("ines", "member")), TokenCaller(keystone.issue("rob", "reader"))
    for caller in (member, reader):
        assert [one["name"] for one in caller.get("/servers").json()["servers"]] == ["own"]
    assert reader.delete(f"/servers/{own.uuid}").status_code == 403
    assert member.delete(f"/servers/{own.uuid}").status_code == 204


def test_unedited_generated_file_changes_nothing(write: Write, cloud_admin: User, reader: User) -> None:
    printed = StringIO()
    call_command("generate_policy", stdout=printed)
    write(printed.getvalue())
    assert decide("action:update", cloud_admin) is None
    assert skip(Caller(reader)).status_code == 403


def test_policies_have_the_names_of_upstream() -> None:
    upstream = {
        *(
            "action:detail",
            "action:get",
            "action:get_all",
            "action:update",
            "action_plan:delete",
            "action_plan:detail",
        ),
        *("action_plan:get", "action_plan:get_all", "action_plan:start", "action_plan:update", "audit:create"),
        *("audit:delete", "audit:detail", "audit:get", "audit:get_all", "audit:update", "audit_template:create"),
        *("audit_template:delete", "audit_template:detail", "audit_template:get", "audit_template:get_all"),
        *("audit_template:update", "data_model:get_all", "goal:detail", "goal:get", "goal:get_all"),
        *("scoring_engine:detail", "scoring_engine:get", "scoring_engine:get_all", "service:detail", "service:get"),
        *("service:get_all", "strategy:detail", "strategy:get", "strategy:get_all", "strategy:state"),
    }
    assert upstream - default_rules().keys() == set()


def test_rule_takes_no_query_for_a_keystone_user(write: Write, keystone: Keystone) -> None:
    write('"action:get_all": "role:operator"')
    caller = TokenCaller(keystone.issue("otto", "operator"))
    with CaptureQueriesContext(connection) as queries:
        assert caller.get("/actions").status_code == 200
    assert len(queries) == 1


def test_rule_takes_one_query_for_the_groups_of_an_account(write: Write, cloud_admin: User) -> None:
    caller = Caller(cloud_admin)
    with CaptureQueriesContext(connection) as before:
        caller.get("/actions")
    write('"action:get_all": "role:admin"')
    caller = Caller(User.objects.get(pk=cloud_admin.pk))
    with CaptureQueriesContext(connection) as queries:
        assert caller.get("/actions").status_code == 200
    assert len(queries) <= len(before) + 1
