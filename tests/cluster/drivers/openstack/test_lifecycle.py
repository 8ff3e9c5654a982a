"""Servers that we have Nova create and delete, and that there is one of each."""

from base64 import b64encode
from uuid import uuid4

import pytest

from cluster.drivers.base import (
    CloudServer,
    CloudUnavailable,
    FlavorNotFound,
    NewServer,
    NoValidHost,
    OperationFailed,
    OperationRefused,
    ServerNotFound,
    cloud,
)
from cluster.models import Server
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.server import PROJECT, Emulator

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    pass


@pytest.fixture(autouse=True)
def known(emulator: Emulator) -> None:
    write_cached_contents("two hosts")


def create(**attributes: object) -> CloudServer:
    return cloud().create_server(NewServer(**{"name": "web", "flavor": "m1.small", "token": "one", **attributes}))


def test_a_server_is_created_and_comes_into_its_row(emulator: Emulator) -> None:
    found = create(image="an image", metadata={"role": "web"})
    server = emulator.nova.servers[found.uuid]
    assert (found.status, found.host, found.flavor) == ("ACTIVE", "compute1", "m1.small")
    assert (server["metadata"], server["image"]) == ({"role": "web", "watcher_token": "one"}, {"id": "an image"})
    assert Server.objects.get(uuid=found.uuid).node.hostname == "compute1"


def test_a_server_is_created_where_it_must_be(emulator: Emulator) -> None:
    found = create(host="compute2", zone="nova")
    assert found.host == "compute2"
    assert emulator.nova.servers[found.uuid]["pinned_availability_zone"] == "nova"


def test_a_server_has_the_properties_that_its_description_names(emulator: Emulator) -> None:
    network, volume = str(uuid4()), str(uuid4())
    emulator.neutron.networks.append({"id": network, "name": "backend"})
    emulator.neutron.ports.append({"id": "a port", "project_id": PROJECT})
    emulator.cinder.add_volume(volume, "disk", "a pool", **{"os-vol-tenant-attr:tenant_id": PROJECT})
    hints = {"group": str(uuid4())}
    emulator.nova.server_groups[hints["group"]] = {"project_id": PROJECT}
    properties = {
        "key_name": "mine",
        "networks": [{"network": "backend", "fixed_ip": "10.0.0.7"}, {"port": "a port"}],
        "security_groups": ["web"],
        "user_data": "#!/bin/sh",
        "config_drive": True,
        "block_device_mapping_v2": [{"volume_id": volume, "boot_index": 0}],
        "scheduler_hints": hints,
        "tags": ["shop"],
    }
    create(properties=properties)
    requested = emulator.nova.requested[0]
    expected = {
        "key_name": "mine",
        "networks": [{"uuid": network, "fixed_ip": "10.0.0.7"}, {"port": "a port"}],
        "security_groups": [{"name": "web"}],
        "user_data": b64encode(b"#!/bin/sh").decode(),
        "config_drive": True,
        "block_device_mapping_v2": [
            {"source_type": "volume", "destination_type": "volume", "uuid": volume, "boot_index": 0}
        ],
        "tags": ["shop"],
    }
    assert {name: requested["server"][name] for name in expected} == expected
    assert requested["OS-SCH-HNT:scheduler_hints"] == hints


def test_without_named_networks_nova_chooses_one(emulator: Emulator) -> None:
    create()
    assert emulator.nova.requested[0]["server"]["networks"] == "auto"


def test_a_server_on_a_network_that_is_not_there_is_refused(emulator: Emulator) -> None:
    with pytest.raises(OperationRefused, match=r"^The project has no network backend$"):
        create(properties={"networks": [{"network": "backend"}]})
    assert emulator.nova.servers == {}


def test_a_server_of_an_unknown_flavor_is_not_created(emulator: Emulator) -> None:
    with pytest.raises(FlavorNotFound):
        create(flavor="none")
    assert emulator.nova.servers == {}


@pytest.mark.parametrize("name", ["web", "web (1.2) [the first]"])
def test_a_token_stands_for_one_server_however_often_it_is_requested(emulator: Emulator, name: str) -> None:
    assert create(name=name) == create(name=name)
    assert len(emulator.nova.servers) == 1


