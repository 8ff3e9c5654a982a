"""The base class of strategies, and the solution that they return.

`docs/writing-a-strategy.md` shows how to write one.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actions.models.naming import NAME_LENGTH
from cluster.datasources.base import Reading
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from watcher_site.refusals import Invalid

# The cluster models that a strategy may need.
COMPUTE, STORAGE, CLUSTERS, HEALTH = "compute", "storage", "clusters", "health"

# What the column holds.
LONGEST_TIMEOUT = 2**31 - 1
# The reasons with which strategies disable compute services: to maintain the node, and to keep it empty.
MAINTAINING = "watcher_maintaining"
EMPTIED = "watcher_disabled"
CONSOLIDATED = "Watcher node resource consolidation strategy"
REASONS = frozenset({MAINTAINING, EMPTIED, CONSOLIDATED})


@dataclass(frozen=True)
class SolutionAction:
    """An action that a strategy proposes; the planner gives it its parents.

    ``after`` are the positions of its parents in the solution's list, for the planner ``explicit``. ``name`` is the
    name for users, by default made of the type and the UUID; ``timeout`` is the number of seconds that one execution
    may take, None or 0 for the site's default.
    """

    action_type: str
    input_parameters: Mapping[str, Any]
    after: Sequence[int] = ()
    name: str = ""
    timeout: int | None = None


@dataclass
class Solution:
    """The proposal of a strategy: actions in its own order, and their expected effect.

    ``indicators`` are the efficacy indicators of its goal by name. The global efficacy follows from them.
    """

    actions: list[SolutionAction] = field(default_factory=list)
    indicators: dict[str, float] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set, repr=False)

    def add(
        self,
        action_type: str,
        input_parameters: Mapping[str, Any],
        *,
        resource_id: str | None = None,
        after: Sequence[int] = (),
        name: str = "",
        timeout: int | None = None,
    ) -> None:
        """Add an action unless it was added before; the first call decides its name and timeout.

        Args:
            name: what people call it, in `NAME_LENGTH` characters at most; made of the type where it is empty.
            timeout: how many seconds one execution may take; None or 0 for the site's default.

        Raises:
            Invalid: ``resource_id`` is among the parameters, where it may not stand, or the name or the timeout breaks
                its rule.
        """
        if "resource_id" in input_parameters:
            raise Invalid("resource_id: must be given beside the input_parameters, not among them.")
        if len(name) > NAME_LENGTH:
            raise Invalid(f"name: must have at most {NAME_LENGTH} characters, and has {len(name)}.")
        if timeout is not None and not 0 <= timeout <= LONGEST_TIMEOUT:
            raise Invalid(f"timeout: must be from 0 to {LONGEST_TIMEOUT} seconds, and is {timeout}.")
        acted_on = {} if resource_id is None else {"resource_id": resource_id}
        action = SolutionAction(action_type, {**acted_on, **input_parameters}, after, name, timeout)
        identity = json.dumps([action_type, action.input_parameters], sort_keys=True)
        if identity not in self.seen:
            self.seen.add(identity)
            self.actions.append(action)

    def migrate(self, server: ServerSnapshot, kind: str, source: str, destination: str | None = None) -> None:
        """Migrate a server ``live`` or ``cold`` between host names; without a destination the cloud chooses."""
        target = {"destination_node": destination} if destination else {}
        parameters = {"migration_type": kind, "source_node": source, "resource_name": server.name}
        self.add("migrate", {**parameters, **target}, resource_id=str(server.uuid))

    def enable(self, node: NodeSnapshot) -> None:
        parameters = {"state": "enabled", "resource_name": node.hostname}
        self.add("change_nova_service_state", parameters, resource_id=str(node.uuid))

    def disable(self, node: NodeSnapshot, reason: str) -> None:
        parameters = {"state": "disabled", "disabled_reason": reason, "resource_name": node.hostname}
        self.add("change_nova_service_state", parameters, resource_id=str(node.uuid))


class Strategy(ABC):
    """A way to pursue a goal. A subclass sets the attributes and says in `solve` what is to be done.

    ``goal`` names one of `audits.goals.GOALS`, ``planner`` one of `audits.planner.PLANNERS`. ``schema`` is the
    JSON Schema of the parameters; its defaults are filled in, and parameters that it does not name are refused,
    before `solve` sees them. A newer plan supersedes an older one of the same goal, strategy and scope, unless they
    differ in one of the parameters ``distinguished_by``: emptying one node does not make another's plan obsolete.
    ``metrics`` names the metrics that it cannot do without.
    """

    name: ClassVar[str]
    display_name: ClassVar[str]
    goal: ClassVar[str]
    planner: ClassVar[str] = "weight"
    schema: ClassVar[Mapping[str, Any]] = {}
    distinguished_by: ClassVar[tuple[str, ...]] = ()
    metrics: ClassVar[tuple[str, ...]] = ()

    def check(self, parameters: Mapping[str, Any]) -> None:  # noqa: B027 (most schemas say all there is to say)
        """Look, when an audit or a template is made, for what the schema allows and no run could answer.

        Raises:
            Invalid: the message begins with the path of the parameter, and names the rule.
        """

    def check_repeated(self, parameters: Mapping[str, Any]) -> None:  # noqa: B027
        """Refuse parameters that hold for a single moment, and so only for a ONESHOT audit.

        It is called for audits of other types, and for templates.

        Raises:
            Invalid: as for `check`.
        """

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the cluster models that it reads, given these parameters. An audit fails if one is empty.

        That there are no clusters of nodes, or that nothing was marked unhealthy, is no failure: there is nothing to
        do then. A strategy that reads none runs even where the cloud cannot be read, and `solve` gets an empty
        snapshot.
        """
        return (COMPUTE,)

    def readings(self, parameters: Mapping[str, Any]) -> Mapping[str, Reading]:
        """Return what to ask the data source for: the answers will be the cluster's measurements, by these names."""
        return {}

    @abstractmethod
    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        """Return what is to be done about this cluster.

        It reads no table and no clock: the same arguments give the same solution.

        Raises:
            Invalid: the parameters do not fit this cluster; the message tells the person who made the audit.
        """
