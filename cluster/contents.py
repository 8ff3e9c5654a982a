"""What a cloud holds, as a driver reads it: each thing by the names of its columns, and others by their keys."""

from dataclasses import dataclass, field
from typing import Any

Item = dict[str, Any]


@dataclass
class StorageContents:
    """The block storage. A pool names its ``storage_node`` by host, which names its ``volume_types``.

    A volume names its ``pool`` and its ``volume_type`` by name, or none; an attachment a ``volume`` and a ``server``
    by UUID.
    """

    volume_types: list[Item] = field(default_factory=list)
    storage_nodes: list[Item] = field(default_factory=list)
    pools: list[Item] = field(default_factory=list)
    volumes: list[Item] = field(default_factory=list)
    attachments: list[Item] = field(default_factory=list)


@dataclass
class CloudContents:
    """Everything, or without ``storage`` all but that. A server names its ``node`` by host name, or none.

    ``project`` is the id of the project that the driver logs in to, if the cloud creates servers only there.
    ``remarks`` tell people what could not be read, and what that means.
    """

    compute_nodes: list[Item] = field(default_factory=list)
    host_aggregates: list[Item] = field(default_factory=list)
    flavors: list[Item] = field(default_factory=list)
    servers: list[Item] = field(default_factory=list)
    storage: StorageContents | None = None
    project: str = ""
    remarks: list[str] = field(default_factory=list)
