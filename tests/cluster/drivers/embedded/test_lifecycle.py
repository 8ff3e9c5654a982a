"""Creation and deletion of servers by the embedded cloud: capacity, tokens, and operations of killed processes."""

import pytest
from pytest_django import Settings

from cluster.drivers.base import (
    CloudBusy,
    CloudServer,
    FlavorNotFound,
    NewServer,
    NoValidHost,
    OperationFailed,
    OperationRefused,
    ServerNotFound,
    cloud,
)
from cluster.drivers.ownership import acting_for
from cluster.models import ComputeNode, Flavor, Server, Volume
from cluster.simulated import SimulatedCloud
from tests.builders import make_flavor, make_node, make_pool, make_server, make_volume

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    pass


@pytest.fixture
def flavor() -> Flavor:
    return make_flavor("small", vcpus=2, memory=2048, disk=20)


def new_server(**attributes: object) -> NewServer:
    return NewServer(**{"name": "web", "flavor": "small", "token": "one", **attributes})


def create(**attributes: object) -> CloudServer:
    return cloud().create_server(new_server(**attributes))


def die() -> None:
    raise Killed


def interrupt_creation(owner: str, **attributes: object) -> Server:
    """Begin a creation as an owner that is killed during it."""
    with acting_for(owner), pytest.raises(Killed):
        cloud().create_server(new_server(**attributes), die)
    return Server.objects.get()


def test_server_is_created_with_the_size_of_its_flavor_on_a_node_with_capacity(flavor: Flavor) -> None:
    make_node("small", memory=1024)
    node = make_node("large")
    found = create(metadata={"role": "web"})
    row = Server.objects.get()
    assert (found.status, found.host, found.task_state, found.flavor) == ("ACTIVE", "large", None, "small")
    assert (row.node, row.vcpus, row.memory, row.disk, row.metadata) == (node, 2, 2048, 20, {"role": "web"})


def test_server_without_a_valid_host_is_not_created(flavor: Flavor) -> None:
    make_node("compute1", vcpus=3)
    create()
    with pytest.raises(NoValidHost):
        create(token="two")
    assert Server.objects.count() == 1


def test_server_with_an_unknown_flavor_is_not_created() -> None:
    with pytest.raises(FlavorNotFound, match="Flavor small not found"):
        create()


def test_server_is_created_in_the_requested_zone(flavor: Flavor) -> None:
    make_node("compute1", memory=65536)
    make_node("compute2", zone="north")
    assert create(zone="north").host == "compute2"
    with pytest.raises(NoValidHost):
        create(zone="south", token="two")


def test_server_is_created_on_the_requested_host(flavor: Flavor) -> None:
    make_node("compute1", memory=65536)
    make_node("compute2")
    assert create(host="compute2").host == "compute2"
    with pytest.raises(OperationRefused, match="Destination node compute3 not found"):
        create(host="compute3", token="two")


def test_repeated_creation_with_one_token_returns_the_same_server(flavor: Flavor) -> None:
    make_node()
    assert create() == create()
    assert Server.objects.count() == 1


def test_creations_with_different_tokens_create_different_servers(flavor: Flavor) -> None:
    make_node()
    assert create().uuid != create(token="two").uuid


def test_interrupted_creation_reserves_its_capacity(flavor: Flavor) -> None:
    make_node("compute1", vcpus=3)
    row = interrupt_creation("action")
    assert (row.state, row.task_state) == ("building", "spawning")
    with pytest.raises(NoValidHost):
        create(token="two")


def test_next_attempt_completes_an_interrupted_creation(flavor: Flavor) -> None:
    make_node()
    left = interrupt_creation("action")
    with acting_for("action", 2):
        found = create()
    assert (found.uuid, found.status) == (str(left.uuid), "ACTIVE")
    assert Server.objects.count() == 1


