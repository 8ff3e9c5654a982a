"""Clusters on the embedded cloud, and actions that are done to them to their end."""

import pytest

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types.clusters.clusters import ClusterAction
from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.builders import make_cluster
from tests.plans.inline import run_waiting


def proposed(kind: str, record: Cluster | Node, **inputs: object) -> ActionPlan:
    """Return a plan that is about to do an action to a cluster or a node."""
    plan = propose([ProposedAction(kind, {"resource_id": str(record.uuid), "resource_name": record.name, **inputs})])
    plan.launch()
    return plan


def run(kind: str, record: Cluster | Node, **inputs: object) -> ActionPlan:
    """Run an action on a cluster or a node, and return its plan."""
    plan = proposed(kind, record, **inputs)
    run_waiting()
    return ActionPlan.objects.get(pk=plan.pk)


def create_cluster(size: int, name: str = "a cluster", **columns: object) -> Cluster:
    """Return a cluster of so many nodes with servers. There must be capacity for them."""
    cluster = make_cluster(name, status="INIT", desired_capacity=size, **columns)
    assert run("CLUSTER_CREATE", cluster).state == "SUCCEEDED"
    return again(cluster)


def again(cluster: Cluster) -> Cluster:
    return Cluster.objects.get(pk=cluster.pk)


def write_before_the_lock(monkeypatch: pytest.MonkeyPatch, **columns: object) -> None:
    """Make another writer change the rows of clusters after an action has read its row, and before it locks it."""
    lock = ClusterAction.lock

    def lock_late(action: ClusterAction, cluster: Cluster) -> str | None:
        Cluster.objects.update(**columns)
        return lock(action, cluster)

    monkeypatch.setattr(ClusterAction, "lock", lock_late)


def statuses(cluster: Cluster) -> list[str]:
    """Return those of its members, in the order of their joining."""
    return list(cluster.members().values_list("status", flat=True))


def origin(plan: ActionPlan) -> Action:
    """Return the action that derived all the others of a plan."""
    return Action.objects.get(action_plan=plan, derived_from=None)


def derived(plan: ActionPlan) -> list[tuple[str, str]]:
    """Return type and state of the actions that were derived."""
    others = Action.objects.filter(action_plan=plan, derived_from__isnull=False)
    return list(others.order_by("pk").values_list("action_type", "state"))


def running_servers() -> int:
    return Server.objects.present().filter(state=Server.State.ACTIVE).count()
