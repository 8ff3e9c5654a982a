"""Delete a cluster with its nodes."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.types import messages
from actions.types.base import ActionFailed, Answer, Data, Outcome, Recovery
from actions.types.clusters.clusters import ClusterAction
from actions.types.clusters.resizing import find_members
from actions.types.clusters.rules import settle_status
from actions.types.nodes.nodes import node_action
from cluster.models import Cluster
from cluster.policies.base import PolicyRefused
from cluster.policies.checking import load_policy
from watcher_site.plugins import load as installed


class ClusterDelete(ClusterAction):
    """Deletes the members of a cluster, its bindings to policies, and the cluster.

    If members remain, the message names them.
    """

    name = "CLUSTER_DELETE"
    description = _("Deleting a cluster and its nodes")
    only_derives = True
    status_while_running = Cluster.Status.DELETING

    def decide(self, cluster: Cluster, data: Data) -> None:
        """Decide nothing: all members are deleted."""

    def require_fit(self, cluster: Cluster, data: Data) -> None:
        find_members(cluster, [str(action.target) for action in self.context.derived])

    def apply(self, cluster: Cluster, data: Data) -> None:
        """Set the desired capacity to 0, so that the cluster gets no new nodes if its deletion fails."""
        cluster.desired_capacity = 0

    def derive(self, cluster: Cluster, data: Data) -> Sequence[ProposedAction]:
        return [node_action("NODE_DELETE", node) for node in cluster.members()]

    def go_on(self) -> Outcome:
        cluster = self.find()
        if cluster is None:
            return Outcome(Answer.OK)
        if names := list(cluster.members().values_list("name", flat=True)[: messages.MAX_NAMES + 1]):
            return Outcome(Answer.ERROR, messages.fill_list(messages.NODES_LEFT, names, cluster=self.uuid))
        self.detach_policies(cluster)
        self.remove()
        return Outcome(Answer.OK)

    @transaction.atomic
    def remove(self) -> None:
        """Delete the row of the cluster with any status."""
        locked = self.find(lock=True)
        if locked is None:
            return
        if locked.status != self.status_while_running:
            locked.begin(self.status_while_running, messages.OPERATION_IN_PROGRESS.fill(description=self.description))
            locked.save_state()
        locked.remove()

    def settle(self) -> None:
        """Set the status after a failed deletion, to WARNING instead of ACTIVE."""
        cluster = self.find()
        if cluster is not None and cluster.status == self.status_while_running:
            settle_status(cluster, self.name)
            if cluster.status == Cluster.Status.ACTIVE:
                reason = messages.SETTLED.fill(action_type=self.name, reason=messages.CLUSTER_NOT_DELETED.text)
                cluster.settle(Cluster.Status.WARNING, reason)
            self.save(cluster)

    def detach_policies(self, cluster: Cluster) -> None:
        """Detach the policies. Raises: `ActionFailed` if one of them refuses."""
        for binding in cluster.policy_bindings.present().select_related("policy").order_by("-priority", "-pk"):
            try:
                if binding.policy.type in installed("POLICY_TYPES"):
                    load_policy(binding).detach(cluster)
            except PolicyRefused as refusal:
                raise ActionFailed(messages.NOT_DETACHABLE.fill(name=binding.policy.name, reason=refusal)) from refusal
            cluster.policy_bindings.filter(pk=binding.pk).soft_delete()

    def recover(self) -> Recovery:
        return Recovery.AGAIN if self.find() else Recovery.DONE
