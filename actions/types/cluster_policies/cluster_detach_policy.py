"""Detach a policy from a cluster."""

from typing import Any

from actions.types.cluster_policies.bindings import POLICY, PolicyAction
from actions.types.nodes.nodes import schema_of
from cluster.models import Cluster, Policy, PolicyBinding
from watcher_site import plugins


class ClusterDetachPolicy(PolicyAction):
    """Detaches a policy, even if its type is no longer installed."""

    name = "CLUSTER_DETACH_POLICY"
    description = "Detaching a policy from a cluster"
    schema = schema_of("policy_id", policy_id=POLICY)

    def change_cloud(self, cluster: Cluster, policy: Policy) -> None:
        self.binding(cluster)
        if policy_type := plugins.load("POLICY_TYPES").get(policy.type):
            policy_type(policy.spec).detach(cluster)

    def apply(self, cluster: Cluster, data: dict[str, Any]) -> None:
        PolicyBinding.objects.filter(pk=self.binding(cluster).pk).soft_delete()
