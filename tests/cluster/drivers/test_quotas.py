"""Quotas of projects: requests that exceed a quota are refused."""

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pytest_django import Settings

from cluster.drivers.base import NewServer, OperationRefused, cloud
from cluster.drivers.quotas import QuotaExceeded, set_quota
from cluster.models import Flavor, ProjectQuota, Server, Stack
from cluster.stacks.templates.templates import normalise
from plans.operations import servers as server_operations
from plans.operations.servers import create_server
from tests.api import Caller, fault
from tests.builders import make_flavor, make_node, make_profile, make_server, make_stack
from tests.interleaving import Rival, interrupt_before
from watcher_site.models import HistoryEntry, ProjectMember
from watcher_site.request_context import CallingContext

pytestmark = pytest.mark.django_db
SERVER = {"type": "server", "properties": {"flavor": "small"}}


@pytest.fixture
def small(db: None) -> Flavor:
    return make_flavor("small", flavor_id="f1", vcpus=2, memory=2048, disk=20)


@pytest.fixture
def member(small: Flavor) -> Caller:
    user = User.objects.create_user("ines")
    ProjectMember.objects.create(user=user, project_id="shop")
    return Caller(user, "1.12")


def request(**attributes: Any) -> dict[str, Any]:
    return {"server": {"name": "web", "flavorRef": "small", **attributes}}


def template(size: int = 1) -> dict[str, Any]:
    return {
        "resources": {"db": SERVER, "web": {"type": "scaling_group", "properties": {"size": size, "member": SERVER}}}
    }


def run(*arguments: str) -> str:
    printed = StringIO()
    call_command(*arguments, stdout=printed)
    return printed.getvalue().strip()


@pytest.mark.parametrize(("resource", "limit", "used"), [("servers", 1, 1), ("vcpus", 3, 2), ("memory", 4095, 2048)])
def test_server_exceeding_a_quota_is_refused(member: Caller, resource: str, limit: int, used: int) -> None:
    make_server(project_id="shop", vcpus=2, memory=2048)
    set_quota("shop", {resource: limit})
    answer = member.post("/servers", request())
    requested = {"servers": 1, "vcpus": 2, "memory": 2048}[resource]
    assert answer.status_code == 403
    assert fault(answer) == (
        f"Quota exceeded for {resource} of project shop: requested {requested}, but already used {used} of {limit}."
    )
    assert Server.objects.count() == 1


def test_server_reaching_a_quota_is_accepted(member: Caller) -> None:
    set_quota("shop", {"servers": 1, "vcpus": 2, "memory": 2048})
    assert member.post("/servers", request()).status_code == 202


def test_deleted_server_does_not_count(member: Caller) -> None:
    make_server(project_id="shop")
    Server.objects.soft_delete()
    set_quota("shop", {"servers": 1})
    assert member.post("/servers", request()).status_code == 202


def test_default_limit_is_the_limit_of_the_site(member: Caller, settings: Settings) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "servers": 0}
    assert member.post("/servers", request()).status_code == 403


def test_limit_of_minus_one_is_unlimited(member: Caller, settings: Settings) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "servers": 0}
    set_quota("shop", {"servers": -1})
    assert member.post("/servers", request()).status_code == 202


def test_server_of_no_project_has_no_quota(cloud_admin: User, small: Flavor, settings: Settings) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "servers": 0}
    assert Caller(cloud_admin, "1.12").post("/servers", request()).status_code == 202


def test_administrator_cannot_exceed_the_quota_of_a_project(cloud_admin: User, small: Flavor) -> None:
    set_quota("shop", {"servers": 0})
    assert Caller(cloud_admin, "1.12").post("/servers", request(project_id="shop")).status_code == 403


def test_stack_exceeding_the_quota_of_stacks_is_refused(member: Caller) -> None:
    make_stack("other", project_id="shop")
    set_quota("shop", {"stacks": 1})
    answer = member.post("/stacks", {"name": "new", "template": template()})
    assert (answer.status_code, Stack.objects.count()) == (403, 1)


@pytest.mark.parametrize(("resource", "limit"), [("servers", 3), ("vcpus", 7), ("memory", 8191)])
def test_stack_whose_servers_exceed_a_quota_is_refused(member: Caller, resource: str, limit: int) -> None:
    set_quota("shop", {resource: limit})
    answer = member.post("/stacks", {"name": "new", "template": template(3)})
    assert (answer.status_code, Stack.objects.count()) == (403, 0)


def test_servers_of_nested_stacks_count(member: Caller) -> None:
    set_quota("shop", {"servers": 1})
    nested = {"resources": {"inner": {"type": "stack", "properties": {"template": template()}}}}
    assert member.post("/stacks", {"name": "new", "template": nested}).status_code == 403


