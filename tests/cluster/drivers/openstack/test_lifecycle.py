"""Creation and deletion of servers by Nova: each token has one server."""

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
def synchronized_cloud(emulator: Emulator) -> None:
    write_cached_contents("two hosts")


def create(**attributes: object) -> CloudServer:
    return cloud().create_server(NewServer(**{"name": "web", "flavor": "m1.small", "token": "one", **attributes}))


def test_server_is_created_and_recorded(emulator: Emulator) -> None:
    found = create(image="an image", metadata={"role": "web"})
    server = emulator.nova.servers[found.uuid]
    assert (found.status, found.host, found.flavor) == ("ACTIVE", "compute1", "m1.small")
    assert (server["metadata"], server["image"]) == ({"role": "web", "watcher_token": "one"}, {"id": "an image"})
    assert Server.objects.get(uuid=found.uuid).node.hostname == "compute1"


def test_server_is_created_on_the_requested_host_and_zone(emulator: Emulator) -> None:
    found = create(host="compute2", zone="nova")
    assert found.host == "compute2"
    assert emulator.nova.servers[found.uuid]["pinned_availability_zone"] == "nova"


def test_server_has_the_requested_properties(emulator: Emulator) -> None:
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


def test_networks_default_to_auto(emulator: Emulator) -> None:
    create()
    assert emulator.nova.requested[0]["server"]["networks"] == "auto"


def test_unknown_network_is_refused(emulator: Emulator) -> None:
    with pytest.raises(OperationRefused, match=r"^The project has no network backend$"):
        create(properties={"networks": [{"network": "backend"}]})
    assert emulator.nova.servers == {}


def test_unknown_flavor_is_refused(emulator: Emulator) -> None:
    with pytest.raises(FlavorNotFound):
        create(flavor="none")
    assert emulator.nova.servers == {}


@pytest.mark.parametrize("name", ["web", "web (1.2) [the first]"])
def test_repeated_creation_with_one_token_returns_the_same_server(emulator: Emulator, name: str) -> None:
    assert create(name=name) == create(name=name)
    assert len(emulator.nova.servers) == 1


def test_interrupted_creation_is_resumed(emulator: Emulator) -> None:
    def die() -> None:
        raise Killed

    with pytest.raises(Killed):
        cloud().create_server(NewServer("web", "m1.small", "one"), die)
    assert create().status == "ACTIVE"
    assert len(emulator.nova.servers) == 1


def test_server_is_found_after_a_lost_response(emulator: Emulator) -> None:
    emulator.fail("POST /compute/v2.1/servers$", after=True, times=1)
    assert create().status == "ACTIVE"
    assert len(emulator.nova.servers) == 1


def test_creation_refused_as_unavailable_is_reported(emulator: Emulator) -> None:
    emulator.fail("POST /compute/v2.1/servers$", 503, times=1)
    with pytest.raises(CloudUnavailable):
        create()
    assert emulator.nova.servers == {}


def test_exceeded_quota_is_reported_with_the_message_of_nova(emulator: Emulator) -> None:
    words = "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"
    emulator.fail("POST /compute/v2.1/servers$", 403, message=words)
    with pytest.raises(OperationRefused, match=f"^The quota of the project does not allow it: {words}$"):
        create()


def test_server_with_the_same_token_in_another_project_is_ignored(emulator: Emulator) -> None:
    emulator.nova.add_server("web", "compute1", metadata={"watcher_token": "one"}, tenant_id="another project")
    foreign = next(iter(emulator.nova.servers))
    assert create().uuid != foreign


def test_server_without_a_valid_host_is_deleted(emulator: Emulator) -> None:
    for service in emulator.nova.services.values():
        service["status"] = "disabled"
    with pytest.raises(NoValidHost, match=r"^No valid host was found\. There are not enough hosts available\.$"):
        create()
    assert emulator.nova.servers == {}


def test_no_valid_host_is_recognized_without_a_further_reason(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.cluster.emulator.nova_operations.NO_VALID_HOST", "No valid host was found. ")
    test_server_without_a_valid_host_is_deleted(emulator)


def test_server_in_error_is_deleted(emulator: Emulator) -> None:
    emulator.nova.failing = "error"

    def repair() -> None:
        if any(server["status"] == "ERROR" for server in emulator.nova.servers.values()):
            emulator.nova.failing = None

    with pytest.raises(OperationFailed, match=r"failed: The hypervisor broke\.$"):
        cloud().create_server(NewServer("web", "m1.small", "one"), repair)
    assert emulator.nova.servers == {}
    assert not Server.objects.present().exists()


def test_server_in_error_of_an_earlier_creation_is_replaced(emulator: Emulator) -> None:
    emulator.nova.add_server("web", "compute1", "ERROR", metadata={"watcher_token": "one"}, tenant_id=PROJECT)
    broken = next(iter(emulator.nova.servers))
    assert create().uuid != broken
    assert broken not in emulator.nova.servers


def test_created_server_is_found_by_its_token(emulator: Emulator) -> None:
    found = create()
    assert cloud().find_created("web", "one") == found
    assert cloud().find_created("web", "two") is None


def test_deleted_server_is_marked_deleted(emulator: Emulator) -> None:
    cloud().delete_server(create().uuid)
    assert emulator.nova.servers == {}
    assert Server.objects.get().deleted_at


def test_unknown_server_cannot_be_deleted(emulator: Emulator) -> None:
    server = create().uuid
    del emulator.nova.servers[server]
    with pytest.raises(ServerNotFound):
        cloud().delete_server(server)


def test_deletion_is_requested_again_after_a_lost_response(emulator: Emulator) -> None:
    server = create().uuid
    emulator.fail("DELETE /compute/v2.1/servers", after=True, times=1)
    cloud().delete_server(server)
    assert emulator.nova.servers == {}


def test_failed_deletion_is_reported(emulator: Emulator) -> None:
    server = create().uuid
    emulator.nova.failing = "error"
    with pytest.raises(OperationFailed, match="Deleting instance"):
        cloud().delete_server(server)


def test_unknown_host_is_refused(emulator: Emulator) -> None:
    with pytest.raises(OperationRefused):
        create(host="compute9")
