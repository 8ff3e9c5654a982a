"""Requests for servers of the embedded cloud, and the deletion of servers without a node."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Q

from cluster.drivers.base import cloud
from cluster.drivers.embedded.lifecycle import release_volumes
from cluster.drivers.quotas import demand_of, require_metadata_quota, require_quota
from cluster.models import ComputeNode, Flavor, Server
from cluster.notifications import announce_wait_end
from watcher_site.database.locks import lock_present
from watcher_site.database.text import require_storable
from watcher_site.refusals import Conflict, Invalid
from watcher_site.validation import Draft202012Validator, find_violation

REFERENCE = {"type": "string", "minLength": 1, "maxLength": 255}
# In Nova's format.
REQUEST = {
    "type": "object",
    "properties": {
        "name": REFERENCE,
        "flavorRef": REFERENCE,
        "imageRef": {"type": ["string", "null"], "maxLength": 255},
        "metadata": {
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": 255},
            "additionalProperties": {"type": "string", "maxLength": 255},
        },
        "availability_zone": REFERENCE,
        "project_id": {"type": "string", "maxLength": 255},
    },
    "required": ["name", "flavorRef"],
    "additionalProperties": False,
}
VALIDATOR = Draft202012Validator(REQUEST)


def request_server(attributes: Mapping[str, Any], project_id: str, user_id: str) -> Server:
    """Create a BUILDING server without a node. An action schedules it later.

    Args:
        attributes: the result of `checked_request`.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: the cloud is not the embedded one.
        QuotaExceeded: the request exceeds a quota of the project.
    """
    if cloud().is_mirrored:
        raise Conflict("Servers of this cloud are created through its own API.")
    flavor = require_flavor(attributes["flavorRef"])
    require_metadata_quota(attributes.get("metadata"))
    require_quota(project_id, demand_of(flavor.vcpus, flavor.memory))
    server = Server(
        name=attributes["name"].strip(),
        state=Server.State.BUILDING,
        flavor=flavor.name,
        vcpus=flavor.vcpus,
        memory=flavor.memory,
        disk=flavor.disk,
        flavor_extra_specs=flavor.extra_specs,
        metadata=attributes.get("metadata", {}),
        image=attributes.get("imageRef") or "",
        pinned_az=checked_zone(attributes.get("availability_zone", "")),
        project_id=project_id,
        user_id=user_id,
    )
    server.save()
    return server


def checked_request(attributes: Any) -> Mapping[str, Any]:
    """Return the checked attributes of a requested server: ``name``, ``flavorRef`` and the others of `REQUEST`.

    Raises:
        Invalid: the message names the field and the rule.
    """
    require_storable("server", attributes)
    if violation := find_violation(VALIDATOR, attributes):
        raise Invalid(f"server: {violation}")
    if not attributes["name"].strip():
        raise Invalid("server: name: must have a character that is not a space.")
    checked: Mapping[str, Any] = attributes
    return checked


def require_flavor(name: str) -> Flavor:
    flavor = Flavor.objects.present().filter(Q(flavor_id=name) | Q(name=name)).first()
    if flavor is None:
        raise Invalid(f"server: flavorRef: the cloud has no flavor {name}.")
    return flavor


def checked_zone(zone: str) -> str:
    if zone and not ComputeNode.objects.present().filter(zone=zone).exists():
        raise Invalid(f"server: availability_zone: the cloud has no availability zone {zone}.")
    return zone


@transaction.atomic
def delete_unplaced(server: Server) -> bool:
    """Delete a server of the embedded cloud without a node or an operation in progress, and return whether it was one.

    Raises:
        NotFound: the server was deleted meanwhile.
    """
    locked = lock_present(server)
    if locked.node_id or locked.task_state or cloud().is_mirrored:
        return False
    Server.objects.filter(pk=locked.pk).soft_delete()
    release_volumes(locked)
    announce_wait_end(locked, locked.state)
    return True
