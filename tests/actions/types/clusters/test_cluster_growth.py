"""CLUSTER_CREATE and CLUSTER_SCALE_OUT, which derive the creation of nodes."""

from typing import Any

import pytest

from actions.models import Action
from actions.types.base import ActionType
from actions.types.clusters import clusters
from cluster.models import Cluster, Node, Server
from cluster.policies.base import When
from tests.actions.types.clusters.builders import reload, run, write_before_the_lock
from tests.builders import make_cluster, make_node

pytestmark = pytest.mark.django_db


def test_new_cluster_reaches_its_desired_capacity() -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=3)
    plan = run("CLUSTER_CREATE", cluster)
    assert plan.state == "SUCCEEDED"
    assert list(cluster.members().values_list("index", "status")) == [(1, "ACTIVE"), (2, "ACTIVE"), (3, "ACTIVE")]
    assert Server.objects.present().count() == 3
    current = reload(cluster)
    assert (current.status, current.desired_capacity, current.next_index) == ("ACTIVE", 3, 4)


def test_cluster_grows_by_the_requested_count() -> None:
    make_node()
    cluster = make_cluster(size=2)
    run("CLUSTER_SCALE_OUT", cluster, count=2)
    assert (reload(cluster).desired_capacity, cluster.members().count()) == (4, 4)
    assert Action.objects.filter(derived_from__isnull=False).count() == 2


def test_scale_out_above_max_size_is_refused() -> None:
    cluster = make_cluster(size=2, max_size=3)
    assert run("CLUSTER_SCALE_OUT", cluster, count=2).state == "FAILED"
    assert Action.objects.get().status_message == (
        "Action failed in execute: The target capacity (4) is greater than the cluster's max_size (3)."
    )
    assert (reload(cluster).status, Node.objects.count()) == ("ACTIVE", 2)


def test_creation_without_capacity_sets_the_cluster_in_error_with_its_number_of_nodes() -> None:
    cluster = make_cluster(status="INIT", desired_capacity=2, min_size=1)
    assert run("CLUSTER_CREATE", cluster).state == "FAILED"
    current = reload(cluster)
    assert current.status == "ERROR"
    assert current.status_reason == "CLUSTER_CREATE: number of active nodes is 0, below min_size (1)"
    assert cluster.members().filter(status="ERROR").count() == 2


def test_scale_out_keeps_changes_of_the_cluster_written_before_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    make_node()
    cluster = make_cluster(size=1)
    write_before_the_lock(monkeypatch, name="renamed", next_index=7, max_size=5)
    assert run("CLUSTER_SCALE_OUT", cluster).state == "SUCCEEDED"
    current = reload(cluster)
    assert (current.name, current.next_index, current.max_size) == ("renamed", 8, 5)


def test_scale_out_keeps_changes_of_the_cluster_written_while_policies_are_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_node()
    cluster = make_cluster(size=1)
    ask = clusters.apply_policies

    def ask_long(action: ActionType, when: When, *arguments: Any, **options: Any) -> Any:
        if when == When.BEFORE:
            Cluster.objects.update(metadata={"owner": "alice"})
        return ask(action, when, *arguments, **options)

    monkeypatch.setattr(clusters, "apply_policies", ask_long)
    assert run("CLUSTER_SCALE_OUT", cluster).state == "SUCCEEDED"
    assert reload(cluster).metadata == {"owner": "alice"}
