"""The unmodified ``openstack stack …`` commands of python-heatclient, against a live server."""

import re

import pytest
from django.contrib.auth.models import User
from pytest_django.live_server_helper import LiveServer

from actions.types.locking import take_lock
from cluster.models import Stack, StackResource
from tests.builders import make_resource
from tests.end_to_end.clients.test_openstack_client import OpenStack, log_handlers
from tests.plans.operations.test_marking import make_action, make_group, state

__all__ = ["log_handlers"]

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:osc_lib"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:heatclient"),
]


class StackCommands(OpenStack):
    """The ``openstack stack …`` commands."""

    def run(self, *arguments: str) -> tuple[int, str, str]:
        self.capsys.readouterr()
        self.client._handle = None
        status = self.main(["stack", *arguments])
        shown = self.capsys.readouterr()
        return status, shown.out, shown.err


@pytest.fixture
def stack(db: None) -> Stack:
    return Stack.objects.create(name="shop", project_id="sales", template={"description": "what sells"})


@pytest.fixture
def web(stack: Stack) -> StackResource:
    make_resource(stack, "db")
    return make_resource(stack, "web", depends_on=["db"], physical_id="8f2c")


@pytest.fixture
def openstack(
    live_server: LiveServer,
    cloud_admin: User,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    log_handlers: None,
) -> OpenStack:
    endpoint = f"{live_server.url}/orchestration/v1/sales"
    environment = {"AUTH_TYPE": "http_basic", "USERNAME": "alice", "PASSWORD": "alice-password", "ENDPOINT": endpoint}
    for name, value in environment.items():
        monkeypatch.setenv(f"OS_{name}", value)
    from openstackclient.shell import main
    from osc_lib.clientmanager import ClientManager

    return StackCommands(main, vars(ClientManager)["orchestration"], capsys)


def test_resource_is_marked_unhealthy_and_the_mark_is_reset(openstack: OpenStack, web: StackResource) -> None:
    openstack.quietly("resource", "mark", "unhealthy", "shop", "web", "it smells")
    assert state(web) == ("CHECK_FAILED", "it smells")
    openstack.quietly("resource", "mark", "unhealthy", "shop", "web", "it smells " * 1000)
    assert state(web)[1].endswith("smells it…")
    openstack.quietly("resource", "mark", "unhealthy", "shop", "8f2c")
    assert state(web) == ("CHECK_FAILED", "state changed by resource_mark_unhealthy api")
    openstack.quietly("resource", "mark", "unhealthy", "--reset", str(web.stack.uuid), "shop-web", "aired")
    assert state(web) == ("CHECK_COMPLETE", "aired")


def test_refused_mark_is_reported_with_the_reason(openstack: OpenStack, stack: Stack, web: StackResource) -> None:
    errors = openstack.refused("resource", "mark", "unhealthy", "shop", "nope")
    assert errors.endswith("Stack or resource not found: shop nope")
    take_lock(stack, make_action("update_stack"))
    errors = openstack.refused("resource", "mark", "unhealthy", "shop", "web")
    assert errors.endswith("ERROR: Stack shop already has an action (UPDATE) in progress.")
    assert state(web)[0] == "INIT_COMPLETE"


def test_stacks_and_resources_are_listed_and_shown(openstack: OpenStack, stack: Stack, web: StackResource) -> None:
    make_group(stack)
    [shown] = openstack("list")
    assert (shown["Stack Name"], shown["Stack Status"], shown["Project"]) == ("shop", "INIT_COMPLETE", "sales")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", shown["Creation Time"])
    assert [row["Stack Name"] for row in openstack("list", "--nested", "--long")] == ["shop-group", "shop"]
    assert openstack("list", "--property", "status=FAILED") == []
    assert openstack("show", "shop")["description"] == "what sells"
    assert "Stack not found: nope" in openstack.refused("show", "nope")
    names = {row["resource_name"]: row["resource_type"] for row in openstack("resource", "list", "shop")}
    assert names == {"db": "OS::Nova::Server", "group": "OS::Heat::AutoScalingGroup", "web": "OS::Nova::Server"}
    nested = openstack("resource", "list", "shop", "-n", "5")
    assert ("abcd", "shop-group") in [(row["resource_name"], row["stack_name"]) for row in nested]
    shown = openstack("resource", "show", "shop", "db")
    assert (shown["resource_status"], shown["required_by"]) == ("INIT_COMPLETE", ["web"])
