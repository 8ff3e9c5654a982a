"""Attach a policy to a cluster."""

from typing import Any

from actions.types import messages
from actions.types.base import ActionFailed
from actions.types.cluster_policies.bindings import BOUND, POLICY, PolicyAction, type_of
from actions.types.clusters.clusters import BEGUN
from actions.types.nodes.nodes import schema_of
from cluster.models import Cluster, Policy, PolicyBinding
from cluster.policies.base import PolicyRefused, PolicyType
from watcher_site.database.locks import lock_present

CHANGES_CLOUD = "reached_out"
"""The key in an action's data that is set before the policy changes the cloud."""


class ClusterAttachPolicy(PolicyAction):
    """Attaches a policy. If the cluster has the policy already, the action succeeds without changes."""

    name = "CLUSTER_ATTACH_POLICY"
    description = "Attaching a policy to a cluster"
    schema = schema_of("policy_id", policy_id=POLICY, **BOUND)

    def change_cloud(self, cluster: Cluster, policy: Policy) -> None:
        policy_type = type_of(policy)
        if not self.find_binding(cluster):
            require_single(cluster, policy, policy_type)
            if self.is_enabled:
                self.context.save_data({**self.context.data, CHANGES_CLOUD: True})
                policy_type(policy.spec).attach(cluster)

    def require_possible(self, cluster: Cluster, policy: Policy) -> None:
        policy_type = type_of(policy)
        if not self.find_binding(cluster):
            require_single(cluster, policy, policy_type)

    @property
    def is_enabled(self) -> bool:
        return bool(self.input_parameters.get("enabled", True))

    def lock_related_rows(self) -> None:
        """Lock the policy, so that it is not deleted meanwhile."""
        lock_present(self.policy())

    def apply(self, cluster: Cluster, data: dict[str, Any]) -> None:
        # Of two concurrent attachments, the second sees the binding of the first.
        policy = self.policy()
        policy_type = type_of(policy)
        if self.find_binding(cluster):
            self.context.outputs["reason"] = messages.ALREADY_ATTACHED.text
            return
        require_single(cluster, policy, policy_type)
        PolicyBinding.objects.create(
            cluster=cluster,
            policy=policy,
            priority=self.input_parameters.get("priority", policy_type.priority),
            enabled=self.is_enabled,
        )

    def post_condition(self) -> None:
        """Undo the attachment in the cloud if it was not completed."""
        cluster, data = self.find(), self.context.data
        if cluster is None or not data.get(CHANGES_CLOUD) or data.get(BEGUN) or self.find_binding(cluster):
            return
        policy = self.policy()
        try:
            type_of(policy)(policy.spec).give_up_attaching(cluster)
        except PolicyRefused as refusal:
            raise ActionFailed(messages.POLICY_CHECK_FAILED.fill(reason=refusal)) from refusal


def require_single(cluster: Cluster, policy: Policy, policy_type: type[PolicyType]) -> None:
    """Raise `ActionFailed` if the cluster has another policy of a type of which it can have only one."""
    if not policy_type.is_single:
        return
    further = PolicyBinding.objects.present().filter(cluster=cluster, policy__type=policy.type).exclude(policy=policy)
    if other := further.select_related("policy").first():
        raise ActionFailed(messages.SINGLE_POLICY.fill(type=policy.type, policy=other.policy.uuid))
