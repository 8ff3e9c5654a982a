"""Checks that the project of a new server may use the objects that the request names.

Nova accepts the objects of all projects from an administrator. These checks follow the rules by which OpenStack's
services show objects to members of a project, and by which Nova lets members attach them.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from openstack.connection import Connection

from cluster.drivers import openstack_messages as messages
from cluster.drivers.base import NewServer, OperationRefused
from cluster.drivers.openstack.access import Access
from cluster.drivers.server_properties import SHORT_SOURCES
from watcher_site.database.records import parse_uuid

OPEN_IMAGES = ("public", "community")
# The sources of block devices in images, which Nova adds to the devices of a request.
SOURCES_IN_IMAGES = {**SHORT_SOURCES, "image_id": "image"}
# The path, the kind and the id or name of an object.
Reference = tuple[str, str, str]


def require_usable(request: NewServer, flavor: str, access: Access) -> None:
    """Check that the project of the login may use each object that a new server names.

    Names of networks and security groups are not checked: `lifecycle.find_network` and Nova search for them in the
    project.

    Args:
        flavor: the id of the flavor.

    Raises:
        OperationRefused: an object does not exist or may not be used. The message begins with the property.
    """
    checked: set[tuple[str, str]] = set()
    for reference in [("flavor", "flavor", flavor), *list_references(request)]:
        require_reference(reference, access, access.project, checked)


def require_usable_image(image: str, access: Access, project: str) -> None:
    """Check that a project may use an image. Raises: `OperationRefused`."""
    require_reference(("image", "image", image), access, project, set())


def require_reference(reference: Reference, access: Access, project: str, checked: set[tuple[str, str]]) -> None:
    """Check that a project may use an object and the objects that it names.

    Args:
        checked: the kinds and keys of objects that were checked before, because images can refer to each other.

    Raises:
        OperationRefused: the object does not exist, or the project may not use it.
    """
    path, kind, key = reference
    if (kind, key) in checked:
        return
    checked.add((kind, key))
    refusal = OperationRefused(messages.NOT_IN_PROJECT.fill(path=path, project=project, type=kind, key=key))
    details = access.read(lambda cloud: find_usable(cloud, kind, key, project), refusal)
    if details is None:
        raise refusal
    if kind == "image":
        for inner in references_in_image(path, details):
            require_reference(inner, access, project, checked)


def list_references(request: NewServer) -> Iterator[Reference]:
    """Yield the objects that a new server refers to, except its flavor."""
    properties = request.properties
    if request.image:
        yield "image", "image", request.image
    networks = properties.get("networks", "auto")
    for number, network in enumerate([] if isinstance(networks, str) else networks):
        for kind in ("port", "network"):
            if kind in network and (kind == "port" or parse_uuid(network[kind])):
                yield f"networks.{number}.{kind}", kind, network[kind]
    for number, group in enumerate(properties.get("security_groups", ())):
        if parse_uuid(group):
            yield f"security_groups.{number}", "security group", group
    yield from references_of_devices(
        "block_device_mapping_v2", properties.get("block_device_mapping_v2", ()), SHORT_SOURCES
    )
    groups = (properties.get("scheduler_hints") or {}).get("group") or []
    for group in [groups] if isinstance(groups, str) else groups:
        yield "scheduler_hints.group", "server group", group


def references_of_devices(
    path: str, devices: Iterable[Mapping[str, Any]], sources: Mapping[str, str]
) -> Iterator[Reference]:
    """Yield the objects that block devices refer to.

    Args:
        sources: kinds of objects by the names of their properties, besides ``uuid``.
    """
    for number, device in enumerate(devices):
        kinds = {"uuid": device.get("source_type", ""), **sources, "volume_type": "volume type"}
        for name, kind in kinds.items():
            if device.get(name):
                yield f"{path}.{number}.{name}", kind, device[name]


def references_in_image(path: str, image: Any) -> Iterator[Reference]:
    """Yield the objects that an image refers to. Nova accesses them with the rights of the request.

    Raises:
        OperationRefused: its block devices are not valid.
    """
    for name in ("kernel_id", "ramdisk_id"):
        if key := getattr(image, name, None):
            yield f"{path}.{name}", "image", key
    devices = (image.properties or {}).get("block_device_mapping") or []
    try:
        devices = json.loads(devices) if isinstance(devices, str) else devices
        yield from references_of_devices(f"{path}.block_device_mapping", devices, SOURCES_IN_IMAGES)
    except (ValueError, TypeError, AttributeError) as problem:
        raise OperationRefused(messages.INVALID_IMAGE_DEVICES.fill(path=path, image=image.id)) from problem


def find_usable(cloud: Connection, kind: str, key: str, project: str) -> Any:
    """Return an object if a project may use it, or None.

    An object with another id than the requested one was found by a path within the id.
    """
    details = FIND[kind](cloud, key)
    if kind not in NAMED and details is not None and details.id != key:
        return None
    return details if details is not None and may_be_used(cloud, kind, details, project) else None


def find_type_as_cinder(cloud: Connection, key: str) -> Any:
    """Return the volume type with this id, else the one with this name, as Cinder does."""
    volume_types = list(cloud.block_storage.types(is_public="None"))
    matches = [volume_type for volume_type in volume_types if volume_type.id == key] or [
        volume_type for volume_type in volume_types if volume_type.name == key
    ]
    return matches[0] if matches else None


FIND: Mapping[str, Callable[[Any, str], Any]] = {
    "flavor": lambda cloud, key: cloud.compute.get_flavor(key),
    "image": lambda cloud, key: cloud.image.get_image(key),
    "network": lambda cloud, key: cloud.network.get_network(key),
    "port": lambda cloud, key: cloud.network.get_port(key),
    "security group": lambda cloud, key: cloud.network.get_security_group(key),
    "server group": lambda cloud, key: cloud.compute.get_server_group(key),
    "snapshot": lambda cloud, key: cloud.block_storage.get_snapshot(key),
    "volume": lambda cloud, key: cloud.block_storage.get_volume(key),
    "volume type": find_type_as_cinder,
}
NAMED = {"volume type"}


def may_be_used(cloud: Any, kind: str, details: Any, project: str) -> bool:
    if kind == "flavor":
        return details.is_public or grants_use(project, cloud.compute.get_flavor_access(details.id), "tenant_id")
    if kind == "volume type":
        return details.is_public or grants_use(project, cloud.block_storage.get_type_access(details.id), "project_id")
    if kind == "image":
        # A project may use a shared image before it has accepted it.
        return (
            details.visibility in OPEN_IMAGES
            or details.owner == project
            or (details.visibility == "shared" and grants_use(project, cloud.image.members(details.id), "member_id"))
        )
    if kind in ("network", "security group") and details.is_shared:
        # Shared with all projects or with that of the login. Only administrators may use other external networks.
        return True
    return bool(details.project_id == project)


def grants_use(project: str, grants: Iterable[Mapping[str, Any]], name: str) -> bool:
    return any(grant[name] == project for grant in grants)
