"""References of servers in the site's own project, which Nova creates with the permissions of an administrator."""

import json
import re
from typing import Any
from uuid import uuid4

import pytest

from cluster.drivers.base import NewServer, OperationRefused, cloud
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.server import PROJECT, Emulator

pytestmark = pytest.mark.django_db
FOREIGN, OWN = str(uuid4()), str(uuid4())
DEVICES = "block_device_mapping_v2"


@pytest.fixture(autouse=True)
def project_objects(emulator: Emulator) -> None:
    """Objects of each kind, one of the site's project and one of another project."""
    for key, owner in ((OWN, PROJECT), (FOREIGN, "demo")):
        emulator.cinder.add_volume(key, "disk", "a pool", **{"os-vol-tenant-attr:tenant_id": owner})
        emulator.cinder.snapshots[key] = {"id": key, "os-extended-snapshot-attributes:project_id": owner}
        emulator.cinder.types[key] = {"id": key, "name": f"type of {owner}", "os-volume-type-access:is_public": False}
        emulator.cinder.type_access[key] = [owner]
        emulator.glance.add_image(key, owner)
        emulator.nova.server_groups[key] = {"project_id": owner, "name": "apart"}
        for items in (emulator.neutron.networks, emulator.neutron.security_groups, emulator.neutron.ports):
            items.append({"id": key, "name": "", "shared": False, "project_id": owner})
    write_cached_contents("objects of two projects")


def create(image: str | None = None, flavor: str = "m1.small", **properties: Any) -> None:
    cloud().create_server(NewServer("web", flavor, "one", image=image, properties=properties))


def device(**columns: Any) -> dict[str, Any]:
    return {"boot_index": 0, **columns}


def properties_of(key: str) -> dict[str, dict[str, Any]]:
    """Return properties that each refer to one object of this id, by the path in the error message."""
    return {
        "networks.1.network": {"networks": [{"network": OWN}, {"network": key}]},
        "networks.0.port": {"networks": [{"port": key}]},
        "security_groups.1": {"security_groups": ["web", key]},
        f"{DEVICES}.0.volume_id": {DEVICES: [device(volume_id=key)]},
        f"{DEVICES}.0.snapshot_id": {DEVICES: [device(snapshot_id=key)]},
        f"{DEVICES}.0.image": {DEVICES: [device(image=key)]},
        f"{DEVICES}.0.uuid": {DEVICES: [device(source_type="volume", uuid=key)]},
        f"{DEVICES}.0.volume_type": {DEVICES: [device(source_type="blank", volume_type=key)]},
        "scheduler_hints.group": {"scheduler_hints": {"group": key}},
        "image": {"image": key},
    }


def refusal_of(properties: dict[str, Any]) -> str:
    with pytest.raises(OperationRefused) as refusal:
        create(**properties)
    return str(refusal.value)


def test_reference_to_an_object_of_another_project_is_refused_with_its_path(emulator: Emulator) -> None:
    refusals = {path: refusal_of(properties) for path, properties in properties_of(FOREIGN).items()}
    said = {
        path: re.fullmatch(rf"(.+): The project {PROJECT} has no [a-z ]+ {FOREIGN}", refusals[path])
        for path in refusals
    }
    assert {path: found and found[1] for path, found in said.items()} == {path: path for path in refusals}
    assert emulator.nova.requested == []


def test_references_to_objects_of_the_own_project_are_accepted(emulator: Emulator) -> None:
    devices = [device(volume_id=OWN), device(snapshot_id=OWN), device(image=OWN)]
    create(
        image=OWN,
        networks=[{"network": OWN}, {"port": OWN}],
        security_groups=["web", OWN],
        scheduler_hints={"group": OWN},
        block_device_mapping_v2=[*devices, device(source_type="blank", volume_type=f"type of {PROJECT}")],
    )
    assert len(emulator.nova.requested) == 1


