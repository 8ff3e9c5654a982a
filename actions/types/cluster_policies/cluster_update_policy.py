"""Change the priority of a cluster's policy, enable it, or disable it."""

from typing import Any

from actions.types.cluster_policies.bindings import BOUND, POLICY, PolicyAction, type_of
from actions.types.nodes.nodes import schema_of
from cluster.models import Cluster, Policy


class ClusterUpdatePolicy(PolicyAction):
    name = "CLUSTER_UPDATE_POLICY"
    description = "Updating a policy of a cluster"
    schema = schema_of("policy_id", policy_id=POLICY, **BOUND)

    def change_cloud(self, cluster: Cluster, policy: Policy) -> None:
        """Attach the policy in the cloud when it is enabled."""
        if self.input_parameters.get("enabled") and not self.binding(cluster).enabled:
            type_of(policy)(policy.spec).attach(cluster)

    def apply(self, cluster: Cluster, data: dict[str, Any]) -> None:
        binding = self.binding(cluster)
        changes = {name: self.input_parameters[name] for name in BOUND if name in self.input_parameters}
        for name, value in changes.items():
            setattr(binding, name, value)
        binding.save_changes([*changes])
