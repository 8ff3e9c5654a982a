"""The base class of strategies, and the solution that they return.

`docs/writing-a-strategy.md` shows how to write one.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from actions.models.naming import NAME_LENGTH
from audits import messages
from cluster.datasources.base import Reading
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot
from watcher_site.refusals import Invalid

# The cluster models that a strategy may need.
COMPUTE, STORAGE, CLUSTERS, HEALTH = "compute", "storage", "clusters", "health"

# The maximum of the column.
LONGEST_TIMEOUT = 2**31 - 1
# The reasons with which strategies disable compute services: to maintain the node, and to keep it empty.
MAINTAINING = "watcher_maintaining"
EMPTIED = "watcher_disabled"
CONSOLIDATED = "Watcher node resource consolidation strategy"
REASONS = frozenset({MAINTAINING, EMPTIED, CONSOLIDATED})


@dataclass(frozen=True)
class SolutionAction:
    """An action that a strategy proposes. The planner determines its parents.

    ``after`` are the positions of its parents in the list of the solution, for the planner ``explicit``. ``name`` is
    the name for users, by default made from the type and the UUID. ``timeout`` is the timeout of one execution in
    seconds; None or 0 is the default of the site.
    """

    action_type: str
    input_parameters: Mapping[str, Any]
    after: Sequence[int] = ()
    name: str = ""
    timeout: int | None = None


@dataclass
class Solution:
    """The proposal of a strategy: actions in its own order, and their expected effect.

    ``indicators`` are the efficacy indicators of its goal by name. The global efficacy is computed from them.
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
        """Add an action unless the same one was added before. The first call determines its name and timeout.

        Args:
            name: the name for users, with at most `NAME_LENGTH` characters; by default made from the type.
            timeout: the timeout of one execution in seconds; None or 0 is the default of the site.

        Raises:
            Invalid: the parameters contain ``resource_id``, or the name or the timeout is invalid.
        """
        if "resource_id" in input_parameters:
            raise Invalid(messages.RESOURCE_ID_AMONG_INPUTS.text)
        if len(name) > NAME_LENGTH:
            raise Invalid(messages.ACTION_NAME_LENGTH.fill(most=NAME_LENGTH, number=len(name)))
        if timeout is not None and not 0 <= timeout <= LONGEST_TIMEOUT:
            raise Invalid(messages.ACTION_TIMEOUT.fill(most=LONGEST_TIMEOUT, seconds=timeout))
        target = {} if resource_id is None else {"resource_id": resource_id}
        action = SolutionAction(action_type, {**target, **input_parameters}, after, name, timeout)
        identity = json.dumps([action_type, action.input_parameters], sort_keys=True)
        if identity not in self.seen:
            self.seen.add(identity)
            self.actions.append(action)

    def migrate(self, server: ServerSnapshot, kind: str, source: str, destination: str | None = None) -> None:
        """Migrate a server ``live`` or ``cold`` between host names. By default the cloud chooses the destination."""
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
    """The base class of strategies. A subclass sets the attributes and implements `solve`.

    ``goal`` is the name of one of `audits.goals.GOALS`, ``planner`` of one of `audits.planner.PLANNERS`. ``schema`` is
    the JSON Schema of the parameters: before `solve` is called, defaults are added and unknown parameters are refused.
    A newer plan supersedes an older one of the same goal, strategy and scope, unless they differ in one of the
    parameters ``distinguished_by``: a plan that empties one node does not replace a plan that empties another one.
    ``metrics`` are the names of the required metrics.
    """

    name: ClassVar[str]
    display_name: ClassVar[str]
    goal: ClassVar[str]
    planner: ClassVar[str] = "weight"
    schema: ClassVar[Mapping[str, Any]] = {}
    distinguished_by: ClassVar[tuple[str, ...]] = ()
    metrics: ClassVar[tuple[str, ...]] = ()

    def check(self, parameters: Mapping[str, Any]) -> None:  # noqa: B027 (for most strategies, the schema suffices)
        """Refuse parameters that the schema allows and with which each run would fail.

        It is called when an audit or a template is created or changed.

        Raises:
            Invalid: the message begins with the path of the parameter, and states the rule.
        """

    def check_repeated(self, parameters: Mapping[str, Any]) -> None:  # noqa: B027
        """Refuse parameters that are only valid at one time, and therefore only for a ONESHOT audit.

        It is called for audits of other types, and for templates.

        Raises:
            Invalid: as for `check`.
        """

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the cluster models that the strategy reads with these parameters. An audit fails if one is empty.

        The models of clusters and of unhealthy objects may be empty. A strategy that reads no model runs even if the
        cloud cannot be read, with an empty snapshot.
        """
        return (COMPUTE,)

    def readings(self, parameters: Mapping[str, Any]) -> Mapping[str, Reading]:
        """Return the queries to the data source. Their results are the measurements of the cluster, by these names."""
        return {}

    @abstractmethod
    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        """Return the solution for a cluster.

        It reads neither tables nor the clock: the same arguments return the same solution.

        Raises:
            Invalid: the parameters do not fit this cluster. The message is shown to the creator of the audit.
        """
