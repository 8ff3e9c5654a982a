"""The actions that rules exclude, by the objects that they affect: servers, projects, nodes, aggregates and clusters.

The number of queries is constant for up to `BATCH` actions.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import UUID

from django.utils import timezone

from actions import messages
from actions.exclusions.rules import AffectedTargets, Rule, current_rules
from actions.exclusions.targets import AGGREGATES, CLUSTERS, COMPUTE_NODES, KINDS, PROJECTS, SERVERS, ZONES
from actions.models import Action, is_excluded
from cluster.models import (
    Cluster,
    ComputeNode,
    HostAggregate,
    Node,
    Server,
    Stack,
    StackResource,
    Volume,
    VolumeAttachment,
)
from watcher_site import plugins
from watcher_site.database.records import parse_uuid
from watcher_site.refusals import Conflict

BATCH = 5000
Found = dict[str, dict[str, str]]
ON_COMPUTE_NODES = {COMPUTE_NODES, AGGREGATES, ZONES}


class ActionLike(Protocol):
    """An action or a proposed action."""

    @property
    def uuid(self) -> UUID: ...

    @property
    def action_type(self) -> str: ...

    @property
    def input_parameters(self) -> Mapping[str, Any]: ...


ActionT = TypeVar("ActionT", bound=ActionLike)


@dataclass(frozen=True)
class Match:
    """A rule that excludes an action, with the targets of the rule that the action affects."""

    rule: Rule
    affected: AffectedTargets

    @property
    def target_names(self) -> str:
        """Return the targets that the action affects as text, empty if the rule has no targets."""
        return ", ".join(
            f"{KINDS[kind][0]} {name if name == identifier else f'{name} ({identifier})'}"
            for kind, names in self.affected.items()
            for identifier, name in names.items()
        )


def find_excluded(actions: Sequence[ActionT], rules: Iterable[Rule]) -> dict[UUID, Match]:
    """Return the first of these rules that excludes an action by the UUID of the action, ignoring windows.

    The number of queries is constant, and zero if no rule has targets.
    """
    matches: dict[UUID, Match] = {}
    concerned = [(rule, [action for action in actions if rule.applies_to(action.action_type)]) for rule in rules]
    concerned = [(rule, matching_actions) for rule, matching_actions in concerned if matching_actions]
    if not concerned:
        return matches
    kinds = {kind for rule, _ in concerned for kind in rule.targets}
    by_uuid = {action.uuid: action for _, matching_actions in concerned for action in matching_actions}
    affected = find_affected(list(by_uuid.values()), kinds)
    for rule, matching_actions in concerned:
        for action in matching_actions:
            if action.uuid not in matches and rule.matches(affected[action.uuid]):
                matches[action.uuid] = Match(rule, rule.found_in(affected[action.uuid]))
    return matches


def excluded_permanently(actions: Sequence[ActionT]) -> dict[UUID, Match]:
    """Return the rules without a window or an expiry that exclude actions, by the UUID of the action.

    Other rules are applied when the action is about to begin.
    """
    now = timezone.now()
    rules = [rule for rule in current_rules().rules if rule.is_permanent and rule.is_in_force(now)]
    return find_excluded(actions, rules)


def excluded_now(actions: Sequence[ActionT]) -> dict[UUID, Match]:
    """Return the rules in force that exclude actions, by the UUID of the action."""
    now = timezone.now()
    return find_excluded(actions, [rule for rule in current_rules().rules if rule.is_in_force(now)])


def require_effect(action_type: str, derived: Sequence[ActionT]) -> None:
    """Refuse an action that only derives others if rules in force exclude all of them.

    Raises:
        Conflict: the message names the rule that excludes the first of them.
    """
    matches = excluded_now(derived)
    if derived and len(matches) == len(derived):
        first, rule = derived[0], matches[derived[0].uuid].rule
        raise Conflict(
            messages.ALL_DERIVED_EXCLUDED.fill(type=action_type, derived=first.action_type, rule=rule.description)
        )


def require_none_excluded(actions: Sequence[ActionT]) -> None:
    """Refuse requests for immediate execution if a rule in force excludes one of the actions.

    Raises:
        Conflict: the message names the rule.
    """
    for action in actions:
        if match := excluded_now([action]).get(action.uuid):
            raise Conflict(messages.EXCLUDED_NOW.fill(type=action.action_type, rule=match.rule.description))


def require_no_longer_excluded(actions: Sequence[Action]) -> None:
    """Refuse to restore actions that rules skipped if permanent rules still exclude them.

    Raises:
        Conflict: the message names the action and the rule.
    """
    skipped = [action for action in actions if is_excluded(action)]
    if not skipped:
        return
    for uuid, match in excluded_permanently(skipped).items():
        raise Conflict(messages.STILL_EXCLUDED.fill(uuid=uuid, name=match.rule.name))


def find_affected(actions: Sequence[ActionLike], kinds: Collection[str]) -> dict[UUID, Found]:
    """Return the objects of these kinds that actions affect, as names by identifier, by the UUID of the action.

    These are the target of the action, the compute nodes and clusters in its parameters, and related objects: the
    project, the cluster and the compute node of a server; the zone and the aggregates of a compute node.
    """
    return AffectedLookup(actions, set(kinds)).found if kinds else {action.uuid: {} for action in actions}


class AffectedLookup:
    """The lookup of the objects that actions affect. Tables are queried only for unresolved objects."""

    def __init__(self, actions: Sequence[ActionLike], kinds: set[str]) -> None:
        self.kinds = kinds
        self.found: dict[UUID, Found] = {action.uuid: defaultdict(dict) for action in actions}
        self.unresolved: dict[UUID, list[UUID]] = defaultdict(list)
        """The UUIDs of actions by those of objects that have not been found yet."""
        self.by_cluster: dict[UUID, list[UUID]] = defaultdict(list)
        self.by_host: dict[str, list[UUID]] = defaultdict(list)
        for action in actions:
            self.read_parameters(action)
        self.find_servers(self.unresolved)
        self.find_nodes()
        self.find_stacks()
        self.find_volumes()
        self.find_clusters()
        if kinds & ON_COMPUTE_NODES:
            self.find_compute_nodes()

    def read_parameters(self, action: ActionLike) -> None:
        kind = plugins.load("ACTION_TYPES").get(action.action_type)
        if kind is None:
            return
        affected = kind.affected(action.input_parameters)
        target = [affected.target] if isinstance(affected.target, str) else []
        uuids = {uuid for identifier in (*target, *affected.operations) if (uuid := parse_uuid(str(identifier)))}
        for uuid in uuids:
            self.unresolved[uuid].append(action.uuid)
        for host in dict.fromkeys(map(str, (*target, *affected.compute_nodes))):
            self.by_host[host].append(action.uuid)
            if (uuid := parse_uuid(host)) and uuid not in uuids:
                self.unresolved[uuid].append(action.uuid)
        for cluster in affected.clusters:
            if cluster_uuid := parse_uuid(str(cluster)):
                self.by_cluster[cluster_uuid].append(action.uuid)

    def add(self, actions: Iterable[UUID], kind: str, identifier: Any, name: str = "") -> None:
        for action in actions:
            self.found[action][kind][str(identifier)] = name or str(identifier)

    def find_servers(self, by_server: Mapping[UUID, list[UUID]]) -> None:
        columns = ("uuid", "name", "project_id", "pinned_az", "node__hostname", "destination__hostname")
        servers = {row[0]: row[1:] for row in rows(Server, "uuid", list(by_server), *columns)}
        for uuid, (name, project, zone, *hosts) in servers.items():
            actions = by_server[uuid]
            self.add(actions, SERVERS, uuid, name)
            if project:
                self.add(actions, PROJECTS, project)
            if zone:
                self.add(actions, ZONES, zone)
            for host in filter(None, hosts):
                self.by_host[host] += actions
        if CLUSTERS in self.kinds:
            behind = rows(Node, "physical_id", list(servers), "physical_id", "cluster__uuid", "cluster__name")
            for server, cluster, name in behind:
                if cluster:
                    self.add(by_server[server], CLUSTERS, cluster, name)
        self.mark_found(servers)

    def find_nodes(self) -> None:
        """Find the clusters of nodes, the servers of the nodes, and the hosts on which new servers are placed."""
        by_server: dict[UUID, list[UUID]] = defaultdict(list)
        nodes = set()
        columns = ("uuid", "physical_id", "cluster__uuid", "cluster__name", "project_id", "data")
        for uuid, server, cluster, name, project, data in rows(Node, "uuid", list(self.unresolved), *columns):
            nodes.add(uuid)
            if project:
                self.add(self.unresolved[uuid], PROJECTS, project)
            if cluster:
                self.add(self.unresolved[uuid], CLUSTERS, cluster, name)
            if server:
                by_server[server] += self.unresolved[uuid]
            elif host := data.get("placement", {}).get("host"):
                self.by_host[host] += self.unresolved[uuid]
        self.mark_found(nodes)
        self.find_servers(by_server)

    def find_stacks(self) -> None:
        """Find the projects of stacks and of their resources, and the servers that are, or were, resources."""
        by_server: dict[UUID, list[UUID]] = defaultdict(list)
        identifiers = list(self.unresolved)
        columns = ("uuid", "stack__project_id", "physical_id", "former_physical_id")
        records = [
            *rows(Stack, "uuid", identifiers, "uuid", "project_id"),
            *rows(StackResource, "uuid", identifiers, *columns),
        ]
        for uuid, project, *servers in records:
            if project:
                self.add(self.unresolved[uuid], PROJECTS, project)
            for server in filter(None, map(parse_uuid, filter(None, servers))):
                by_server[server] += self.unresolved[uuid]
        self.mark_found([uuid for uuid, *_ in records])
        self.find_servers(by_server)

    def find_volumes(self) -> None:
        """Find the projects of volumes, and the servers to which they are attached."""
        by_server: dict[UUID, list[UUID]] = defaultdict(list)
        projects = dict(rows(Volume, "uuid", list(self.unresolved), "uuid", "project_id"))
        for uuid, project in projects.items():
            if project:
                self.add(self.unresolved[uuid], PROJECTS, project)
        for uuid, server in rows(VolumeAttachment, "volume__uuid", list(projects), "volume__uuid", "server__uuid"):
            by_server[server] += self.unresolved[uuid]
        self.mark_found(projects)
        self.find_servers(by_server)

    def find_clusters(self) -> None:
        """Find the clusters that are targets or are joined, and their projects."""
        if not self.kinds & {CLUSTERS, PROJECTS}:
            return
        clusters = list(
            rows(Cluster, "uuid", list({**self.unresolved, **self.by_cluster}), "uuid", "name", "project_id")
        )
        for uuid, name, project in clusters:
            actions = [*self.unresolved.get(uuid, ()), *self.by_cluster.get(uuid, ())]
            self.add(actions, CLUSTERS, uuid, name)
            if project:
                self.add(actions, PROJECTS, project)
        self.mark_found(uuid for uuid, *_ in clusters)

    def find_compute_nodes(self) -> None:
        """Find compute nodes by their host names or UUIDs, with their zones and aggregates."""
        columns = ("pk", "uuid", "hostname", "zone")
        nodes = [*rows(ComputeNode, "hostname", list(self.by_host), *columns)]
        nodes += rows(ComputeNode, "uuid", list(self.unresolved), *columns)
        by_key = {key: [*self.by_host.get(name, ()), *self.unresolved.get(uuid, ())] for key, uuid, name, _ in nodes}
        for key, _, hostname, zone in nodes:
            self.add(by_key[key], COMPUTE_NODES, hostname)
            self.add(by_key[key], ZONES, zone)
        if AGGREGATES in self.kinds:
            for key, aggregate, name in rows(HostAggregate, "nodes", list(by_key), "nodes", "pk", "name"):
                self.add(by_key[key], AGGREGATES, aggregate, name)

    def mark_found(self, uuids: Iterable[UUID]) -> None:
        for uuid in uuids:
            self.unresolved.pop(uuid, None)


def rows(model: Any, column: str, values: Sequence[Any], *columns: str) -> Iterator[tuple[Any, ...]]:
    """Yield columns of the present rows with one of these values, without a query if there are no values."""
    for begin in range(0, len(values), BATCH):
        batch = model.objects.filter(deleted_at=None, **{f"{column}__in": values[begin : begin + BATCH]})
        yield from batch.order_by().values_list(*columns)
