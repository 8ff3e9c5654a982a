"""Builders of clusters on the embedded cloud, and functions that run actions on them."""

from uuid import uuid4

import pytest
from django.utils import timezone

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types.clusters.clusters import ClusterAction
from cluster.models import Cluster, ComputeNode, Flavor, Node, Server
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.builders import make_cluster
from tests.plans.inline import run_waiting

CREATED = "CLUSTER_CREATE: number of active nodes is {0}, as desired_capacity ({0}) says"


def proposed(kind: str, record: Cluster | Node, **inputs: object) -> ActionPlan:
    """Return a started plan with one action on a cluster or a node."""
    plan = propose([ProposedAction(kind, {"resource_id": str(record.uuid), "resource_name": record.name, **inputs})])
    plan.launch()
    return plan


def run(kind: str, record: Cluster | Node, **inputs: object) -> ActionPlan:
    """Run an action on a cluster or a node, and return its plan."""
    plan = proposed(kind, record, **inputs)
    run_waiting()
    return ActionPlan.objects.get(pk=plan.pk)


def create_cluster(size: int, name: str = "a cluster", **columns: object) -> Cluster:
    """Return a cluster with servers on the first compute node, with the rows that CLUSTER_CREATE writes."""
    now = timezone.now()
    columns = {"desired_capacity": size, "next_index": size + 1, "init_at": now, **columns}
    cluster = make_cluster(name, status_reason=CREATED.format(size), **columns)
    flavor = Flavor.objects.present().get(name=cluster.profile.spec["flavor"])
    nodes = [
        Node(
            profile=cluster.profile,
            cluster=cluster,
            index=index,
            status=Node.Status.ACTIVE,
            status_reason="Creation succeeded",
            init_at=now,
            physical_id=uuid4(),
        )
        for index in range(1, size + 1)
    ]
    for node in nodes:
        node.name = f"{name}-{str(node.uuid)[:8]}"
    Node.objects.bulk_create(nodes)
    Server.objects.bulk_create(
        Server(
            uuid=node.physical_id,
            name=node.name,
            node=ComputeNode.objects.first(),
            token=str(node.uuid),
            flavor=flavor.name,
            vcpus=flavor.vcpus,
            memory=flavor.memory,
            disk=flavor.disk,
            launched_at=now,
        )
        for node in nodes
    )
    return reload(cluster)


def reload(cluster: Cluster) -> Cluster:
    return Cluster.objects.get(pk=cluster.pk)


def write_before_the_lock(monkeypatch: pytest.MonkeyPatch, **columns: object) -> None:
    """Change the rows of clusters after an action read its row, and before it takes the lock."""
    lock = ClusterAction.lock

    def lock_late(action: ClusterAction, cluster: Cluster) -> str | None:
        Cluster.objects.update(**columns)
        return lock(action, cluster)

    monkeypatch.setattr(ClusterAction, "lock", lock_late)


def statuses(cluster: Cluster) -> list[str]:
    """Return the statuses of the members of a cluster, in the order in which they joined."""
    return list(cluster.members().values_list("status", flat=True))


def origin(plan: ActionPlan) -> Action:
    """Return the action of a plan that derived all its other actions."""
    return Action.objects.get(action_plan=plan, derived_from=None)


def derived(plan: ActionPlan) -> list[tuple[str, str]]:
    """Return type and state of the derived actions of a plan."""
    others = Action.objects.filter(action_plan=plan, derived_from__isnull=False)
    return list(others.order_by("pk").values_list("action_type", "state"))


def running_servers() -> int:
    return Server.objects.present().filter(state=Server.State.ACTIVE).count()
