"""Add a node to a cluster."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from actions.types import messages
from actions.types.base import DONE, UUID_SCHEMA, ActionFailed, ActionSkipException, Affected, Data, Outcome, Recovery
from actions.types.nodes.membership import find_joined, join, join_as_requested, require_joinable, require_standalone
from actions.types.nodes.nodes import NodeAction, schema_of
from cluster.models import Cluster, Node
from watcher_site.state_machine import ConcurrentTransition


class NodeJoin(NodeAction):
    """Adds a node as the last member of the cluster ``cluster_id``."""

    name = "NODE_JOIN"
    description = "Having a node join a cluster"
    schema = schema_of("cluster_id", cluster_id={**UUID_SCHEMA, "description": "The UUID of the cluster."})

    @classmethod
    def affected(cls, input_parameters: Mapping[str, Any]) -> Affected:
        joined = input_parameters.get("cluster_id")
        return Affected(input_parameters.get("resource_id"), clusters=[joined] if joined else [])

    def pre_condition(self) -> None:
        node = self.node_to_act_on()
        if self.has_begun:
            return
        if find_joined(self, node) == node.cluster:
            raise ActionSkipException(messages.MEMBER_ALREADY.fill(node=self.uuid))
        require_standalone(node)

    def find_cluster(self, node: Node) -> Cluster | None:
        return find_joined(self, node)

    def begin(self, cluster: Cluster, node: Node, data: Data) -> None:
        join_as_requested(cluster, node)

    def require_fit(self, cluster: Cluster, node: Node) -> None:
        require_joinable(cluster, node)

    def foresee_act(self, node: Node) -> Outcome:
        node.cluster = find_joined(self, node)
        return DONE

    def act(self) -> Outcome:
        if not self.has_begun:
            self.join()
        return DONE

    @transaction.atomic
    def join(self) -> None:
        """Join a cluster whose desired capacity already includes the node."""
        node = self.node()
        joined = find_joined(self, node)
        if joined is None or joined == node.cluster:
            return
        cluster = Cluster.objects.select_for_update(no_key=True).get(pk=joined.pk)
        try:
            join(cluster, node)
        except ConcurrentTransition as problem:
            raise ActionFailed(messages.NODE_CHANGED.fill(node=self.uuid)) from problem
        Cluster.objects.filter(pk=cluster.pk).update(next_index=cluster.next_index)

    def recover(self) -> Recovery:
        return Recovery.AGAIN
