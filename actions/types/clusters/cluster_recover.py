"""Recover the nodes of a cluster whose servers do not run."""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types import messages
from actions.types.base import ActionFailed
from actions.types.clusters.clusters import ClusterAction
from actions.types.clusters.resizing import creations, decide_growth, write_new_nodes
from actions.types.nodes.nodes import node_action, schema_of
from actions.types.nodes.server_changes import CHECK, OPERATION, Operation
from cluster.models import Cluster, Node

Status = Node.Status
# The statuses of nodes whose server ran at the last check, or is being deleted.
NOT_RECOVERED = (Status.ACTIVE, Status.WARNING, Status.DELETING)


class ClusterRecover(ClusterAction):
    """Recovers members in ERROR at the last check, or without a server. With ``check``, checks all members first.

    With ``check_capacity``, also creates the nodes that are missing from the desired capacity.
    """

    name = "CLUSTER_RECOVER"
    description = _("Recovering the nodes of a cluster")
    only_derives = True
    schema = schema_of(
        operation=OPERATION,
        check=CHECK,
        check_capacity={
            "type": "boolean",
            "description": "Whether to create the nodes that are missing from the desired capacity.",
        },
    )
    status_while_running = Cluster.Status.RECOVERING

    @property
    def checks_first(self) -> bool:
        return bool(self.input_parameters.get("check"))

    def prepare(self, cluster: Cluster, data: dict[str, Any]) -> None:
        """Decide the number of new nodes, which the policies then assign to hosts."""
        missing = cluster.desired_capacity - cluster.members().count()
        if self.input_parameters.get("check_capacity") and missing > 0:
            data.setdefault("creation", {"count": missing})

    def decide(self, cluster: Cluster, data: dict[str, Any]) -> None:
        recovered = data.get("health", {}).get("recover_action")
        operation = self.input_parameters.get("operation") or recovered or Operation.RECREATE
        members = cluster.members()
        broken = (
            members.exclude(status=Status.DELETING) if self.checks_first else members.exclude(status__in=NOT_RECOVERED)
        )
        data["recovery"] = {
            "operation": operation,
            "nodes": [str(uuid) for uuid in broken.values_list("uuid", flat=True)],
        }
        if "creation" in data:
            decide_growth(data, data["creation"]["count"])

    def apply(self, cluster: Cluster, data: dict[str, Any]) -> None:
        if "creation" not in data:
            return
        size = cluster.members().count() + write_new_nodes(cluster, data, self.left_out)
        if size > cluster.desired_capacity:
            raise ActionFailed(messages.TOO_MANY_NODES.fill(size=size, desired=cluster.desired_capacity))

    def derive(self, cluster: Cluster, data: dict[str, Any]) -> Sequence[ProposedAction]:
        inputs = {"operation": data["recovery"]["operation"], **({"check": True} if self.checks_first else {})}
        broken = cluster.members().filter(uuid__in=data["recovery"]["nodes"])
        recoveries = [node_action("NODE_RECOVER", node, inputs) for node in broken]
        return [*recoveries, *(creations(cluster, data) if "creation" in data else [])]

    def complete(self, cluster: Cluster, data: dict[str, Any]) -> None:
        done = [action for action in self.context.derived if action.state == Action.State.SUCCEEDED]
        self.context.outputs.update(
            nodes_recovered=[str(action.target) for action in done if action.outputs.get("operation")],
            nodes_added=[str(action.target) for action in done if action.action_type == "NODE_CREATE"],
        )