def test_interrupted_creation_is_busy_for_another_owner(flavor: Flavor) -> None:
    make_node()
    interrupt_creation("action")
    with acting_for("another"), pytest.raises(CloudBusy):
        create()
    assert Server.objects.count() == 1


def test_creation_continued_by_a_later_attempt_is_not_finished_by_the_earlier_one(flavor: Flavor) -> None:
    make_node()

    def begin_a_later_attempt() -> None:
        with acting_for("action", 2), pytest.raises(Killed):
            cloud().create_server(new_server(), die)

    with acting_for("action", 1), pytest.raises(OperationFailed, match="was taken out of its operation spawning"):
        cloud().create_server(new_server(), begin_a_later_attempt)
    assert (Server.objects.get().state, Server.objects.get().operation_owner) == ("building", "action/2")


def test_failed_creation_leaves_no_server(flavor: Flavor, settings: Settings) -> None:
    make_node()
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    with pytest.raises(OperationFailed):
        create()
    assert not Server.objects.present().exists()


def test_created_server_is_found_by_its_token(flavor: Flavor) -> None:
    make_node()
    found = create()
    assert cloud().find_created("web", "one") == found
    assert cloud().find_created("web", "two") is None


def test_deleted_server_releases_its_capacity(flavor: Flavor) -> None:
    make_node("compute1", vcpus=3)
    cloud().delete_server(create().uuid)
    assert create().status == "ACTIVE"
    assert Server.objects.present().count() == 1


def test_deleted_server_cannot_be_deleted_again(flavor: Flavor) -> None:
    make_node()
    server = create().uuid
    cloud().delete_server(server)
    with pytest.raises(ServerNotFound):
        cloud().delete_server(server)


def test_server_is_deleted_during_another_operation() -> None:
    node, other = make_node("compute1"), make_node("compute2")
    server = make_server(node=node, destination=other, task_state="migrating", operation_owner="another/1")
    cloud().delete_server(str(server.uuid))
    assert not Server.objects.present().exists()


def test_interrupted_creation_can_be_deleted(flavor: Flavor) -> None:
    make_node()
    cloud().delete_server(str(interrupt_creation("action").uuid))
    assert not Server.objects.present().exists()


def test_interrupted_deletion_is_completed_by_the_next_request(flavor: Flavor) -> None:
    make_node()
    server = create().uuid
    with acting_for("action"), pytest.raises(Killed):
        cloud().delete_server(server, die)
    assert Server.objects.get().task_state == "deleting"
    cloud().delete_server(server)
    assert not Server.objects.present().exists()


def test_failed_deletion_leaves_the_server_unchanged(flavor: Flavor, settings: Settings) -> None:
    make_node()
    server = create().uuid
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    with pytest.raises(OperationFailed):
        cloud().delete_server(server)
    assert (Server.objects.get().state, Server.objects.get().task_state) == ("active", None)


def test_volumes_of_a_deleted_server_become_available(flavor: Flavor) -> None:
    server, other = make_server(node=make_node()), make_server("other")
    make_volume("own", make_pool(), attached_to=[server])
    make_volume("shared", make_pool("b@lvm#one"), attached_to=[server, other])
    cloud().delete_server(str(server.uuid))
    assert dict(Volume.objects.values_list("name", "status")) == {"own": "available", "shared": "in-use"}


def test_simulated_creation_uses_the_node_that_the_scheduler_would_choose(flavor: Flavor) -> None:
    make_node("compute1", vcpus=3)
    make_node("compute2", memory=65536, vcpus=3)
    model = SimulatedCloud.load()
    assert [model.create_server(new_server(token=token)).host for token in ("one", "one", "two")] == [
        "compute2",
        "compute2",
        "compute1",
    ]
    with pytest.raises(NoValidHost):
        model.create_server(new_server(token="three"))
    model.delete_server(model.find_created("web", "one").uuid)
    assert model.create_server(new_server(token="three")).host == "compute2"
    assert not Server.objects.exists()
    assert ComputeNode.objects.count() == 2
