"""The servers and compute nodes of the simulated cloud, and load balancers on which every operation succeeds."""

from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from itertools import count
from typing import Self
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from cluster.drivers.balancing import Balancer, BalancerPool, PoolMember
from cluster.drivers.base import (
    Checkpoint,
    CloudBusy,
    CloudFlavor,
    CloudNode,
    CloudServer,
    ComputeService,
    ComputeServiceNotFound,
    FlavorNotFound,
    NewServer,
    NodeNotFound,
    NoValidHost,
    OperationRefused,
    ServerNotFound,
    cloud,
    load_driver,
    proceed,
)
from cluster.drivers.messages import WOULD_WAIT
from cluster.drivers.ownership import may_undo
from cluster.drivers.quotas import explain_refusal
from cluster.drivers.rules import (
    COLD_MIGRATABLE,
    LIVE_MIGRATABLE,
    RESTING,
    change_entries,
    describe_node,
    describe_server,
    describe_service,
    make_row,
    require_down,
    require_evacuable,
    require_free,
    require_idle,
    require_movable,
    require_never_run,
    require_node,
    require_power,
    require_reboot,
    require_rebuild,
    require_resizable,
    require_status,
    state_after_rebuild,
)
from cluster.drivers.scheduler import check_growth, choose_among, read_size
from cluster.models import ComputeNode, Flavor, Server, Trust
from cluster.simulated.capacity import CapacityIndex, SimulatedQuotas
from cluster.simulated.stacks import SimulatedNodes, SimulatedStacks
from cluster.simulated.storage import SimulatedStorage

# The UUID of a text: each action looks its server up several times, which takes 0.2 times as long.
parse_uuid = lru_cache(maxsize=10_000)(UUID)
# Columns that no operation uses, and that may be large.
DEFERRED = ("metadata", "flavor_extra_specs")


class SimulatedBalancer(Balancer):
    """A balancer without state, since the pools of a real cloud are not in the site's tables."""

    def find_pool(self, pool: str) -> BalancerPool:
        return BalancerPool(pool, pool)

    def members(self, pool: str) -> list[PoolMember]:
        return []

    def add_member(
        self,
        pool: str,
        server: str,
        port: int,
        weight: int = 1,
        subnet: str | None = None,
        checkpoint: Checkpoint = proceed,
    ) -> PoolMember:
        return PoolMember(server, port, weight)

    def remove_member(self, pool: str, server: str, grace_period: float = 0, checkpoint: Checkpoint = proceed) -> None:
        pass


