"""The base class of actions on the policies of a cluster."""

from abc import ABC, abstractmethod
from typing import Any

from actions.types import messages
from actions.types.base import DONE, UUID_SCHEMA, ActionFailed, CannotBeForeseen, Outcome
from actions.types.clusters.clusters import BEGUN, ClusterAction
from actions.types.locking import require_known, require_unlocked
from cluster.models import Cluster, Policy, PolicyBinding
from cluster.models.clusters import MAX_PRIORITY
from cluster.policies.base import PolicyRefused, PolicyType
from cluster.policies.messages import TYPE_NOT_INSTALLED
from cluster.simulated import simulated_cloud
from watcher_site import plugins

BOUND = {
    "priority": {
        "type": "integer",
        "minimum": 0,
        "maximum": MAX_PRIORITY,
        "description": "Policies are evaluated in ascending priority. The default is that of the policy type.",
    },
    "enabled": {"type": "boolean", "description": "Whether the policy is evaluated."},
}

POLICY = {**UUID_SCHEMA, "description": "The UUID of the policy."}


class PolicyAction(ClusterAction, ABC):
    """An action on one policy, ``policy_id``, of a cluster. The status of the cluster does not change.

    The cloud is changed before the rows: after a crash, another worker repeats both changes, or makes the second.
    """

    @abstractmethod
    def change_cloud(self, cluster: Cluster, policy: Policy) -> None:
        """Make the changes in the cloud. May be called twice. Raises: `PolicyRefused`, `ActionFailed`."""

    def decide(self, cluster: Cluster, data: dict[str, Any]) -> None:
        """Decide nothing: the inputs determine the change."""

    def decision(self, cluster: Cluster) -> dict[str, Any]:
        """Return the data without applying policies, so that a policy that is not installed can be detached."""
        return dict(self.context.data)

    def require_possible(self, cluster: Cluster, policy: Policy) -> None:
        """Check in the tables that the action is possible. Raises: `ActionFailed`."""
        self.binding(cluster)

    def foresee(self) -> Outcome:
        cluster, model, policy = self.cluster(), simulated_cloud(), self.policy()
        if model is not None:
            require_known(model, cluster)
            require_unlocked(model, self.context.action_uuid, self.locks(cluster))
            model.members.changed.add(cluster.uuid)
        self.require_possible(cluster, policy)
        policy_type = plugins.load("POLICY_TYPES").get(policy.type)
        if policy_type is not None and not policy_type.decides:
            raise CannotBeForeseen(messages.EFFECT_UNPREDICTABLE.fill(name=policy.name))
        return DONE

    def execute(self) -> Outcome:
        if conflict := self.lock(self.cluster()):
            return conflict
        if not self.context.data.get(BEGUN):
            cluster = self.cluster()  # Before the lock, another action might have changed it.
            try:
                self.change_cloud(cluster, self.policy())
            except PolicyRefused as refusal:
                raise ActionFailed(messages.POLICY_CHECK_FAILED.fill(reason=refusal)) from refusal
            self.begin(self.decision(cluster))
        return DONE

    @property
    def policy_uuid(self) -> str:
        return str(self.input_parameters["policy_id"])

    def policy(self) -> Policy:
        """Return the policy. Raises: `ActionFailed` if there is none."""
        policy: Policy | None = Policy.objects.present().filter(uuid=self.policy_uuid).first()
        if policy is None:
            raise ActionFailed(messages.NO_POLICY.fill(policy=self.policy_uuid))
        return policy

    def find_binding(self, cluster: Cluster) -> PolicyBinding | None:
        bindings = PolicyBinding.objects.present().filter(cluster=cluster, policy__uuid=self.policy_uuid)
        binding: PolicyBinding | None = bindings.first()
        return binding

    def binding(self, cluster: Cluster) -> PolicyBinding:
        """Return the binding of the policy to the cluster. Raises: `ActionFailed` if there is none."""
        binding = self.find_binding(cluster)
        if binding is None:
            raise ActionFailed(messages.NOT_ATTACHED.text)
        return binding


def type_of(policy: Policy) -> type[PolicyType]:
    """Return the type of a policy. Raises: `ActionFailed` if it is not installed."""
    policy_type: type[PolicyType] | None = plugins.load("POLICY_TYPES").get(policy.type)
    if policy_type is None:
        raise ActionFailed(TYPE_NOT_INSTALLED.fill(type=policy.type))
    return policy_type
