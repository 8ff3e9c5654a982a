"""resize on the embedded cloud: skips, failures, results and recovery."""

from uuid import uuid4

import pytest

from actions.types.base import (
    DONE,
    ActionContext,
    ActionFailed,
    ActionSkipException,
    ActionType,
    Recovery,
    explain,
    make,
)
from cluster.drivers.base import CloudError
from cluster.models import Server
from tests.builders import make_flavor, make_node, make_server

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Server:
    make_flavor("large", flavor_id="4", vcpus=8, memory=8192, disk=40, extra_specs={"hw:cpu": "pinned"})
    return make_server(node=make_node(vcpus=16), flavor="small")


def resize(server: Server, flavor: str = "large") -> ActionType:
    return make("resize", {"resource_id": str(server.uuid), "flavor": flavor}, ActionContext())


def reload(server: Server) -> Server:
    found: Server = Server.objects.get(pk=server.pk)
    return found


def refusal(action: ActionType) -> str:
    with pytest.raises(CloudError) as caught:
        action.execute()
    return explain(caught.value)


def test_deleted_server_is_skipped() -> None:
    missing = str(uuid4())
    action = make("resize", {"resource_id": missing, "flavor": "large"}, ActionContext())
    with pytest.raises(ActionSkipException, match=f"^Instance {missing} not found$"):
        action.pre_condition()


def test_unknown_flavor_fails(server: Server) -> None:
    with pytest.raises(CloudError, match=r"^Flavor golden not found$"):
        resize(server, "golden").pre_condition()


@pytest.mark.parametrize("flavor", ["large", "4"])
def test_server_gets_the_flavor_by_name_or_id(server: Server, flavor: str) -> None:
    action = resize(server, flavor)
    action.pre_condition()
    assert action.execute() == DONE
    resized = reload(server)
    assert (resized.flavor, resized.vcpus, resized.memory, resized.disk) == ("large", 8, 8192, 40)
    assert resized.flavor_extra_specs == {"hw:cpu": "pinned"}
    assert (resized.state, resized.task_state, resized.new_flavor) == ("active", None, None)


def test_resize_fails_if_the_node_has_no_capacity_for_the_difference(server: Server) -> None:
    make_server("other", server.node, vcpus=9)
    assert refusal(resize(server)) == "No valid host was found. compute1 has 5 VCPUs free of 6 needed."
    assert reload(server).task_state is None


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"disk": 80}, "The disk of flavor large is smaller than that of instance {}"),
        ({"flavor": "large"}, "Instance {} has flavor large already"),
        ({"state": "paused"}, "Instance {} can not be resized while it is paused"),
        ({"task_state": "migrating"}, "Instance {} is busy: migrating"),
        ({"node": None}, "Instance {} is on no node"),
    ],
)
def test_cloud_refuses_an_impossible_resize(server: Server, columns: dict[str, object], reason: str) -> None:
    Server.objects.filter(pk=server.pk).update(**columns)
    assert refusal(resize(server)) == reason.format(server.uuid)


def test_server_uses_the_larger_flavor_during_the_resize(server: Server, settings: pytest.FixtureRequest) -> None:
    server.new_flavor, server.task_state = make_flavor("huge", vcpus=14, memory=1, disk=1), "resizing"
    server.save_changes(["new_flavor", "task_state"])
    node = type(server.node).objects.with_use().get()
    assert (node.used_vcpus, node.used_memory) == (14, 2048)


def test_interrupted_resize_is_reset_and_repeated(server: Server) -> None:
    server.new_flavor, server.task_state = make_flavor("huge"), "resizing"
    server.save_changes(["new_flavor", "task_state"])
    assert resize(server).recover() is Recovery.AGAIN
    assert (reload(server).new_flavor, reload(server).task_state) == (None, None)


def test_completed_resize_is_not_repeated(server: Server) -> None:
    resize(server).execute()
    assert resize(server).recover() is Recovery.DONE


def test_failed_resize_changes_nothing(server: Server, settings: object) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    refusal(resize(server))
    assert (reload(server).vcpus, reload(server).new_flavor, reload(server).task_state) == (2, None, None)


def test_resize_can_be_neither_aborted_nor_reverted(server: Server) -> None:
    assert resize(server).abort() is False
    with pytest.raises(ActionFailed, match=r"^Actions of type resize can not be reverted$"):
        resize(server).revert()
