"""Clusters are created and grow: by actions that derive those of their nodes."""

from typing import Any

import pytest

from actions.models import Action
from actions.types.base import ActionType
from actions.types.clusters import clusters
from cluster.models import Cluster, Node, Server
from cluster.policies.base import When
from tests.actions.types.clusters.builders import again, run, write_before_the_lock
from tests.builders import make_cluster, make_node

pytestmark = pytest.mark.django_db


def test_a_new_cluster_gets_as_many_nodes_as_are_wanted() -> None:
    make_node()
    cluster = make_cluster(status="INIT", desired_capacity=3)
    plan = run("CLUSTER_CREATE", cluster)
    assert plan.state == "SUCCEEDED"
    assert list(cluster.members().values_list("index", "status")) == [(1, "ACTIVE"), (2, "ACTIVE"), (3, "ACTIVE")]
    assert Server.objects.present().count() == 3
    current = again(cluster)
    assert (current.status, current.desired_capacity, current.next_index) == ("ACTIVE", 3, 4)


def test_a_cluster_grows_by_the_number_that_is_requested() -> None:
    make_node()
    cluster = make_cluster(size=2)
    run("CLUSTER_SCALE_OUT", cluster, count=2)
    assert (again(cluster).desired_capacity, cluster.members().count()) == (4, 4)
    assert Action.objects.filter(derived_from__isnull=False).count() == 2


def test_a_cluster_does_not_grow_above_its_max_size() -> None:
    cluster = make_cluster(size=2, max_size=3)
    assert run("CLUSTER_SCALE_OUT", cluster, count=2).state == "FAILED"
    assert Action.objects.get().status_message == (
        "Action failed in execute: The target capacity (4) is greater than the cluster's max_size (3)."
    )
    assert (again(cluster).status, Node.objects.count()) == ("ACTIVE", 2)


def test_a_creation_that_finds_no_capacity_leaves_a_cluster_that_says_how_many_nodes_it_has() -> None:
    cluster = make_cluster(status="INIT", desired_capacity=2, min_size=1)
    assert run("CLUSTER_CREATE", cluster).state == "FAILED"
    current = again(cluster)
    assert current.status == "ERROR"
    assert current.status_reason == "CLUSTER_CREATE: number of active nodes is 0, below min_size (1)"
    assert cluster.members().filter(status="ERROR").count() == 2


def test_what_was_written_of_a_cluster_before_the_lock_was_taken_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    make_node()
    cluster = make_cluster(size=1)
    write_before_the_lock(monkeypatch, name="renamed", next_index=7, max_size=5)
    assert run("CLUSTER_SCALE_OUT", cluster).state == "SUCCEEDED"
    current = again(cluster)
    assert (current.name, current.next_index, current.max_size) == ("renamed", 8, 5)


def test_what_is_written_of_a_cluster_while_its_policies_are_applied_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    make_node()
    cluster = make_cluster(size=1)
    ask = clusters.apply_policies

    def ask_long(action: ActionType, when: When, *arguments: Any, **options: Any) -> Any:
        if when == When.BEFORE:
            Cluster.objects.update(metadata={"owner": "alice"})
        return ask(action, when, *arguments, **options)

    monkeypatch.setattr(clusters, "apply_policies", ask_long)
    assert run("CLUSTER_SCALE_OUT", cluster).state == "SUCCEEDED"
    assert again(cluster).metadata == {"owner": "alice"}