def test_a_server_whose_creation_was_interrupted_is_waited_for(emulator: Emulator) -> None:
    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        cloud().create_server(NewServer("web", "m1.small", "one"), die)
    assert create().status == "ACTIVE"
    assert len(emulator.nova.servers) == 1


def test_where_the_answer_is_lost_the_server_is_found(emulator: Emulator) -> None:
    emulator.fail("POST /compute/v2.1/servers$", after=True, times=1)
    assert create().status == "ACTIVE"
    assert len(emulator.nova.servers) == 1


def test_a_creation_that_did_not_reach_nova_is_reported(emulator: Emulator) -> None:
    emulator.fail("POST /compute/v2.1/servers$", 503, times=1)
    with pytest.raises(CloudUnavailable):
        create()
    assert emulator.nova.servers == {}


def test_a_quota_of_the_cloud_is_reported_as_such(emulator: Emulator) -> None:
    words = "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"
    emulator.fail("POST /compute/v2.1/servers$", 403, message=words)
    with pytest.raises(OperationRefused, match=f"^The quota of the project does not allow it: {words}$"):
        create()


def test_a_server_with_the_token_in_another_project_is_not_taken(emulator: Emulator) -> None:
    emulator.nova.add_server("web", "compute1", metadata={"watcher_token": "one"}, tenant_id="another project")
    foreign = next(iter(emulator.nova.servers))
    assert create().uuid != foreign


def test_a_server_without_capacity_leaves_nothing_behind(emulator: Emulator) -> None:
    for service in emulator.nova.services.values():
        service["status"] = "disabled"
    with pytest.raises(NoValidHost, match=r"^No valid host was found\. There are not enough hosts available\.$"):
        create()
    assert emulator.nova.servers == {}


def test_a_server_without_capacity_is_known_where_nova_gives_no_further_reason(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.cluster.emulator.nova_operations.NO_VALID_HOST", "No valid host was found. ")
    test_a_server_without_capacity_leaves_nothing_behind(emulator)


def test_a_server_that_breaks_leaves_nothing_behind(emulator: Emulator) -> None:
    emulator.nova.failing = "error"

    def repair() -> None:
        if any(server["status"] == "ERROR" for server in emulator.nova.servers.values()):
            emulator.nova.failing = None

    with pytest.raises(OperationFailed, match=r"failed: The hypervisor broke\.$"):
        cloud().create_server(NewServer("web", "m1.small", "one"), repair)
    assert emulator.nova.servers == {}
    assert not Server.objects.present().exists()


def test_a_broken_server_that_was_left_behind_makes_way_for_another(emulator: Emulator) -> None:
    emulator.nova.add_server("web", "compute1", "ERROR", metadata={"watcher_token": "one"}, tenant_id=PROJECT)
    broken = next(iter(emulator.nova.servers))
    assert create().uuid != broken
    assert broken not in emulator.nova.servers


def test_what_was_created_is_found_by_its_token(emulator: Emulator) -> None:
    found = create()
    assert cloud().find_created("web", "one") == found
    assert cloud().find_created("web", "two") is None


def test_a_server_is_deleted_and_its_row_is_marked(emulator: Emulator) -> None:
    cloud().delete_server(create().uuid)
    assert emulator.nova.servers == {}
    assert Server.objects.get().deleted_at


def test_a_server_that_is_gone_can_not_be_deleted(emulator: Emulator) -> None:
    server = create().uuid
    del emulator.nova.servers[server]
    with pytest.raises(ServerNotFound):
        cloud().delete_server(server)


def test_a_deletion_whose_answer_is_lost_is_requested_again(emulator: Emulator) -> None:
    server = create().uuid
    emulator.fail("DELETE /compute/v2.1/servers", after=True, times=1)
    cloud().delete_server(server)
    assert emulator.nova.servers == {}


def test_a_server_that_nova_can_not_delete_is_reported(emulator: Emulator) -> None:
    server = create().uuid
    emulator.nova.failing = "error"
    with pytest.raises(OperationFailed, match="Deleting instance"):
        cloud().delete_server(server)


def test_a_host_that_is_not_there_is_refused(emulator: Emulator) -> None:
    with pytest.raises(OperationRefused):
        create(host="compute9")
