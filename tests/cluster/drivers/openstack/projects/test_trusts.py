"""Servers of stacks and clusters in their owner's project on OpenStack, created with trusts of Keystone."""

import json
from datetime import timedelta
from pathlib import Path
from time import time
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from actions.models import Action
from cluster.drivers.base import NewServer, OperationRefused, cloud
from cluster.models import Cluster, Node, Server, Stack, Synchronization, Trust
from cluster.operations.synchronization import synchronize
from cluster.operations.trusts import store_trust
from tests.api import Caller, fault
from tests.builders import make_cluster, make_member, make_stack
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.server import PROJECT, SERVICES, Emulator
from tests.plans.inline import run_waiting
from watcher_site.keystone.users import KeystoneUser
from watcher_site.request_context import seal
from watcher_site.web.middleware import KEYSTONE_KEY

pytestmark = pytest.mark.django_db
SERVER = {"type": "server", "properties": {"flavor": "m1.small"}}
STACK = {"name": "shop", "template": {"resources": {"web": SERVER}}}


@pytest.fixture(autouse=True)
def keystone_cloud(emulator: Emulator, settings: Settings) -> None:
    settings.KEYSTONE_URL = f"{emulator.url}{SERVICES['identity']}"
    write_cached_contents("two hosts")


def person_of(emulator: Emulator, name: str = "mia", project: str = "demo", *roles: str) -> Caller:
    """Return a Keystone user with a token of a project and these roles; the default is a member."""
    held = frozenset(roles or ("member", "reader"))
    user = KeystoneUser(f"id-of-{name}", name, "project", project, held)
    emulator.people[f"token-of-{name}"] = user.user_id
    caller = Caller(user, "1.15")  # type: ignore[arg-type]
    caller.headers["X-Auth-Token"] = f"token-of-{name}"
    return caller


@pytest.fixture
def mia(emulator: Emulator) -> Caller:
    return person_of(emulator)


def owners(emulator: Emulator) -> list[tuple[str, str]]:
    return [(server["tenant_id"], server["user_id"]) for server in emulator.nova.servers.values()]


def accept(answer: HttpResponse) -> None:
    assert answer.status_code == 202, fault(answer)
    run_waiting()


def test_servers_of_a_stack_are_created_as_the_user_in_the_project_of_the_user(
    emulator: Emulator, mia: Caller
) -> None:
    accept(mia.post("/stacks", STACK))
    assert owners(emulator) == [("demo", "id-of-mia")]
    [trust] = emulator.trusts.values()
    assert trust == {
        "trustor_user_id": "id-of-mia",
        "trustee_user_id": "u1",
        "project_id": "demo",
        "roles": [{"name": "member"}],
        "impersonation": True,
        "allow_redelegation": False,
    }


def test_request_by_a_trust_has_the_id_of_the_api_request(emulator: Emulator, mia: Caller) -> None:
    answer = mia.post("/stacks", STACK)
    accept(answer)
    sent = {found for line, found in emulator.request_ids if line.startswith("POST /compute/v2.1/servers")}
    assert sent == {answer["X-OpenStack-Request-ID"]}


def test_servers_of_a_cluster_are_created_as_its_owner_also_by_a_later_scale_out(
    emulator: Emulator, mia: Caller, cloud_admin: User
) -> None:
    spec = {"flavor": "m1.small", "key_name": "hers"}
    assert Caller(cloud_admin, "1.15").post("/profiles", {"name": "small", "spec": spec}).status_code == 201
    accept(mia.post("/clusters", {"name": "web", "profile": "small", "desired_capacity": 1}))
    accept(Caller(cloud_admin, "1.15").post("/clusters/web/scale_out", {"count": 1}))
    assert owners(emulator) == [("demo", "id-of-mia")] * 2
    assert emulator.nova.requested[1]["server"]["key_name"] == "hers"
    accept(mia.delete("/clusters/web?force=true"))
    assert emulator.nova.servers == {}


def test_one_trust_is_used_for_all_requests_of_a_user_in_a_project(emulator: Emulator, mia: Caller) -> None:
    accept(mia.post("/stacks", STACK))
    accept(mia.post("/stacks", STACK | {"name": "other"}))
    assert (len(emulator.trusts), Trust.objects.count()) == (1, 1)


def test_no_trust_is_created_in_the_project_of_the_site(emulator: Emulator) -> None:
    accept(person_of(emulator, "rosa", PROJECT).post("/stacks", STACK))
    assert (owners(emulator), emulator.trusts) == ([(PROJECT, "u1")], {})


def test_trust_refused_by_keystone_is_reported_with_the_message_of_keystone(emulator: Emulator, mia: Caller) -> None:
    emulator.people.clear()
    answer = mia.post("/stacks", STACK)
    words = "project_id: Keystone refuses that the site creates servers as mia in the project: You are not authorized"
    assert (answer.status_code, fault(answer).startswith(words)) == (409, True), fault(answer)
    assert not Stack.objects.exists()


