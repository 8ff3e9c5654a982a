"""Servers in the projects of their owners, with trusts of a real Keystone and a real Nova."""

from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import openstack
import pytest
from django.http import HttpResponse
from django.utils import timezone
from pytest_django import Settings

from actions.models import Action
from cluster.drivers.base import NewServer, cloud
from cluster.models import Server, Stack, Trust
from cluster.operations.synchronization import synchronize
from tests.api import Caller, fault
from tests.openstack.configuration import AUTH_URL, COMPUTE_NODES
from tests.openstack.conftest import Nova
from tests.plans.inline import run_waiting
from watcher_site.keystone.login import read_token

pytestmark = pytest.mark.openstack


@pytest.fixture
def member(nova: Nova, settings: Settings) -> Iterator[Caller]:
    """The member of the project demo, who authenticates with a token of Keystone."""
    settings.KEYSTONE_URL = AUTH_URL
    token = str(nova.member.session.get_token())
    user = read_token(token).user
    caller = Caller(user, "1.15")  # type: ignore[arg-type]
    caller.headers["X-Auth-Token"] = token
    yield caller
    for trust in trusts(nova):
        nova.service.identity.delete_trust(trust.id)


def trusts(nova: Nova) -> list[Any]:
    return list(nova.service.identity.trusts(trustee_user_id=nova.service.current_user_id))


def template_of(nova: Nova, name: str = "web", **properties: Any) -> dict[str, Any]:
    server = {"flavor": "tiny", "image": nova.image.id, "networks": "none", **properties}
    return {"resources": {name: {"type": "server", "properties": server}}}


def stack_of(nova: Nova, **properties: Any) -> dict[str, Any]:
    return {"name": "shop", "template": template_of(nova, **properties)}


def accept(answer: HttpResponse) -> None:
    assert answer.status_code == 202, fault(answer)
    run_waiting()


def created(nova: Nova) -> Any:
    """Return the only server, as Nova shows it to administrators."""
    [server] = nova.servers()
    return nova.show(server)


def owner_of(nova: Nova) -> tuple[str, str]:
    return nova.member.current_project_id, nova.member.current_user_id


@pytest.fixture
def key_pair(nova: Nova) -> Iterator[str]:
    nova.member.compute.create_keypair(name="mine")
    yield "mine"
    nova.member.compute.delete_keypair("mine")


@pytest.fixture
def group(nova: Nova) -> Iterator[str]:
    found = nova.member.compute.create_server_group(name="apart", policy="anti-affinity")
    yield str(found.id)
    nova.member.compute.delete_server_group(found)


def test_server_of_a_stack_is_in_the_project_of_the_member_with_the_requested_properties(
    nova: Nova, member: Caller, key_pair: str, group: str
) -> None:
    requested = {
        "key_name": key_pair,
        "scheduler_hints": {"group": group},
        "tags": ["shop"],
        "user_data": "#!/bin/sh",
        "config_drive": True,
    }
    accept(member.post("/stacks", stack_of(nova, **requested)))
    server = created(nova)
    assert (server.status, server.project_id, server.user_id) == ("ACTIVE", *owner_of(nova))
    assert (server.key_name, server.tags, server.server_groups) == (key_pair, ["shop"], [group])
    assert b64decode(server.user_data) == b"#!/bin/sh"
    assert [found.id for found in nova.member.compute.servers()] == [server.id]
    accept(member.delete(f"/stacks/shop/{Stack.objects.get().uuid}"))
    assert nova.servers() == []


def test_repeated_request_by_a_trust_creates_one_server(nova: Nova, member: Caller) -> None:
    accept(member.post("/stacks", stack_of(nova)))
    project, _ = owner_of(nova)
    trust = Trust.objects.get().keystone_id
    properties = {"networks": "none"}
    wanted = NewServer("more", "tiny", "one", image=nova.image.id, project=project, trust=trust, properties=properties)
    assert cloud().create_server(wanted) == cloud().create_server(wanted)
    assert len(nova.servers()) == 2