def test_reference_to_an_unknown_object_is_refused_with_the_same_message(emulator: Emulator) -> None:
    missing = str(uuid4())
    with pytest.raises(OperationRefused, match=rf"^networks\.0\.port: The project {PROJECT} has no port {missing}$"):
        create(networks=[{"port": missing}])


def test_id_with_a_relative_path_is_refused(emulator: Emulator) -> None:
    with pytest.raises(OperationRefused, match=r"^networks\.0\.port: "):
        create(networks=[{"port": f"{FOREIGN}/../{OWN}"}])


def test_neutron_objects_shared_with_the_project_are_accepted(emulator: Emulator) -> None:
    for items in (emulator.neutron.networks, emulator.neutron.security_groups):
        items[1]["shared"] = True
    create(networks=[{"network": FOREIGN}], security_groups=[FOREIGN])
    assert len(emulator.nova.requested) == 1


def test_public_community_and_shared_images_are_accepted(emulator: Emulator) -> None:
    images = {visibility: str(uuid4()) for visibility in ("public", "community", "shared")}
    for visibility, key in images.items():
        emulator.glance.add_image(key, "demo", visibility)
        emulator.glance.members[key] = [PROJECT]
    create(block_device_mapping_v2=[device(image=key) for key in images.values()])
    assert len(emulator.nova.requested) == 1


def test_image_shared_with_other_projects_only_is_refused(emulator: Emulator) -> None:
    emulator.glance.images[FOREIGN]["visibility"] = "shared"
    emulator.glance.members[FOREIGN] = ["demo"]
    with pytest.raises(OperationRefused, match=r"^image: "):
        create(FOREIGN)


def test_image_that_refers_to_objects_of_another_project_is_refused(emulator: Emulator) -> None:
    devices = [
        json.dumps([{"snapshot_id": FOREIGN}]),
        json.dumps([{"source_type": "volume", "uuid": FOREIGN}]),
        "no JSON",
    ]
    named = [{"kernel_id": FOREIGN}, *({"block_device_mapping": text} for text in devices)]
    own = emulator.glance.images[OWN].copy()
    refusals = []
    for columns in named:
        emulator.glance.images[OWN] = {**own, **columns}
        refusals.append(
            refusal_of({"image": OWN}).partition(" image " if columns == named[-1] else ": The project")[0]
        )
    devices_path = "image.block_device_mapping.0"
    assert refusals == [
        "image.kernel_id",
        f"{devices_path}.snapshot_id",
        f"{devices_path}.uuid",
        "image: block_device_mapping of",
    ]
    assert emulator.nova.requested == []


def test_images_that_refer_to_each_other_are_accepted(emulator: Emulator) -> None:
    other = str(uuid4())
    emulator.glance.add_image(other, PROJECT)
    emulator.glance.images[other]["kernel_id"] = OWN
    emulator.glance.images[OWN]["ramdisk_id"] = other
    create(image=OWN)
    assert len(emulator.nova.requested) == 1


def test_private_flavor_requires_access_of_the_project(emulator: Emulator) -> None:
    emulator.nova.add_flavor("f3", "gpu")
    emulator.nova.flavors["f3"]["os-flavor-access:is_public"] = False
    with pytest.raises(OperationRefused, match=rf"^flavor: The project {PROJECT} has no flavor f3$"):
        create(flavor="gpu")
    emulator.nova.flavor_access["f3"] = [PROJECT]
    create(flavor="gpu")
    assert len(emulator.nova.requested) == 1


def test_rebuild_requires_an_image_that_the_project_of_the_server_may_use(emulator: Emulator) -> None:
    server = emulator.nova.add_server("hers", "compute1", tenant_id="demo")
    with pytest.raises(OperationRefused, match=f"^image: The project demo has no image {OWN}$"):
        cloud().rebuild_server(server, OWN)
    cloud().rebuild_server(server, FOREIGN)
    assert emulator.nova.servers[server]["image"] == {"id": FOREIGN}
