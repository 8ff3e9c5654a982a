"""A strategy that moves servers and volumes away from nodes and pools, a limited number per run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from audits.strategies.base import COMPUTE, STORAGE, Solution, Strategy
from audits.strategies.placement import Placement, migration_of
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from cluster.snapshot.storage import VolumeSnapshot

NAME = {"type": "string", "minLength": 1}
NAMES = {"type": "array", "items": NAME}
NODE, POOL, TYPE = ({**NAME, "format": kind} for kind in ("compute-node", "storage-pool", "volume-type"))
SERVER_COUNTS = ("live_migrate_instance_count", "cold_migrate_instance_count")
VOLUME_COUNTS = ("volume_migrate_count", "volume_update_count")
Key = Callable[[Any], Any]
Attributes = Mapping[str, Key]


def migration_schema(properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def limit_schema(default: int, description: str) -> dict[str, Any]:
    return {"description": description, "type": "integer", "minimum": 0, "default": default}


def name_or_list_schema(*names: str) -> dict[str, Any]:
    """Return the schema of one of these names, as in the schema of Watcher, or of a list, as in its documentation."""
    choice = {"enum": [*names]}
    return {"type": ["array", "string"], "items": choice, "anyOf": [{"type": "array"}, choice]}


class ZoneMigration(Strategy):
    """Move servers and volumes from nodes and pools to others.

    The three limits restrict the number of actions of one run; further runs move the rest. Migrations and retypes of
    volumes are counted together, under both indicators, as in Watcher (docs/compatibility.md, "Strategies").
    """

    name = "zone_migration"
    display_name = "Zone migration"
    goal = "hardware_maintenance"
    distinguished_by = ("compute_nodes", "storage_pools")
    schema = migration_schema(
        {
            "compute_nodes": {
                "description": "The host names of the nodes to empty, each with the destination of its servers.",
                "type": "array",
                "items": migration_schema({"src_node": NODE, "dst_node": NODE}, required=["src_node"]),
                "default": [],
            },
            "storage_pools": {
                "description": "The pools to empty, each with the destination pool or the new type of its volumes.",
                "type": "array",
                "items": migration_schema(
                    {"src_pool": POOL, "dst_pool": POOL, "src_type": TYPE, "dst_type": TYPE},
                    required=["src_pool"],
                    oneOf=[{"required": ["dst_pool"]}, {"required": ["dst_type"]}],
                ),
                "default": [],
            },
            "parallel_total": limit_schema(6, "The maximum number of actions."),
            "parallel_per_node": limit_schema(2, "The maximum number of servers for each node."),
            "parallel_per_pool": limit_schema(2, "The maximum number of volumes for each pool."),
            "priority": migration_schema(
                {
                    "project": NAMES,
                    "compute_node": NAMES,
                    "storage_pool": NAMES,
                    "compute": name_or_list_schema("vcpu_num", "mem_size", "disk_size", "created_at"),
                    "storage": name_or_list_schema("size", "created_at"),
                },
                description="The order: by project, then node and pool, then size. Earlier entries come first.",
                default={},
            ),
            "with_attached_volume": {
                "description": "Whether to migrate a server immediately after a volume that it uses.",
                "type": "boolean",
                "default": False,
            },
        }
    )

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the models of the nodes and pools to empty. Watcher needs the storage model for servers as well."""
        requested = {COMPUTE: parameters["compute_nodes"], STORAGE: parameters["storage_pools"]}
        return tuple(model for model, entries in requested.items() if entries) or (COMPUTE,)

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        return Evacuation(cluster, parameters).solve()


# The attributes that priorities compare: of a server and its node, of a volume and its parameters.
SERVER_NAMES: Attributes = {
    "project": lambda pair: pair[0].project_id,
    "compute_node": lambda pair: pair[1].hostname,
}
SERVER_SIZES: Attributes = {
    "vcpu_num": lambda pair: -pair[0].vcpus,
    "mem_size": lambda pair: -pair[0].memory,
    "disk_size": lambda pair: -pair[0].disk,
    "created_at": lambda pair: pair[0].created_at,
}
VOLUME_NAMES: Attributes = {
    "project": lambda pair: pair[0].project_id,
    "storage_pool": lambda pair: pair[0].host,
}
VOLUME_SIZES: Attributes = {
    "size": lambda pair: -pair[0].size,
    "created_at": lambda pair: pair[0].created_at,
}


def sort_key(priority: Mapping[str, Any], sizes: str, names: Attributes, values: Attributes) -> Key:
    """Return the sort key: entries of the lists come first, then by size or age, as specified by ``sizes``.

    Watcher uses the order of the keys of the object, which not all databases preserve.
    """
    keys = [ranking(priority[name], names[name]) for name in names if name in priority]
    entries = priority.get(sizes, [])
    keys += [values[entry] for entry in ([entries] if isinstance(entries, str) else entries)]
    return lambda pair: tuple(key(pair) for key in keys)


