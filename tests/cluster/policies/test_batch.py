"""The batch policy groups the nodes that get a new profile."""

from typing import Any
from uuid import uuid4

import pytest

from cluster.models import Cluster, Node
from cluster.policies.base import PolicyRefused
from tests.builders import make_binding, make_cluster
from tests.cluster.policies.policy_checks import check

pytestmark = pytest.mark.django_db


def batches(cluster: Cluster, **spec: int) -> list[list[int]]:
    """Return the indexes of the nodes of each batch."""
    make_binding(cluster, "senlin.policy.batch-1.0", spec)
    by_uuid = {str(node.uuid): node.index for node in cluster.members()}
    return [[by_uuid[uuid] for uuid in step] for step in update(cluster)["plan"]]


def update(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = check(cluster, "CLUSTER_UPDATE", new_profile_id=str(uuid4()))["update"]
    return found


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, [[1, 2, 3, 4], [5]]),
        ({"min_in_service": 0}, [[1, 2, 3, 4, 5]]),
        ({"min_in_service": 3}, [[1, 2], [3, 4], [5]]),
        ({"max_batch_size": 2}, [[1, 2], [3, 4], [5]]),
        ({"min_in_service": 4, "max_batch_size": 2}, [[1], [2], [3], [4], [5]]),
    ],
)
def test_batches_respect_min_in_service_and_max_batch_size(spec: dict[str, int], expected: list[list[int]]) -> None:
    assert batches(make_cluster(size=5), **spec) == expected


def test_unhealthy_nodes_are_in_the_first_batch() -> None:
    cluster = make_cluster(size=4)
    Node.objects.filter(index__in=[2, 4]).update(status="ERROR")
    assert batches(cluster, max_batch_size=3) == [[2, 4, 1], [3]]


def test_pause_between_batches_is_returned() -> None:
    cluster = make_cluster(size=2)
    make_binding(cluster, "senlin.policy.batch-1.0", {"pause_time": 5})
    assert update(cluster)["pause_time"] == 5


def test_update_of_a_cluster_smaller_than_min_in_service_is_refused() -> None:
    with pytest.raises(PolicyRefused, match="None of 2 nodes can be updated while min_in_service"):
        batches(make_cluster(size=2), min_in_service=2)


def test_cluster_without_nodes_has_no_batches() -> None:
    assert batches(make_cluster()) == []


@pytest.mark.parametrize("inputs", [{"name": "other"}, {"new_profile_id": "a profile", "profile_only": True}])
def test_policy_does_not_apply_if_the_nodes_keep_their_profile(inputs: dict[str, Any]) -> None:
    cluster = make_cluster(size=1)
    make_binding(cluster, "senlin.policy.batch-1.0", {"min_in_service": 5})
    assert "update" not in check(cluster, "CLUSTER_UPDATE", **inputs)
