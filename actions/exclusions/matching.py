"""The actions that rules exclude, by the objects that they affect: servers, projects, nodes, aggregates and clusters.

Many actions are looked up together: the number of queries is constant for up to `BATCH` of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import UUID

from django.utils import timezone

from actions.exclusions.rules import Rule, Touched, current_rules
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


class Actionlike(Protocol):
    """An action, or one to be."""

    @property
    def uuid(self) -> UUID: ...

    @property
    def action_type(self) -> str: ...

    @property
    def input_parameters(self) -> Mapping[str, Any]: ...


One = TypeVar("One", bound=Actionlike)


@dataclass(frozen=True)
class Match:
    """A rule that excludes an action, with the targets of the rule that the action affects."""

    rule: Rule
    touched: Touched

    @property
    def why(self) -> str:
        """Return the targets that the action affects as a text, empty if the rule names no targets."""
        return ", ".join(
            f"{KINDS[kind][0]} {name if name == identifier else f'{name} ({identifier})'}"
            for kind, found in self.touched.items()
            for identifier, name in found.items()
        )


def excluded(actions: Sequence[One], rules: Iterable[Rule]) -> dict[UUID, Match]:
    """Return by action the first of these rules that excludes it, whatever their hours.

    The number of queries depends neither on the actions nor on the rules; there is none if no rule names a target.
    """
    found: dict[UUID, Match] = {}
    concerned = [(rule, [one for one in actions if rule.concerns(one.action_type)]) for rule in rules]
    concerned = [(rule, those) for rule, those in concerned if those]
    if not concerned:
        return found
    kinds = {kind for rule, _ in concerned for kind in rule.targets}
    any_of = {one.uuid: one for _, those in concerned for one in those}
    touched = touched_by(list(any_of.values()), kinds)
    for rule, those in concerned:
        for one in those:
            if one.uuid not in found and rule.matches(touched[one.uuid]):
                found[one.uuid] = Match(rule, rule.found_in(touched[one.uuid]))
    return found


def excluded_permanently(actions: Sequence[One]) -> dict[UUID, Match]:
    """Return, by action, the rule without a window or an expiry that excludes it.

    Rules with a window or an expiry are left out: they are applied when the action is about to begin.
    """
    now = timezone.now()
    rules = [rule for rule in current_rules().rules if rule.is_permanent and rule.is_in_force(now)]
    return excluded(actions, rules)


def excluded_now(actions: Sequence[One]) -> dict[UUID, Match]:
    """Return by action the rule that would exclude it if it began now."""
    now = timezone.now()
    return excluded(actions, [rule for rule in current_rules().rules if rule.is_in_force(now)])


def require_effect(action_type: str, derived: Sequence[One]) -> None:
    """Refuse an action that only derives others, if rules in force exclude all of these.

    Raises:
        Conflict: the message names the rule that excludes the first of them.
    """
    matches = excluded_now(derived)
    if derived and len(matches) == len(derived):
        first, rule = derived[0], matches[derived[0].uuid].rule
        raise Conflict(
            f"{action_type} cannot be done now: each action that it derives is excluded;"
            f" {first.action_type} is {rule.as_excluding}"
        )


def require_none_excluded(actions: Sequence[One]) -> None:
    """Refuse actions that a person requests to be executed at once, if a rule in force excludes one of them.

    Raises:
        Conflict: the message names the rule.
    """
    for one in actions:
        if match := excluded_now([one]).get(one.uuid):
            raise Conflict(f"{one.action_type} cannot be done now: it is {match.rule.as_excluding}")


def require_lifted(actions: Sequence[Action]) -> None:
    """Refuse to restore actions that rules skipped, if rules would skip them again in a plan that is made now.

    Raises:
        Conflict: the message names the action and the rule.
    """
    skipped = [action for action in actions if is_excluded(action)]
    if not skipped:
        return
    for uuid, match in excluded_permanently(skipped).items():
        raise Conflict(f"Action {uuid} cannot be restored: it is still excluded by '{match.rule.name}'.")


def touched_by(actions: Sequence[Actionlike], kinds: Collection[str]) -> dict[UUID, Found]:
    """Return by action the objects of these kinds that it affects, as names by identifiers.

    These are the object that it acts on, the compute nodes and clusters that its parameters name, and objects that
    follow from these: for a server its project, its cluster and its compute node; for a compute node its zone and its
    aggregates.
    """
    return AffectedLookup(actions, set(kinds)).found if kinds else {action.uuid: {} for action in actions}


class AffectedLookup:
    """The lookup of the objects that actions affect. A table is not queried if nothing is left to be found in it."""

    def __init__(self, actions: Sequence[Actionlike], kinds: set[str]) -> None:
        self.kinds = kinds
        self.found: dict[UUID, Found] = {action.uuid: defaultdict(dict) for action in actions}
        self.left: dict[UUID, list[UUID]] = defaultdict(list)
        """The actions by the UUIDs of their objects that are not found yet."""
        self.by_cluster: dict[UUID, list[UUID]] = defaultdict(list)
        self.by_host: dict[str, list[UUID]] = defaultdict(list)
        for action in actions:
            self.read_parameters(action)
        self.look_at_servers(self.left)
        self.look_at_nodes()
        self.look_at_stacks()
        self.look_at_volumes()
        self.look_at_clusters()
        if kinds & ON_COMPUTE_NODES:
            self.look_at_compute_nodes()

    def read_parameters(self, action: Actionlike) -> None:
        kind = plugins.load("ACTION_TYPES").get(action.action_type)
        if kind is None:
            return
        affected = kind.affected(action.input_parameters)
        target = [affected.target] if isinstance(affected.target, str) else []
        uuids = {uuid for named in (*target, *affected.operations) if (uuid := parse_uuid(str(named)))}
        for uuid in uuids:
            self.left[uuid].append(action.uuid)
        for host in dict.fromkeys(map(str, (*target, *affected.compute_nodes))):
            self.by_host[host].append(action.uuid)
            if (uuid := parse_uuid(host)) and uuid not in uuids:
                self.left[uuid].append(action.uuid)
        for cluster in affected.clusters:
            if found := parse_uuid(str(cluster)):
                self.by_cluster[found].append(action.uuid)

    def add(self, actions: Iterable[UUID], kind: str, identifier: Any, name: str = "") -> None:
        for action in actions:
            self.found[action][kind][str(identifier)] = name or str(identifier)

    def look_at_servers(self, by_server: Mapping[UUID, list[UUID]]) -> None:
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
        self.forget(servers)

    def look_at_nodes(self) -> None:
        """Find the clusters of nodes, the servers of the nodes, and the hosts on which new servers are placed."""
        by_server: dict[UUID, list[UUID]] = defaultdict(list)
        nodes = set()
        columns = ("uuid", "physical_id", "cluster__uuid", "cluster__name", "project_id", "data")
        for uuid, server, cluster, name, project, data in rows(Node, "uuid", list(self.left), *columns):
            nodes.add(uuid)
            if project:
                self.add(self.left[uuid], PROJECTS, project)
            if cluster:
                self.add(self.left[uuid], CLUSTERS, cluster, name)
            if server:
                by_server[server] += self.left[uuid]
            elif host := data.get("placement", {}).get("host"):
                self.by_host[host] += self.left[uuid]
        self.forget(nodes)
        self.look_at_servers(by_server)

    def look_at_stacks(self) -> None:
        """Find the projects of stacks and of their resources, and the servers that are, or were, resources."""
        by_server: dict[UUID, list[UUID]] = defaultdict(list)
        left = list(self.left)
        columns = ("uuid", "stack__project_id", "physical_id", "former_physical_id")
        found = [*rows(Stack, "uuid", left, "uuid", "project_id"), *rows(StackResource, "uuid", left, *columns)]
        for uuid, project, *servers in found:
            if project:
                self.add(self.left[uuid], PROJECTS, project)
            for server in filter(None, map(parse_uuid, filter(None, servers))):
                by_server[server] += self.left[uuid]
        self.forget([uuid for uuid, *_ in found])
        self.look_at_servers(by_server)

    def look_at_volumes(self) -> None:
        """Find the projects of volumes, and the servers that they are attached to."""
        by_server: dict[UUID, list[UUID]] = defaultdict(list)
        projects = dict(rows(Volume, "uuid", list(self.left), "uuid", "project_id"))
        for uuid, project in projects.items():
            if project:
                self.add(self.left[uuid], PROJECTS, project)
        for uuid, server in rows(VolumeAttachment, "volume__uuid", list(projects), "volume__uuid", "server__uuid"):
            by_server[server] += self.left[uuid]
        self.forget(projects)
        self.look_at_servers(by_server)

    def look_at_clusters(self) -> None:
        """Find the clusters that are acted on or joined, and the projects of these."""
        if not self.kinds & {CLUSTERS, PROJECTS}:
            return
        found = list(rows(Cluster, "uuid", list({**self.left, **self.by_cluster}), "uuid", "name", "project_id"))
        for uuid, name, project in found:
            actions = [*self.left.get(uuid, ()), *self.by_cluster.get(uuid, ())]
            self.add(actions, CLUSTERS, uuid, name)
            if project:
                self.add(actions, PROJECTS, project)
        self.forget(uuid for uuid, *_ in found)

    def look_at_compute_nodes(self) -> None:
        """Find compute nodes by their host names, or as what is acted on by their UUIDs."""
        columns = ("pk", "uuid", "hostname", "zone")
        named = [*rows(ComputeNode, "hostname", list(self.by_host), *columns)]
        named += rows(ComputeNode, "uuid", list(self.left), *columns)
        by_key = {key: [*self.by_host.get(name, ()), *self.left.get(uuid, ())] for key, uuid, name, _ in named}
        for key, _, hostname, zone in named:
            self.add(by_key[key], COMPUTE_NODES, hostname)
            self.add(by_key[key], ZONES, zone)
        if AGGREGATES in self.kinds:
            for key, aggregate, name in rows(HostAggregate, "nodes", list(by_key), "nodes", "pk", "name"):
                self.add(by_key[key], AGGREGATES, aggregate, name)

    def forget(self, uuids: Iterable[UUID]) -> None:
        for uuid in uuids:
            self.left.pop(uuid, None)


def rows(model: Any, column: str, values: Sequence[Any], *columns: str) -> Iterator[tuple[Any, ...]]:
    """Return some columns of what was not deleted and has one of these values; without values there is no query."""
    for begin in range(0, len(values), BATCH):
        some = model.objects.filter(deleted_at=None, **{f"{column}__in": values[begin : begin + BATCH]})
        yield from some.order_by().values_list(*columns)
