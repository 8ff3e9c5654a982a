"""The properties of servers in profiles and templates, besides flavor, image, metadata and zone.

Their names and meanings are those of Heat's OS::Nova::Server and of Senlin's os.nova.server. Only the OpenStack cloud
uses them: the embedded cloud has neither networks nor key pairs, and ignores them.
"""

from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from cluster import messages

REFERENCE = {"type": "string", "minLength": 1, "maxLength": 255}
# Nova's limits: of user data in base64, of tags, and of block devices, each of which has a letter.
LONGEST_USER_DATA = 65_535
MOST_TAGS, LONGEST_TAG = 50, 60
MOST_DEVICES = 26
MOST_NETWORKS = 64
# Values of ``networks`` that are not lists: Nova chooses a network, or the server has none.
CHOSEN_NETWORKS = ("auto", "none")


def strict_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


# Heat's short forms of block device sources; Nova accepts only ``source_type`` and ``uuid``.
SHORT_SOURCES = {"volume_id": "volume", "snapshot_id": "snapshot", "image": "image"}
DEVICE = strict_object(
    source_type={"enum": ["blank", "image", "snapshot", "volume"]},
    destination_type={"enum": ["local", "volume"]},
    uuid=REFERENCE,
    **dict.fromkeys(SHORT_SOURCES, REFERENCE),
    boot_index={"type": ["integer", "null"], "minimum": -1},
    volume_size={"type": "integer", "minimum": 1},
    volume_type=REFERENCE,
    device_name=REFERENCE,
    device_type=REFERENCE,
    disk_bus=REFERENCE,
    guest_format=REFERENCE,
    tag=REFERENCE,
    delete_on_termination={"type": "boolean"},
)
NETWORK = strict_object(network=REFERENCE, port=REFERENCE, fixed_ip=REFERENCE)
PROPERTIES: Mapping[str, Any] = {
    "key_name": REFERENCE,
    "networks": {
        "type": ["array", "string"],
        "items": NETWORK,
        "minItems": 1,
        "maxItems": MOST_NETWORKS,
    },
    "security_groups": {"type": "array", "items": REFERENCE, "maxItems": MOST_NETWORKS, "uniqueItems": True},
    "user_data": {"type": "string", "maxLength": LONGEST_USER_DATA},
    "config_drive": {"type": "boolean"},
    "block_device_mapping_v2": {"type": "array", "items": DEVICE, "maxItems": MOST_DEVICES},
    "scheduler_hints": {
        "type": "object",
        "propertyNames": {"minLength": 1, "maxLength": 255},
        "additionalProperties": {"type": ["string", "array"], "items": {"type": "string"}},
    },
    "tags": {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_TAG},
        "maxItems": MOST_TAGS,
        "uniqueItems": True,
    },
}
NAMES = tuple(PROPERTIES)
# User data may contain secrets, so history does not store it.
NOT_RECORDED = ("user_data",)


def find_property_flaw(properties: Mapping[str, Any]) -> str | None:
    """Return the first error, with its path, that the schemas cannot express, or None."""
    if len(encode(properties.get("user_data") or "")) > LONGEST_USER_DATA:
        return messages.USER_DATA_LENGTH.fill(number=LONGEST_USER_DATA)
    networks = properties.get("networks") or ()
    if isinstance(networks, str) and networks not in CHOSEN_NETWORKS:
        return messages.NETWORKS_RULE.fill(names=", ".join(CHOSEN_NETWORKS))
    for number, tag in enumerate(properties.get("tags") or ()):
        if "," in tag or "/" in tag:
            return messages.TAG_RULE.fill(number=number)
    for number, network in enumerate(() if isinstance(networks, str) else networks):
        if flaw := find_flaw_of_network(network):
            return f"networks.{number}: {flaw}"
    for number, device in enumerate(properties.get("block_device_mapping_v2") or ()):
        if flaw := find_flaw_of_device(device):
            return f"block_device_mapping_v2.{number}: {flaw}"
    return None


def find_flaw_of_network(network: Mapping[str, Any]) -> str | None:
    if ("network" in network) == ("port" in network):
        return messages.NETWORK_OR_PORT.text
    if "fixed_ip" not in network:
        return None
    if "port" in network:
        return messages.IP_OF_PORT.text
    with suppress(ValueError):
        ip_address(network["fixed_ip"])
        return None
    return messages.NO_IP.fill(text=network["fixed_ip"])


def find_flaw_of_device(device: Mapping[str, Any]) -> str | None:
    short = [name for name in SHORT_SOURCES if name in device]
    if len(short) + ("source_type" in device) != 1:
        return messages.SOURCE_RULE.fill(names=", ".join(SHORT_SOURCES))
    if short and "uuid" in device:
        return messages.UUID_OF_SOURCE.fill(name=short[0])
    if not short and (device["source_type"] == "blank") == ("uuid" in device):
        return messages.UUID_REQUIRED.text
    return None


def select_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a description that are server properties and not empty."""
    return {name: properties[name] for name in NAMES if properties.get(name) not in (None, "", [], {})}


def encode(user_data: str) -> str:
    return b64encode(user_data.encode()).decode()


def device_of(device: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block device in Nova's format. A device without a destination becomes a volume, as in Heat."""
    properties = {name: value for name, value in device.items() if name not in SHORT_SOURCES}
    for name, source in SHORT_SOURCES.items():
        if name in device:
            properties |= {"source_type": source, "uuid": device[name]}
    is_local = properties["source_type"] == "blank" and "guest_format" in properties
    return {"destination_type": "local" if is_local else "volume", **properties}