def ranking(entries: Sequence[str], name: Key) -> Key:
    """Return the sort key for names in the order of a list, followed by all others."""
    ranks = {entry: position for position, entry in reversed(list(enumerate(entries)))}
    return lambda pair: ranks.get(name(pair), len(entries))


class Evacuation:
    """The state of one run: the objects to move, in order, and the numbers of planned ones."""

    def __init__(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> None:
        self.cluster, self.parameters = cluster, parameters
        self.placement = Placement(cluster)
        self.solution = Solution()
        self.counts: dict[str, int] = {}
        self.total = 0
        self.planned: set[Any] = set()
        self.destinations = {entry["src_node"]: entry.get("dst_node") for entry in parameters["compute_nodes"]}
        self.servers = self.sorted_servers()
        self.volumes = self.sorted_volumes()
        self.indicators = {
            f"{prefix}{name}": 0 for name in (*SERVER_COUNTS, *VOLUME_COUNTS) for prefix in ("", "planned_")
        }

    def solve(self) -> Solution:
        by_uuid = {str(server.uuid): (server, node) for server, node in self.servers}
        for volume, entry in self.volumes:
            if self.plan_volume(volume, entry) and self.parameters["with_attached_volume"]:
                for attachment in volume.attachments:
                    if attachment["server_id"] in by_uuid:
                        self.plan_server(*by_uuid[attachment["server_id"]])
        for server, node in self.servers:
            self.plan_server(server, node)
        for server, _ in self.servers:
            if kind := migration_of(server):
                self.indicators[f"{kind}_migrate_instance_count"] += 1
        for name in VOLUME_COUNTS:
            self.indicators[name] = len(self.volumes)
        self.solution.indicators = dict(self.indicators)
        return self.solution

    def sorted_servers(self) -> list[tuple[ServerSnapshot, NodeSnapshot]]:
        servers = [
            (server, node)
            for hostname in self.destinations
            if (node := self.cluster.nodes.get(hostname))
            for server in node.servers
            if not server.watcher_exclude and server.uuid not in self.placement.arriving
        ]
        return sorted(servers, key=sort_key(self.parameters["priority"], "compute", SERVER_NAMES, SERVER_SIZES))

    def sorted_volumes(self) -> list[tuple[VolumeSnapshot, Mapping[str, Any]]]:
        pools = self.cluster.storage.pools
        volumes = [
            (volume, entry)
            for name in dict.fromkeys(entry["src_pool"] for entry in self.parameters["storage_pools"])
            if name in pools
            for volume in pools[name].volumes
            if (entry := self.entry_of(volume))
        ]
        return sorted(volumes, key=sort_key(self.parameters["priority"], "storage", VOLUME_NAMES, VOLUME_SIZES))

    def entry_of(self, volume: VolumeSnapshot) -> Mapping[str, Any] | None:
        """Return the parameters for a volume, by its pool and type, or else by its pool only."""
        entries = [entry for entry in self.parameters["storage_pools"] if entry["src_pool"] == volume.host]
        typed = [entry for entry in entries if entry.get("src_type") == volume.volume_type is not None]
        return next(iter([*typed, *(entry for entry in entries if "src_type" not in entry)]), None)

    def plan_volume(self, volume: VolumeSnapshot, entry: Mapping[str, Any]) -> bool:
        """Plan a volume within the limits, and return whether it was planned."""
        to_type = entry.get("dst_type")
        if to_type is not None and to_type == volume.volume_type:
            return False
        if not self.count(volume.uuid, volume.host, "parallel_per_pool"):
            return False
        inputs = (
            {"migration_type": "retype", "destination_type": to_type}
            if to_type
            else {"migration_type": "migrate", "destination_node": entry["dst_pool"]}
        )
        self.solution.add("volume_migrate", {**inputs, "resource_name": volume.name}, resource_id=str(volume.uuid))
        for name in VOLUME_COUNTS:
            self.indicators[f"planned_{name}"] += 1
        return True

    def plan_server(self, server: ServerSnapshot, node: NodeSnapshot) -> None:
        if not self.count(server.uuid, node.hostname, "parallel_per_node"):
            return
        if kind := migration_of(server):
            self.solution.migrate(server, kind, node.hostname, self.destinations[node.hostname])
            self.indicators[f"planned_{kind}_migrate_instance_count"] += 1

    def count(self, uuid: Any, place: str, per_place: str) -> bool:
        """Count an object once, and return whether it is within the limits."""
        if uuid in self.planned or self.total >= self.parameters["parallel_total"]:
            return False
        if self.counts.get(place, 0) >= self.parameters[per_place]:
            return False
        self.planned.add(uuid)
        self.total, self.counts[place] = self.total + 1, self.counts.get(place, 0) + 1
        return True
