"""Objects with requested operations that are pending or running."""

from collections.abc import Iterable

from actions.models import Action
from cluster.snapshot.cloud import NodeClusterSnapshot
from plans.models import ActionPlan


def find_occupied() -> frozenset[str]:
    """Return the targets of actions that are to be done: one query. A plan that nobody started is in nobody's way."""
    begun = ActionPlan.objects.present().filter(state__in=[ActionPlan.State.PENDING, *ActionPlan.RUNNING])
    unfinished = Action.objects.unfinished().filter(action_plan__in=begun).order_by()
    return frozenset(unfinished.exclude(target=None).values_list("target", flat=True))


def mark_occupied(clusters: Iterable[NodeClusterSnapshot]) -> None:
    """Set for each cluster whether an operation on it or on one of its members is under way, with one query."""
    occupied = find_occupied()
    for cluster in clusters:
        uuids = [cluster.uuid, *(member.uuid for member in cluster.members)]
        cluster.is_occupied = any(str(uuid) in occupied for uuid in uuids)