def test_token_without_a_role_to_delegate_is_refused(emulator: Emulator, settings: Settings) -> None:
    settings.KEYSTONE_TRUST_ROLES = ["creator"]
    answer = person_of(emulator).post("/stacks", STACK)
    assert (answer.status_code, "creator" in fault(answer), emulator.trusts) == (409, True, {})


def test_stack_is_not_created_while_keystone_is_unavailable(emulator: Emulator, mia: Caller) -> None:
    emulator.fail("POST /identity/v3/OS-TRUST")
    assert mia.post("/stacks", STACK).status_code == 503
    assert not Stack.objects.exists()


def test_trust_is_created_in_the_keystone_of_the_api_if_the_console_has_none(
    emulator: Emulator, mia: Caller, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "watcher.conf"
    file.write_text(f"[keystone_authtoken]\nauth_url = {settings.KEYSTONE_URL}\n")
    settings.KEYSTONE_URL, settings.KEYSTONE_CONFIG = "", str(file)
    accept(mia.post("/stacks", STACK))
    assert owners(emulator) == [("demo", "id-of-mia")]


def test_stack_with_a_deleted_trust_fails_and_is_continued_with_the_trust_of_another_user(
    emulator: Emulator, mia: Caller
) -> None:
    answer = mia.post("/stacks", STACK)
    emulator.trusts.clear()
    accept(answer)
    failed = Action.objects.filter(state="FAILED", action_type="create_resource").get()
    assert "Keystone refuses the trust (Could not find trust" in failed.status_message
    assert Trust.objects.get().failed_at
    ines = person_of(emulator, "ines")
    accept(ines.put(f"/stacks/shop/{Stack.objects.get().uuid}", {}))
    assert owners(emulator) == [("demo", "id-of-ines")]


def test_cluster_with_a_failed_trust_uses_the_trust_of_the_next_user_for_all_nodes(
    emulator: Emulator, mia: Caller, cloud_admin: User
) -> None:
    profile = {"name": "small", "spec": {"flavor": "m1.small"}}
    assert Caller(cloud_admin, "1.15").post("/profiles", profile).status_code == 201
    accept(mia.post("/clusters", {"name": "web", "profile": "small", "desired_capacity": 1}))
    Trust.objects.update(failed_at=timezone.now())
    accept(person_of(emulator, "ines").post("/clusters/web/scale_out", {"count": 1}))
    assert owners(emulator) == [("demo", "id-of-mia"), ("demo", "id-of-ines")]
    assert set(Node.objects.values_list("trust__user_name", flat=True)) == {"ines"}


def test_user_who_cannot_delegate_changes_objects_with_the_valid_trust_of_another_user(
    emulator: Emulator, mia: Caller, cloud_admin: User
) -> None:
    profile = {"name": "small", "spec": {"flavor": "m1.small"}}
    assert Caller(cloud_admin, "1.15").post("/profiles", profile).status_code == 201
    accept(mia.post("/clusters", {"name": "web", "profile": "small", "desired_capacity": 1}))
    accept(mia.post("/stacks", STACK))
    ines = person_of(emulator, "ines")
    del emulator.people["token-of-ines"]
    accept(ines.post("/clusters/web/scale_out", {"count": 1}))
    accept(ines.post("/nodes", {"name": "db", "cluster": "web"}))
    replaced = {"resources": {"other": SERVER}}
    accept(ines.put(f"/stacks/shop/{Stack.objects.get().uuid}", {"template": replaced}))
    assert owners(emulator) == [("demo", "id-of-mia")] * 4
    assert ines.post("/clusters", {"name": "other", "profile": "small"}).status_code == 409


def test_failed_trust_is_replaced_by_the_next_request_of_its_user(emulator: Emulator, mia: Caller) -> None:
    accept(mia.post("/stacks", STACK))
    Trust.objects.update(failed_at=timezone.now())
    accept(mia.post("/stacks", STACK | {"name": "other"}))
    assert (Trust.objects.get().failed_at, Trust.objects.get().keystone_id) == (None, list(emulator.trusts)[1])


def test_first_of_two_concurrently_created_trusts_is_kept(emulator: Emulator) -> None:
    user = KeystoneUser("id-of-mia", "mia", "project", "demo", frozenset({"member"}))
    assert store_trust(user, "first", ["member"]).keystone_id == "first"
    assert store_trust(user, "second", ["member"]).keystone_id == "first"


def test_host_of_a_server_with_a_trust_is_refused(mia: Caller) -> None:
    wanted = NewServer("web", "m1.small", "one", project="demo", trust="t1", host="compute1")
    with pytest.raises(OperationRefused, match="by a server group"):
        cloud().create_server(wanted)


def test_unused_trust_is_deleted_by_a_later_synchronization(emulator: Emulator, mia: Caller) -> None:
    accept(mia.post("/stacks", STACK))
    accept(mia.delete(f"/stacks/shop/{Stack.objects.get().uuid}"))
    synchronize()
    assert len(emulator.trusts) == 1
    Trust.objects.update(used_at=timezone.now() - timedelta(hours=2))
    synchronize()
    assert (emulator.trusts, Trust.objects.count()) == ({}, 0)


@pytest.fixture
def unused(emulator: Emulator) -> Trust:
    """A trust that was last used two hours ago."""
    trust: Trust = Trust.objects.create(keystone_id="t1", project_id="demo", user_id="id-of-mia")
    emulator.trusts["t1"] = {"project_id": "demo", "trustor_user_id": "id-of-mia"}
    Trust.objects.update(used_at=timezone.now() - timedelta(hours=2))
    return trust


def test_trust_used_by_a_stack_is_kept(unused: Trust) -> None:
    make_stack(trust=unused, project_id="demo")
    synchronize()
    assert Trust.objects.exists()


def test_trust_used_by_a_cluster_or_a_node_is_kept(unused: Trust) -> None:
    cluster = make_cluster(trust=unused, project_id="demo")
    synchronize()
    assert Trust.objects.exists()
    Cluster.objects.filter(pk=cluster.pk).update(trust=None)
    make_member("web-1", cluster=cluster, trust=unused)
    synchronize()
    assert Trust.objects.exists()


def test_trust_of_the_owner_of_a_pending_server_is_kept(emulator: Emulator, unused: Trust, settings: Settings) -> None:
    settings.USE_PENDING_STATE = True
    waiting = {"tenant_id": "demo", "user_id": "id-of-mia", "OS-SRV-USG:launched_at": None}
    fault = {"code": 500, "message": "No valid host was found."}
    server = emulator.nova.add_server("web", "compute1", "ERROR", **waiting, fault=fault)
    synchronize()
    synchronize()
    assert (Server.objects.get(uuid=server).state, Trust.objects.exists()) == ("pending", True)


def test_trust_that_keystone_did_not_delete_is_deleted_by_the_next_synchronization(
    emulator: Emulator, unused: Trust
) -> None:
    emulator.fail("DELETE /identity/v3/OS-TRUST", 503)
    synchronize()
    assert (set(emulator.trusts), Trust.objects.count()) == ({"t1"}, 1)
    synchronize()
    assert (emulator.trusts, Trust.objects.count()) == ({}, 0)


def test_login_other_than_a_password_cannot_create_servers_in_other_projects(
    emulator: Emulator, mia: Caller, tmp_path: Path
) -> None:
    synchronize()
    answer = mia.post("/stacks", STACK)
    credential = {"application_credential_id": "an id", "application_credential_secret": "a secret"}
    login = {"auth_type": "v3applicationcredential", "auth": {"auth_url": emulator.url, **credential}}
    (tmp_path / "clouds.yaml").write_text(json.dumps({"clouds": {"emulated": login}}))
    accept(answer)
    failed = Action.objects.get(state="FAILED", action_type="create_resource")
    words = "only if clouds.yaml has a user name and a password; its auth_type is v3applicationcredential"
    assert words in failed.status_message
    assert emulator.nova.servers == {}


def test_responses_do_not_contain_the_trust(emulator: Emulator, mia: Caller, cloud_admin: User) -> None:
    accept(mia.post("/stacks", STACK))
    [trust] = emulator.trusts
    uuid = Stack.objects.get().uuid
    answers: list[Any] = [
        Caller(cloud_admin, "1.15").get(path) for path in (f"/stacks/shop/{uuid}", "/history", "/actions/detail")
    ]
    assert not any(trust in answer.content.decode() for answer in answers)


def test_synchronization_records_the_user_and_project_of_the_site(emulator: Emulator) -> None:
    site = Synchronization.current()
    assert (site.project, site.user) == (PROJECT, "u1")
    assert not Node.objects.exists()


def log_in(client: Client) -> None:
    """Log in to the console as rosa, a user of Keystone with a token of the project."""
    user = {"user_id": "id-of-rosa", "name": "rosa", "scope": "project", "project_id": "demo"}
    session = client.session
    session[KEYSTONE_KEY] = {
        "user": {**user, "roles": ["admin", "member"]},
        "domain": "Default",
        "project": "demo",
        "expires_at": time() + 3600,
        "checked_at": time(),
        "tokens": seal({"unscoped": "another", "scoped": "token of the session"}),
    }
    session.save()


def test_console_form_creates_a_trust_of_a_keystone_user(emulator: Emulator, client: Client) -> None:
    emulator.people["token of the session"] = "id-of-rosa"
    log_in(client)
    template = "resources: {web: {type: server, properties: {flavor: m1.small}}}"
    answer = client.post("/console/stacks/new/", {"name": "shop", "template": template, "project_id": "demo"})
    assert answer.status_code == 302, answer.content.decode()
    run_waiting()
    assert owners(emulator) == [("demo", "id-of-rosa")]


def test_console_update_uses_the_valid_trust_of_the_stack(emulator: Emulator, mia: Caller, client: Client) -> None:
    accept(mia.post("/stacks", STACK))
    stack = Stack.objects.get()
    log_in(client)
    template = "resources: {other: {type: server, properties: {flavor: m1.small}}}"
    answer = client.post(f"/console/stacks/{stack.uuid}/update/", {"template": template, "revision": stack.revision})
    assert answer.status_code == 302, answer.content.decode()
    run_waiting()
    assert owners(emulator) == [("demo", "id-of-mia")]
