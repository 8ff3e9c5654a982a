"""The contents of a cloud, as a driver reads them: each object by its columns, related objects by their keys."""

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
    """The whole contents of a cloud; without ``storage``, all but storage.

    ``node`` of a server is a host name, or None.

    ``project`` and ``user`` are the ids of the project that the driver logs in to, and of its user there, if the cloud
    creates servers only in the project of a login.
    ``remarks`` explain what could not be read, and the consequences.
    """

    compute_nodes: list[Item] = field(default_factory=list)
    host_aggregates: list[Item] = field(default_factory=list)
    flavors: list[Item] = field(default_factory=list)
    servers: list[Item] = field(default_factory=list)
    storage: StorageContents | None = None
    project: str = ""
    user: str = ""
    remarks: list[str] = field(default_factory=list)
