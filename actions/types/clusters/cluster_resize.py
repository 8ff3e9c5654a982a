"""Adjust the size of a cluster, or its bounds, or both."""

from collections.abc import Sequence
from dataclasses import replace

from django.utils.translation import gettext_noop as _

from actions.graph.proposals import ProposedAction
from actions.types import messages
from actions.types.base import ActionFailed, Data
from actions.types.clusters.clusters import ClusterAction
from actions.types.clusters.resizing import (
    creations,
    decide_growth,
    decide_shrinkage,
    deletions,
    find_done,
    find_leaving,
    find_size_left,
    remove_uncreated,
    shrink,
    shrink_again,
    write_new_nodes,
)
from actions.types.clusters.rules import bounds_of, require_size
from actions.types.nodes.nodes import schema_of
from cluster.models import Cluster, Node
from cluster.policies.sizes import MAX_NODES, AdjustmentType, Bounds, compute_change, find_flaw

SIZE = {"type": "integer", "minimum": 0, "maximum": MAX_NODES}


class ClusterResize(ClusterAction):
    """Resizes a cluster. With ``strict`` false, a size outside the bounds becomes the nearest one within them.

    New bounds are written with the size, and apply to it.
    """

    name = "CLUSTER_RESIZE"
    description = _("Resizing a cluster")
    schema = schema_of(
        adjustment_type={
            "type": "string",
            "enum": AdjustmentType.values,
            "description": "The meaning of `number`. Without it the size changes only as far as new bounds require.",
        },
        number={
            "type": "number",
            "description": "The size, or the change in nodes or percent. Required with `adjustment_type`.",
        },
        min_size={**SIZE, "description": "The new minimum size."},
        max_size={**SIZE, "minimum": -1, "description": "The new maximum size. -1 is no limit."},
        min_step={
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_NODES,
            "description": "The minimum number of nodes that a percentage amounts to.",
        },
        strict={
            "type": "boolean",
            "description": "False: a size outside the bounds becomes the nearest allowed size. Otherwise it fails.",
        },
    )
    status_while_running = Cluster.Status.RESIZING
    decides_once = True

    def prepare(self, cluster: Cluster, data: Data) -> None:
        """Decide the number of nodes to add or remove, before the policies are applied."""
        if "creation" in data or "deletion" in data:
            return
        change = self.find_change(cluster, cluster.members().count())
        if change:
            data["creation" if change > 0 else "deletion"] = {"count": abs(change)}

    def bounds(self, cluster: Cluster) -> Bounds:
        """Return the new bounds. Raises: `ActionFailed` if they are invalid."""
        new = {
            name: size for name in ("min_size", "max_size") if (size := self.input_parameters.get(name)) is not None
        }
        bounds = replace(bounds_of(cluster), **new)
        if flaw := bounds.find_flaw():
            raise ActionFailed(flaw)
        return bounds

    def find_change(self, cluster: Cluster, size: int) -> int:
        """Return the requested change of a cluster with ``size`` nodes; negative if it shrinks.

        Raises:
            ActionFailed: the inputs are invalid, or the new size is not allowed.
        """
        inputs, bounds = self.input_parameters, self.bounds(cluster)
        adjustment, number, step = inputs.get("adjustment_type"), inputs.get("number"), inputs.get("min_step")
        if flaw := find_flaw(adjustment, number, is_bounded="min_size" in inputs or "max_size" in inputs):
            raise ActionFailed(flaw)
        requested = size + (
            compute_change(size, adjustment, number, step or 1) if adjustment and number is not None else 0
        )
        if not inputs.get("strict", True):
            return bounds.clamp(requested) - size
        require_size(bounds, requested)
        return requested - size

    def decide(self, cluster: Cluster, data: Data) -> None:
        if "creation" in data:
            decide_growth(data, data["creation"]["count"])
        elif "deletion" in data:
            decide_shrinkage(cluster, data, data["deletion"]["count"], self.find_excluded, bounds=self.bounds(cluster))

    def require_fit(self, cluster: Cluster, data: Data) -> None:
        """Check that the decision would be the same without the nodes that it has already added or removed."""
        size = cluster.members().count() + self.count_removed(cluster, data) - self.count_created(data)
        decided = data.get("creation", {}).get("count", 0) - data.get("deletion", {}).get("count", 0)
        if (change := self.find_change(cluster, size)) != decided:
            raise ActionFailed(messages.OTHER_RESIZE.fill(size=size, change=change, decided=decided))

    def count_removed(self, cluster: Cluster, data: Data) -> int:
        return len(data["deletion"]["candidates"]) - len(find_leaving(cluster, data)) if "deletion" in data else 0

    def count_created(self, data: Data) -> int:
        come = Node.objects.present().filter(uuid__in=data.get("creation", {}).get("nodes", []))
        return come.count()

    def apply(self, cluster: Cluster, data: Data) -> None:
        bounds = self.bounds(cluster)
        cluster.min_size, cluster.max_size = bounds.min_size, bounds.max_size
        size = cluster.members().count()
        if "creation" in data:
            size += write_new_nodes(cluster, data, self.left_out)
            cluster.desired_capacity = size
        elif "deletion" in data:
            size = find_size_left(cluster, data, self.left_out)
            shrink(cluster, data, self.left_out)
        else:
            cluster.desired_capacity = size
        require_size(bounds, size)

    def fit_size(self, cluster: Cluster, data: Data) -> None:
        if "creation" in data:
            remove_uncreated(cluster, data, self.left_out)
        shrink_again(cluster, data, self.left_out)

    def derive(self, cluster: Cluster, data: Data) -> Sequence[ProposedAction]:
        if "creation" in data:
            return creations(cluster, data)
        return deletions(cluster, data) if "deletion" in data else ()

    def complete(self, cluster: Cluster, data: Data) -> None:
        derived = self.context.derived
        self.context.outputs.update(
            nodes_added=find_done(derived, "NODE_CREATE"),
            nodes_removed=find_done(derived, "NODE_DELETE", "NODE_LEAVE"),
        )
