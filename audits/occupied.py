"""What something was asked for that is still to be done to it, or being done."""

from collections.abc import Iterable

from actions.models import Action
from cluster.member_snapshot import NodeClusterSnapshot
from plans.models import ActionPlan


def find_occupied() -> frozenset[str]:
    """Return the targets of actions that are to be done: one query. A plan that nobody started is in nobody's way."""
    begun = ActionPlan.objects.present().filter(state__in=[ActionPlan.State.PENDING, *ActionPlan.RUNNING])
    unfinished = Action.objects.unfinished().filter(action_plan__in=begun).order_by()
    return frozenset(unfinished.exclude(target=None).values_list("target", flat=True))


def mark_occupied(clusters: Iterable[NodeClusterSnapshot]) -> None:
    """Say of each cluster whether it, or one of its members, is occupied: one query."""
    occupied = find_occupied()
    for cluster in clusters:
        uuids = [cluster.uuid, *(member.uuid for member in cluster.members)]
        cluster.is_occupied = any(str(uuid) in occupied for uuid in uuids)
