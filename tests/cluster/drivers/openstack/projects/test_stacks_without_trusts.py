"""Stacks on an OpenStack cloud without trusts: the site creates servers in its own project only."""

import pytest
from django.contrib.auth.models import User

from cluster.models import Stack, Synchronization
from cluster.operations.synchronization import synchronize
from tests.api import Caller, fault
from tests.builders import make_stack
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.server import PROJECT, Emulator
from tests.conftest import person
from watcher_site.accounts.projects import add_member

pytestmark = pytest.mark.django_db
WEB = {"type": "server", "properties": {"flavor": "m1.small"}}
STACK = {"name": "shop", "template": {"version": 1, "resources": {"web": WEB}}}


@pytest.fixture
def member(emulator: Emulator) -> Caller:
    """A member of two projects, of which one is the site's own, with a synchronized cloud."""
    write_cached_contents("two hosts")
    user = person("mia", "member")
    for project in (PROJECT, "demo"):
        add_member("mia", project)
    return Caller(user, "1.11")


def body(project: str) -> dict[str, object]:
    return {**STACK, "project_id": project}


def path(stack: Stack) -> str:
    return f"/stacks/{stack.name}/{stack.uuid}"


def test_stack_of_another_project_is_refused(member: Caller) -> None:
    response = member.post("/stacks", body("demo"))
    assert response.status_code == 409
    message = (
        f"This cloud creates servers in the site's own project {PROJECT}, and in project demo only as a user of it"
    )
    assert fault(response).startswith(f"project_id: {message}")
    assert not Stack.objects.exists()


def test_stack_of_the_own_project_is_created(member: Caller) -> None:
    assert member.post("/stacks", body(PROJECT)).status_code == 202


def test_update_of_a_stack_of_another_project_is_refused(member: Caller) -> None:
    stack = make_stack(project_id="demo", status="CREATE_COMPLETE")
    assert member.put(path(stack)).status_code == 409


def test_stack_of_another_project_is_deleted(member: Caller) -> None:
    stack = make_stack(project_id="demo", status="CREATE_COMPLETE")
    assert member.delete(path(stack)).status_code == 202


def test_administrator_creates_a_stack_of_no_project(emulator: Emulator, cloud_admin: User) -> None:
    synchronize()
    assert Caller(cloud_admin, "1.11").post("/stacks", STACK).status_code == 202


def test_stack_of_a_project_is_refused_before_the_first_synchronization(member: Caller) -> None:
    Synchronization.objects.all().delete()
    response = member.post("/stacks", body(PROJECT))
    assert (response.status_code, b"run sync_cluster" in response.content) == (409, True)
