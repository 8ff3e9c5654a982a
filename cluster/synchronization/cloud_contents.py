"""The contents of a cloud as drivers return them: dictionaries of columns, with references by key."""

from dataclasses import dataclass, field
from typing import Any

Item = dict[str, Any]


@dataclass
class StorageContents:
    """The contents of the block storage.

    References: a storage node has a list of names of ``volume_types``; a pool has the host of its ``storage_node``; a
    volume has the names of its ``pool`` and ``volume_type``, or None; an attachment has the UUIDs of its ``volume``
    and ``server``.
    """

    volume_types: list[Item] = field(default_factory=list)
    storage_nodes: list[Item] = field(default_factory=list)
    pools: list[Item] = field(default_factory=list)
    volumes: list[Item] = field(default_factory=list)
    attachments: list[Item] = field(default_factory=list)


@dataclass
class CloudContents:
    """The contents of a cloud. Without ``storage``, the storage tables do not change.

    ``node`` of a server is a host name, or None.

    ``project`` and ``user`` are the ids of the login's project and user, if the cloud creates servers only in the
    project of a login. ``remarks`` explain which objects could not be read, and the consequences.
    """

    compute_nodes: list[Item] = field(default_factory=list)
    host_aggregates: list[Item] = field(default_factory=list)
    flavors: list[Item] = field(default_factory=list)
    servers: list[Item] = field(default_factory=list)
    storage: StorageContents | None = None
    project: str = ""
    user: str = ""
    remarks: list[str] = field(default_factory=list)