class SimulatedCloud(SimulatedStorage):
    """A copy of the tables in memory. Its rows must never be saved.

    An operation succeeds at once, or is refused with the same message as by the embedded cloud.
    """

    def __init__(self, nodes: list[ComputeNode], servers: list[Server], flavors: list[Flavor]) -> None:
        super().__init__()
        by_key: dict[int | None, ComputeNode] = {node.pk: node for node in nodes}
        for server in servers:
            server.node = by_key.get(server.node_id)
            server.destination = by_key.get(server.destination_id)
        present = [node for node in nodes if node.deleted_at is None]
        self.nodes = {node.uuid: node for node in present}
        self.servers = {server.uuid: server for server in servers}
        self.flavors = {flavor.name: flavor for flavor in flavors} | {flavor.flavor_id: flavor for flavor in flavors}
        self.capacities = CapacityIndex(present, servers)
        self.members = SimulatedNodes()
        self.stacks = SimulatedStacks(self.servers)
        self.quotas = SimulatedQuotas()
        # Keys of new rows are negative, to be different from those of the tables.
        self.new_keys = count(-1, -1)

    @classmethod
    def load(cls) -> Self:
        """Load the tables in eight queries."""
        servers = Server.objects.present()
        is_needed = Q(deleted_at=None) | Q(pk__in=servers.order_by().values("node"))
        loaded = cls(
            servers=list(servers.defer(*DEFERRED).select_related("new_flavor").order_by("pk")),
            nodes=list(ComputeNode.objects.filter(is_needed).order_by("pk")),
            flavors=list(Flavor.objects.present().order_by("pk")),
        )
        loaded.load_storage()
        return loaded

    @cached_property
    def trusts(self) -> set[tuple[str, str]]:
        """The pairs of project and user with a valid trust."""
        return set(Trust.objects.valid().values_list("project_id", "user_id"))

    def make_balancer(self) -> SimulatedBalancer:
        return SimulatedBalancer()

    # Servers

    def find_server(self, server: str) -> CloudServer:
        return describe_server(self.server(server))

    def create_server(self, request: NewServer, checkpoint: Checkpoint = proceed) -> CloudServer:
        if server := self.find_created(request.name, request.token):
            if self.server(server.uuid).state == Server.State.PENDING:
                raise CloudBusy(WOULD_WAIT.fill(name=server.name))
            return server
        require_own_project(request.project, bool(request.trust))
        row = make_row(request, self.flavor(request.flavor))
        self.quotas.require(request.project, row, self.servers.values())
        host, zone = request.host, request.zone
        candidates = self.capacities.named(host) if host else self.capacities.find_best(row, zone)
        try:
            node = choose_among(candidates, row, host)
        except NoValidHost as problem:
            if request.may_wait and settings.USE_PENDING_STATE and not load_driver().is_mirrored:
                raise CloudBusy(WOULD_WAIT.fill(name=request.name)) from problem
            raise
        row.pk, row.state = next(self.new_keys), Server.State.ACTIVE
        self.servers[row.uuid] = row
        self.capacities.move(row, node=node)
        return describe_server(row)

    def build_server(self, server: str, checkpoint: Checkpoint = proceed, host: str | None = None) -> None:
        row = self.free_server(server)
        require_never_run(row)
        require_own_project(row.project_id, (row.project_id, row.user_id) in self.trusts)
        if row.node_id is None:
            candidates = self.capacities.named(host) if host else self.capacities.find_best(row, row.pinned_az or None)
            self.capacities.move(row, node=choose_among(candidates, row, host))
        row.state = Server.State.ACTIVE

    def find_host(self, server: str) -> str | None:
        row = self.server(server)
        best = self.capacities.find_best(row, row.pinned_az or None)
        return best[0].node.hostname if best else None

    def reset_state(self, server: str, state: str, *, reason: str | None = None, expected: str | None = None) -> None:
        row = self.server(server)
        require_status(row, expected)
        if state == Server.State.ACTIVE:
            require_node(row)
        row.state, row.task_state = Server.State(state), None

    def find_created(self, name: str, token: str, project: str = "") -> CloudServer | None:
        return next((describe_server(row) for row in self.servers.values() if row.token == token), None)

    def delete_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        row = self.server(server)
        self.capacities.move(row, node=None, destination=None)
        del self.servers[row.uuid]

    def live_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.migrate(server, destination, LIVE_MIGRATABLE)

    def cold_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.migrate(server, destination, COLD_MIGRATABLE)

    def migrate(self, server: str, destination: str | None, states: frozenset[Server.State]) -> None:
        row = self.free_server(server)
        require_movable(row, states)
        candidates = self.capacities.named(destination) if destination else self.capacities.find_best(row)
        self.capacities.move(row, node=choose_among(candidates, row, destination))

    def evacuate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        row = self.free_server(server)
        require_evacuable(row)
        candidates = self.capacities.named(destination) if destination else self.capacities.find_best(row)
        self.capacities.move(row, node=choose_among(candidates, row, destination))
        row.state = state_after_rebuild(row)

    def abort_migration(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        return self.reconcile(server)

    def reconcile(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Undo the operation in progress, so that the caller can repeat it."""
        row = self.server(server)
        if may_undo(row):
            row.task_state, row.operation_owner = None, ""
            self.capacities.move(row, destination=None, new_flavor=None)
        return describe_server(row)

    def stop(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.free_server(server).state = Server.State.STOPPED

    def start(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        row = self.free_server(server)
        if row.node:
            require_power(self.node(str(row.node.uuid)))
        row.state = Server.State.ACTIVE

    def reboot_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        row = self.free_server(server)
        require_power(require_reboot(row))
        row.state = Server.State.ACTIVE

    def rebuild_server(self, server: str, image: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        row = self.free_server(server)
        require_power(require_rebuild(row))
        row.state = state_after_rebuild(row)

    def change_metadata(self, server: str, changed: Mapping[str, str], removed: Collection[str] = ()) -> None:
        row = self.server(server)
        row.metadata = change_entries(row.metadata, changed, removed)

    def find_flavor(self, flavor: str) -> CloudFlavor:
        row = self.flavor(flavor)
        return CloudFlavor(row.flavor_id, row.name)

    def resize(self, server: str, flavor: str, checkpoint: Checkpoint = proceed) -> None:
        row, new_flavor = self.free_server(server), self.flavor(flavor)
        node = require_resizable(row, new_flavor)
        [candidate] = self.capacities.named(node.hostname)
        check_growth(row, new_flavor, candidate)
        self.capacities.move(row, **read_size(new_flavor), flavor=new_flavor.name)

    # Nodes

    def find_compute_service(self, host: str) -> ComputeService:
        return describe_service(self.host(host))

    def enable_compute_service(self, host: str) -> None:
        self.set_status(host, ComputeNode.Status.ENABLED, None)

    def disable_compute_service(self, host: str, reason: str | None = None) -> None:
        self.set_status(host, ComputeNode.Status.DISABLED, reason)

    def set_status(self, host: str, status: ComputeNode.Status, reason: str | None) -> None:
        row = self.host(host)
        row.status, row.disabled_reason = status, reason

    def find_node(self, node: str) -> CloudNode:
        row = self.node(node)
        return describe_node(row, self.count_running(row))

    def power_on(self, node: str, checkpoint: Checkpoint = proceed) -> None:
        row = self.node(node)
        row.power_state, row.state = ComputeNode.PowerState.ON, ComputeNode.State.UP

    def power_off(self, node: str, checkpoint: Checkpoint = proceed, *, is_fencing: bool = False) -> None:
        row = self.node(node)
        if is_fencing:
            require_down(row)
        else:
            require_idle(row, self.count_running(row))
        row.power_state, row.state = ComputeNode.PowerState.OFF, ComputeNode.State.DOWN

    def find_power_state(self, host: str) -> str | None:
        capacities = self.capacities.named(host)
        return capacities[0].node.power_state if capacities else None

    def count_running(self, node: ComputeNode) -> int:
        """Count the servers that run on a node, that an operation is changing there, or that are migrating to it."""
        return sum(
            server.node_id != node.pk or server.state not in RESTING or server.task_state is not None
            for server in self.capacities.servers[node.pk].values()
        )

    # Rows

    def server(self, server: str) -> Server:
        try:
            return self.servers[parse_uuid(server)]
        except (KeyError, ValueError) as missing:
            raise ServerNotFound(server) from missing

    def free_server(self, server: str) -> Server:
        row = self.server(server)
        require_free(row)
        return row

    def flavor(self, flavor: str) -> Flavor:
        try:
            return self.flavors[flavor]
        except KeyError as missing:
            raise FlavorNotFound(flavor) from missing

    def node(self, node: str) -> ComputeNode:
        try:
            return self.nodes[UUID(node)]
        except (KeyError, ValueError) as missing:
            raise NodeNotFound(node) from missing

    def host(self, host: str) -> ComputeNode:
        candidates = self.capacities.named(host)
        if not candidates:
            raise ComputeServiceNotFound(host)
        return candidates[0].node


def simulated_cloud() -> SimulatedCloud | None:
    """Return the simulated cloud if it replaces the cloud in this thread, else None."""
    current = cloud()
    return current if isinstance(current, SimulatedCloud) else None


def require_own_project(project: str, has_trust: bool) -> None:
    """Raise `OperationRefused` if the cloud can create no server in this project."""
    if reason := explain_refusal(project, has_trust):
        raise OperationRefused(reason)
