"""Servers that the site creates in a real Nova."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from cluster.drivers.base import NewServer, NoValidHost, OperationRefused, cloud
from cluster.models import Server
from tests.openstack.catalog import NETWORK
from tests.openstack.conftest import Nova
from tests.openstack.control_plane import INTERVAL, PATIENCE
from tests.waiting import wait_for

pytestmark = pytest.mark.openstack
DEVICES = "block_device_mapping_v2"


def test_second_request_with_the_same_token_creates_no_second_server(nova: Nova) -> None:
    wanted = NewServer("made", "tiny", token="a token", image=nova.image.id, metadata={"role": "web"})
    first, second = cloud().create_server(wanted), cloud().create_server(wanted)
    [found] = nova.servers()
    assert (first.uuid, second.uuid, found.status) == (found.id, found.id, "ACTIVE")
    assert found.metadata == {"role": "web", "watcher_token": "a token"}
    assert found.addresses
    row = Server.objects.get(uuid=found.id)
    assert (row.node.hostname, row.project_id) == (found.compute_host, nova.service.current_project_id)
    cloud().delete_server(found.id)
    assert nova.servers() == []


def test_server_that_nova_cannot_build_is_deleted_and_its_fault_is_reported(nova: Nova) -> None:
    nova.flavor("huge", 1, 400_000, 1)
    wanted = NewServer("made", "huge", token="a token", image=nova.image.id)
    with pytest.raises(NoValidHost, match="No valid host was found"):
        cloud().create_server(wanted)
    assert nova.servers() == []
    # The token is free again.
    assert cloud().create_server(replace(wanted, flavor="tiny")).status == "ACTIVE"


@pytest.fixture
def foreign(nova: Nova) -> Iterator[dict[str, str]]:
    """The ids of objects of another project, by kind."""
    member, project = nova.member, nova.member.current_project_id
    storage = member.block_storage
    volume = storage.create_volume(name="secret", size=1)
    wait_for(lambda: storage.get_volume(volume.id).status == "available", PATIENCE, INTERVAL)
    snapshot = storage.create_snapshot(volume_id=volume.id, name="secret")
    wait_for(lambda: storage.get_snapshot(snapshot.id).status == "available", PATIENCE, INTERVAL)
    formats = {"disk_format": "raw", "container_format": "bare", "visibility": "private"}
    image = member.image.create_image("secret", data=b"\0" * 1024, wait=True, **formats)
    group = member.compute.create_server_group(name="secret", policy="anti-affinity")
    shared = nova.service.network.find_network(NETWORK)
    port = nova.service.network.create_port(network_id=shared.id, project_id=project)
    network = member.network.create_network(name="secret")
    firewall = member.network.create_security_group(name="secret")
    made = {"volume": volume, "snapshot": snapshot, "image": image, "server group": group, "port": port}
    made |= {"network": network, "security group": firewall}
    yield {kind: str(found.id) for kind, found in made.items()}
    member.network.delete_security_group(firewall)
    member.network.delete_network(network)
    nova.service.network.delete_port(port)
    member.compute.delete_server_group(group)
    member.image.delete_image(image)
    storage.delete_snapshot(snapshot)
    wait_for(lambda: not list(storage.snapshots()), PATIENCE, INTERVAL)
    storage.delete_volume(volume)


def test_objects_of_another_project_are_refused_for_a_server_of_the_site(nova: Nova, foreign: dict[str, str]) -> None:
    def device(kind: str, **columns: Any) -> dict[str, Any]:
        return {DEVICES: [{"boot_index": 0, "source_type": kind, "uuid": foreign[kind], **columns}]}

    named: dict[tuple[str, str], dict[str, Any]] = {
        (f"{DEVICES}.0.uuid", "volume"): device("volume", destination_type="volume"),
        (f"{DEVICES}.0.uuid", "snapshot"): device("snapshot", destination_type="volume"),
        (f"{DEVICES}.0.uuid", "image"): device("image", destination_type="local"),
        ("scheduler_hints.group", "server group"): {"scheduler_hints": {"group": foreign["server group"]}},
        ("networks.0.port", "port"): {"networks": [{"port": foreign["port"]}]},
        ("networks.0.network", "network"): {"networks": [{"network": foreign["network"]}]},
        ("security_groups.0", "security group"): {"security_groups": [foreign["security group"]]},
    }
    for (path, kind), properties in named.items():
        wanted = NewServer("made", "tiny", token="a token", properties={"networks": "none", **properties})
        with pytest.raises(OperationRefused) as refusal:
            cloud().create_server(wanted)
        project = nova.service.current_project_id
        assert str(refusal.value) == f"{path}: The project {project} has no {kind} {foreign[kind]}"
    with pytest.raises(OperationRefused, match=f"has no image {foreign['image']}"):
        cloud().create_server(NewServer("made", "tiny", token="a token", image=foreign["image"]))
    assert nova.servers() == []


def test_server_keeps_its_requested_address_and_security_group_when_it_migrates(nova: Nova) -> None:
    group = nova.service.network.create_security_group(name="web")
    networks = [{"network": NETWORK, "fixed_ip": "10.0.7.7"}]
    properties = {"networks": networks, "security_groups": [group.id]}
    made = cloud().create_server(
        NewServer("made", "tiny", token="a token", image=nova.image.id, host="cmp1", properties=properties)
    )
    cloud().live_migrate(made.uuid, "cmp2")
    found = nova.show(made.uuid)
    assert [address["addr"] for address in found.addresses[NETWORK]] == ["10.0.7.7"]
    assert found.security_groups == [{"name": "web"}]
    [port] = nova.service.network.ports(device_id=made.uuid)
    assert port.binding_host_id == "cmp2"
    cloud().delete_server(made.uuid)
    nova.service.network.delete_security_group(group)


def test_server_with_a_volume_of_the_project_is_created(nova: Nova) -> None:
    storage = nova.service.block_storage
    volume = storage.create_volume(name="data", size=1)
    wait_for(lambda: storage.get_volume(volume.id).status == "available", PATIENCE, INTERVAL)
    device = {"boot_index": -1, "source_type": "volume", "destination_type": "volume", "uuid": volume.id}
    root = {"boot_index": 0, "source_type": "image", "destination_type": "local", "uuid": nova.image.id}
    properties = {"networks": "none", DEVICES: [root, device]}
    made = cloud().create_server(
        NewServer("made", "tiny", token="a token", image=nova.image.id, properties=properties)
    )
    assert [found.volume_id for found in nova.compute.volume_attachments(made.uuid)] == [volume.id]
    assert storage.get_volume(volume.id).status == "in-use"
    cloud().delete_server(made.uuid)
    wait_for(lambda: storage.get_volume(volume.id).status == "available", PATIENCE, INTERVAL)
    storage.delete_volume(volume)