def test_exceeded_quota_fails_the_action_with_the_text_of_nova(nova: Nova, member: Caller) -> None:
    project, _ = owner_of(nova)
    nova.service.set_compute_quotas(project, instances=0)
    try:
        accept(member.post("/stacks", stack_of(nova)))
    finally:
        nova.service.delete_compute_quotas(project)
    failed = Action.objects.get(action_type="create_resource")
    assert failed.state == "FAILED"
    words = "The quota of the project does not allow it: Quota exceeded for instances"
    assert words in failed.status_message


def test_deleted_trust_fails_the_action_and_is_replaced_by_the_next_request(nova: Nova, member: Caller) -> None:
    answer = member.post("/stacks", stack_of(nova))
    [trust] = trusts(nova)
    nova.service.identity.delete_trust(trust.id)
    accept(answer)
    assert "Keystone refuses the trust" in Action.objects.get(action_type="create_resource").status_message
    accept(member.put(f"/stacks/shop/{Stack.objects.get().uuid}", {}))
    assert created(nova).project_id == owner_of(nova)[0]
    assert len(trusts(nova)) == 1


@pytest.fixture
def credential_token(nova: Nova) -> Iterator[str]:
    """A token of a restricted application credential of the member."""
    user = nova.member.current_user_id
    made = nova.member.identity.create_application_credential(user, name="pipeline")
    login = {"application_credential_id": made.id, "application_credential_secret": made.secret}
    options = {"load_yaml_config": False, "load_envvars": False, "auth_type": "v3applicationcredential"}
    yield str(openstack.connect(**options, auth={"auth_url": AUTH_URL, **login}).session.get_token())
    nova.member.identity.delete_application_credential(user, made)


def test_application_credential_uses_the_trust_of_a_stack_and_cannot_create_a_trust(
    nova: Nova, member: Caller, credential_token: str
) -> None:
    accept(member.post("/stacks", stack_of(nova)))
    member.headers["X-Auth-Token"] = credential_token
    Trust.objects.update(user_id="another user of the project")
    change = {"template": template_of(nova, "other")}
    accept(member.put(f"/stacks/shop/{Stack.objects.get().uuid}", change))
    assert (created(nova).name[:10], created(nova).project_id) == ("shop-other", owner_of(nova)[0])
    refused = member.post("/stacks", stack_of(nova) | {"name": "another"})
    words = "project_id: Keystone refuses that the site creates servers as member in the project: "
    assert (refused.status_code, fault(refused).startswith(words)) == (409, True), fault(refused)
    assert len(trusts(nova)) == 1


def test_unused_trust_is_deleted_in_keystone(nova: Nova, member: Caller) -> None:
    accept(member.post("/stacks", stack_of(nova)))
    accept(member.delete(f"/stacks/shop/{Stack.objects.get().uuid}"))
    Trust.objects.update(used_at=timezone.now() - timedelta(hours=2))
    synchronize()
    assert (trusts(nova), Trust.objects.count()) == ([], 0)


def test_pending_server_of_a_member_with_a_trust_is_built_for_the_member(
    nova: Nova, member: Caller, key_pair: str, group: str, settings: Settings
) -> None:
    settings.USE_PENDING_STATE = True
    accept(member.post("/stacks", stack_of(nova)))
    accept(member.delete(f"/stacks/shop/{Stack.objects.get().uuid}"))
    for service in nova.compute.services(binary="nova-compute"):
        nova.compute.disable_service(service.id)
    own = nova.ask_for(
        "waiting",
        by=nova.member,
        key_name=key_pair,
        user_data=b64encode(b"#!/bin/sh").decode(),
        scheduler_hints={"group": group},
        tags=["shop"],
        description="of the member",
    )
    for service in nova.compute.services(binary="nova-compute"):
        nova.compute.enable_service(service.id)
    synchronize()
    assert str(Server.objects.get(uuid=own.id).state) == "pending"
    cloud().build_server(str(own.id))
    server = created(nova)
    assert (server.id != own.id, server.status, server.compute_host in COMPUTE_NODES) == (True, "ACTIVE", True)
    assert (server.project_id, server.user_id) == owner_of(nova)
    assert (server.key_name, server.tags, server.server_groups) == (key_pair, ["shop"], [group])
    assert (b64decode(server.user_data), server.description) == (b"#!/bin/sh", "of the member")
