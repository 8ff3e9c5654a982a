"""Stand-alone execution of an action on a node: locks, and policies of the node's cluster.

A derived action needs neither: the action that derived it holds the locks, and has applied the policies.
"""

from typing import TYPE_CHECKING

from django.db import transaction

from actions.models import Action
from actions.types.base import DONE, Answer, Outcome
from actions.types.clusters.health import settle
from actions.types.clusters.policy_checks import Data, ask_policies
from actions.types.locking import take_locks
from actions.types.operations import require_known, require_unlocked
from cluster.models import Cluster, Node
from cluster.policies.base import When
from cluster.simulated import foreseen_cloud

if TYPE_CHECKING:
    from actions.types.nodes.nodes import NodeAction

CLUSTER = "cluster"
"""The key in an action's data of the cluster whose rules it keeps to, once it has begun."""
SETTLED = "settled"
"""The key that is set once the result is written to the cluster."""


def execute(action: "NodeAction") -> Outcome:
    """Take the locks, apply the policies, do the work, update the cluster.

    After a crash, another worker does the rest.
    """
    if CLUSTER not in action.context.data and (in_the_way := begin(action)):
        return in_the_way
    outcome = action.act()
    return finish(action) if outcome.answer is Answer.OK else outcome


def foresee(action: "NodeAction") -> Outcome:
    """Check the locks, apply the policies that decide, and act on the model of the cloud. Raises: as `begin`."""
    node, model = action.node(), foreseen_cloud()
    cluster = action.find_cluster(node)
    if model and cluster is not None:
        require_known(model, cluster)
    if model and CLUSTER not in action.context.data:
        locks: list[tuple[Cluster | Node, bool]] = [(cluster, False)] if cluster else []
        require_unlocked(model, action.context.action_uuid, [*locks, (node, True)])
        if cluster is not None:
            data = action.context.data
            action.context.save_data(ask_policies(action, When.BEFORE, cluster, data, node=node, deciding_only=True))
            action.require_fit(cluster, node)
    return action.foresee_act(node)


def begin(action: "NodeAction") -> Outcome | None:
    """Return a RETRY, if anything is in the way.

    Raises:
        ActionFailed: the cluster's rules, or its policies, do not allow it.
    """
    node = action.node()
    cluster = action.find_cluster(node)
    locks: list[tuple[Cluster | Node, bool]] = [(cluster, False)] if cluster else []
    if in_the_way := take_locks(action.context.action_uuid, [*locks, (node, True)]):
        return in_the_way
    standing = action.node()
    if standing.cluster_id != node.cluster_id:
        return Outcome(Answer.RETRY, f"Failed in locking node {node.uuid}: it has just joined or left a cluster")
    if cluster is not None:
        data = ask_policies(action, When.BEFORE, cluster, action.context.data, node=standing)
        write_beginning(action, cluster, standing, data)
    return None


@transaction.atomic
def write_beginning(action: "NodeAction", cluster: Cluster, node: Node, data: Data) -> None:
    standing = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
    action.begin(standing, node, data)
    standing.save_state()
    action.context.save_data({**data, CLUSTER: str(cluster.uuid)})


def finish(action: "NodeAction") -> Outcome:
    """Settle the cluster, and ask its policies what is due now, unless what was derived came to no good end."""
    settle_cluster(action)
    cluster = find_cluster(action.context.data)
    failed = [one for one in action.context.derived if one.state in (Action.State.FAILED, Action.State.CANCELLED)]
    if cluster is not None and not failed:
        node = action.find()
        data = ask_policies(action, When.AFTER, cluster, action.context.data, node=node)
        action.context.save_data(data)
    return DONE


def settle_cluster(action: "NodeAction") -> None:
    """Write the result to the row of the cluster, once, and only if the action began."""
    data = action.context.data
    if CLUSTER in data and not data.get(SETTLED) and foreseen_cloud() is None:
        write_end(action, data)


@transaction.atomic
def write_end(action: "NodeAction", data: Data) -> None:
    cluster = find_cluster(data, lock=True)
    if cluster is not None:
        action.end(cluster, data)
        if cluster.status != Cluster.Status.INIT:
            settle(cluster, f"{action.name}: {{}}")
        cluster.save_state()
    action.context.save_data({**data, SETTLED: True})


def find_cluster(data: Data, *, lock: bool = False) -> Cluster | None:
    clusters = Cluster.objects.present()
    rows = clusters.select_for_update(no_key=True) if lock else clusters
    found: Cluster | None = rows.filter(uuid=data[CLUSTER]).first() if CLUSTER in data else None
    return found