def test_stack_update_whose_servers_exceed_a_quota_is_refused(member: Caller) -> None:
    set_quota("shop", {"servers": 2})
    stack = make_stack("shop", project_id="shop", template=normalise(template()), status="CREATE_COMPLETE")
    path = f"/stacks/shop/{stack.uuid}"
    answer = member.put(path, {"template": template(4)})
    assert (answer.status_code, "requested 3" in fault(answer)) == (403, True)


def test_embedded_cloud_refuses_a_server_exceeding_a_quota(small: Flavor) -> None:
    make_node()
    set_quota("shop", {"servers": 0})
    with pytest.raises(OperationRefused, match="Quota exceeded for servers of project shop"):
        cloud().create_server(NewServer("web", "small", "token", project="shop"))
    assert not Server.objects.exists()


def test_cluster_exceeding_the_limit_of_the_site_is_refused(
    cloud_admin: User, small: Flavor, settings: Settings
) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "clusters": 0}
    body = {"name": "web", "profile": str(make_profile().uuid), "plan_only": True}
    assert Caller(cloud_admin, "1.12").post("/clusters", body).status_code == 403


@pytest.mark.parametrize(("number", "status"), [(128, 202), (129, 403)])
def test_server_has_at_most_128_metadata_items(member: Caller, number: int, status: int) -> None:
    metadata = {f"key-{place}": "" for place in range(number)}
    assert member.post("/servers", request(metadata=metadata)).status_code == status


def test_metadata_items_of_servers_of_a_stack_are_limited(member: Caller, settings: Settings) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "metadata_items": 1}
    server = {"type": "server", "properties": {"flavor": "small", "metadata": {"a": "1", "b": "2"}}}
    answer = member.post("/stacks", {"name": "new", "template": {"resources": {"web": server}}})
    assert answer.status_code == 403


def test_metadata_items_of_servers_of_a_profile_are_limited(
    cloud_admin: User, small: Flavor, settings: Settings
) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "metadata_items": 1}
    spec = {"flavor": "small", "metadata": {"a": "1", "b": "2"}}
    assert Caller(cloud_admin, "1.12").post("/profiles", {"name": "web", "spec": spec}).status_code == 403


def test_number_of_resources_of_a_stack_is_limited(member: Caller, settings: Settings) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "stack_resources": 4}
    answer = member.post("/stacks", {"name": "new", "template": template(3)})
    assert (answer.status_code, "at most 4 are allowed" in fault(answer)) == (400, True)


def test_command_sets_the_limits_of_a_project(db: None) -> None:
    assert run("set_quota", "shop", "--servers", "5", "--memory", "-1").splitlines() == [
        "servers: 0 of 5",
        "vcpus: 0 of 400 (default)",
        "memory: 0 of unlimited",
        "stacks: 0 of 100 (default)",
    ]
    assert HistoryEntry.objects.get().deed == "project.set_quota"


def test_command_keeps_limits_without_an_argument(db: None) -> None:
    run("set_quota", "shop", "--servers", "5")
    run("set_quota", "shop", "--vcpus", "10")
    assert "servers: 0 of 5" in run("show_quota", "shop")


def test_command_resets_a_limit_to_the_default(db: None) -> None:
    run("set_quota", "shop", "--servers", "5")
    assert "servers: 0 of 100 (default)" in run("set_quota", "shop", "--servers", "default")


def test_usage_of_a_project_is_shown(db: None) -> None:
    make_server(project_id="shop", vcpus=4, memory=2048)
    assert run("show_quota", "shop").splitlines()[:2] == ["servers: 1 of 100 (default)", "vcpus: 4 of 400 (default)"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shop"], "a limit is required: one of --servers, --vcpus, --memory, --stacks."),
        (["shop", "--servers", "many"], "servers: must be a whole number or 'default', not 'many'."),
        (["shop", "--servers", "-2"], "servers: must be a whole number from -1, for unlimited, to 2147483647."),
        (["", "--servers", "1"], "project: must have 1 to 255 characters, without blanks around them."),
    ],
)
def test_invalid_limits_are_refused(db: None, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError) as refused:
        run("set_quota", *arguments)
    assert (str(refused.value), ProjectQuota.objects.exists()) == (message, False)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_one_of_two_concurrent_requests_for_the_last_server_is_refused(
    small: Flavor, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_quota("shop", {"servers": 1})
    wanted = {"name": "web", "flavorRef": "small"}
    second = Rival(lambda: create_server(wanted, "shop", CallingContext()))
    interrupt_before(monkeypatch, server_operations, "start_server_operation", second)
    create_server(wanted, "shop", CallingContext())
    with pytest.raises(QuotaExceeded):
        second.result()
    assert Server.objects.count() == 1
