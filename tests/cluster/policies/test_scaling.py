"""The scaling policy decides how many nodes are added or removed."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from cluster.models import Cluster, PolicyBinding
from cluster.policies.base import PolicyRefused, When
from cluster.policies.checking import DECIDED
from cluster.policies.scaling import IN, OUT
from tests.builders import make_binding, make_cluster
from tests.cluster.policies.policy_checks import check

pytestmark = pytest.mark.django_db

EXACT, PERCENTAGE = "EXACT_CAPACITY", "CHANGE_IN_PERCENTAGE"


def bind(cluster: Cluster, event: str, **adjustment: Any) -> PolicyBinding:
    return make_binding(cluster, "senlin.policy.scaling-1.0", {"event": event, "adjustment": adjustment})


def count(cluster: Cluster, event: str, **inputs: Any) -> int:
    """Return the decided count, in the format of docs/policies.md."""
    data = check(cluster, event, **inputs)
    decided: int = data["creation" if event == OUT else "deletion"]["count"]
    return decided


@pytest.mark.parametrize(
    ("event", "adjustment", "expected"),
    [
        (OUT, {}, 1),
        (IN, {}, 1),
        (OUT, {"number": 3}, 3),
        (IN, {"number": 3}, 3),
        (OUT, {"type": EXACT, "number": 7}, 2),
        (IN, {"type": EXACT, "number": 2}, 3),
        (OUT, {"type": PERCENTAGE, "number": 50}, 2),
        (IN, {"type": PERCENTAGE, "number": 50}, 2),
        (IN, {"type": PERCENTAGE, "number": 50.5, "min_step": 4}, 4),
        (OUT, {"type": PERCENTAGE, "number": 1}, 1),
    ],
)
def test_count_follows_the_adjustment(event: str, adjustment: dict[str, Any], expected: int) -> None:
    cluster = make_cluster(size=5)
    bind(cluster, event, **adjustment)
    assert count(cluster, event) == expected


def test_requested_count_takes_precedence() -> None:
    cluster = make_cluster(size=5)
    bind(cluster, IN, number=3)
    assert count(cluster, IN, count=2) == 2


@pytest.mark.parametrize(("event", "other"), [(IN, OUT), (OUT, IN)])
def test_policy_does_not_apply_to_the_other_event(event: str, other: str) -> None:
    cluster = make_cluster(size=5)
    binding = bind(cluster, event)
    assert not {"creation", "deletion"} & check(cluster, other).keys()
    check(cluster, other, when=When.AFTER)
    assert PolicyBinding.objects.get(pk=binding.pk).last_op is None


@pytest.mark.parametrize(
    ("event", "number", "bounds", "words"),
    [
        (OUT, 2, {"max_size": 6}, "The target capacity (7) is greater than the cluster's max_size (6)."),
        (IN, 4, {"min_size": 2}, "The target capacity (1) is less than the cluster's min_size (2)."),
        (IN, 6, {}, "The target capacity (-1) is less than the cluster's min_size (0)."),
        (OUT, 996, {}, "The target capacity (1001) is greater than the maximum number of nodes (1000)."),
    ],
)
def test_count_beyond_the_bounds_is_refused(event: str, number: int, bounds: dict[str, int], words: str) -> None:
    cluster = make_cluster(size=5, **bounds)
    policy = bind(cluster, event, number=number).policy
    with pytest.raises(PolicyRefused) as refused:
        check(cluster, event)
    assert str(refused.value) == f"Failed policy '{policy.name}': {words}"


@pytest.mark.parametrize(
    ("event", "bounds", "expected"), [(OUT, {"max_size": 6}, 1), (IN, {"min_size": 2}, 3), (IN, {}, 5)]
)
def test_best_effort_limits_the_count_to_the_bounds(event: str, bounds: dict[str, int], expected: int) -> None:
    cluster = make_cluster(size=5, **bounds)
    bind(cluster, event, number=9, best_effort=True)
    assert count(cluster, event) == expected


@pytest.mark.parametrize(("event", "bounds"), [(OUT, {"max_size": 5}), (IN, {"min_size": 5}), (OUT, {"max_size": 3})])
def test_best_effort_is_refused_at_the_bounds(event: str, bounds: dict[str, int]) -> None:
    cluster = make_cluster(size=5, **bounds)
    bind(cluster, event, best_effort=True)
    with pytest.raises(PolicyRefused, match="target capacity"):
        check(cluster, event)


def test_current_size_as_exact_capacity_is_refused() -> None:
    cluster = make_cluster(size=5)
    bind(cluster, OUT, type=EXACT, number=5)
    with pytest.raises(PolicyRefused, match=r"Invalid count \(0\) for action 'CLUSTER_SCALE_OUT'."):
        check(cluster, OUT)


def test_scaling_is_refused_during_the_cooldown() -> None:
    cluster = make_cluster(size=5)
    binding = bind(cluster, OUT, cooldown=60)
    assert count(cluster, OUT) == 1
    check(cluster, OUT, when=When.AFTER)
    with pytest.raises(PolicyRefused, match=f"Policy {binding.policy.name} cooldown is still in progress."):
        check(cluster, OUT)


def test_decided_scaling_is_refused_during_the_cooldown() -> None:
    cluster = make_cluster(size=5)
    binding = bind(cluster, OUT, cooldown=60, number=2)
    decided = {**check(cluster, OUT, deciding_only=True), DECIDED: True}
    assert check(cluster, OUT, decided)["creation"]["count"] == 2
    check(cluster, OUT, when=When.AFTER)
    with pytest.raises(PolicyRefused, match=f"Policy {binding.policy.name} cooldown is still in progress."):
        check(cluster, OUT, decided)


def test_decided_scaling_of_the_other_event_is_accepted_during_the_cooldown() -> None:
    cluster = make_cluster(size=5)
    bind(cluster, OUT, cooldown=60)
    decided = {**check(cluster, IN, deciding_only=True), DECIDED: True}
    check(cluster, OUT, when=When.AFTER)
    assert check(cluster, IN, decided)["status"] == "OK"


def test_scaling_is_accepted_after_the_cooldown() -> None:
    cluster = make_cluster(size=5)
    binding = bind(cluster, OUT, cooldown=60)
    PolicyBinding.objects.filter(pk=binding.pk).update(last_op=timezone.now() - timedelta(seconds=61))
    assert count(cluster, OUT) == 1
