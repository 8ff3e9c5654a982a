"""Calls of policies by cluster actions: policies that decide come first, then policies that act."""

from typing import ClassVar

import pytest
from pytest_django import Settings

from actions.models import Action
from cluster.models import Node
from cluster.policies.base import PolicyCheck, PolicyType, When
from tests.actions.types.clusters.test_cluster_growth import run
from tests.builders import make_binding, make_cluster, make_node

pytestmark = pytest.mark.django_db


class Acting(PolicyType):
    """A policy that acts, and decides nothing."""

    name = "acting"
    description = "For tests."
    priority = 1
    targets = {When.BEFORE: frozenset({"CLUSTER_SCALE_OUT"})}
    schema: ClassVar = {"type": "object"}
    decides = False
    applied: ClassVar[list[dict[str, object]]] = []

    def pre_op(self, check: PolicyCheck) -> None:
        self.applied.append(dict(check.data))


@pytest.fixture(autouse=True)
def applied(settings: Settings) -> list[dict[str, object]]:
    settings.POLICY_TYPES = [f"{__name__}.Acting", "cluster.policies.scaling.Scaling"]
    Acting.applied.clear()
    return Acting.applied


def test_acting_policy_is_called_after_all_decisions(applied: list[dict[str, object]]) -> None:
    make_node()
    cluster = make_cluster()
    make_binding(cluster, "acting")
    spec = {"event": "CLUSTER_SCALE_OUT", "adjustment": {"number": 2}}
    make_binding(cluster, "senlin.policy.scaling-1.0", spec, priority=2)
    assert run("CLUSTER_SCALE_OUT", cluster).state == "SUCCEEDED"
    [data] = applied
    nodes = sorted(map(str, Node.objects.values_list("uuid", flat=True)))
    assert sorted(data["creation"]["nodes"]) == nodes  # type: ignore[index]
    assert len(nodes) == 2


def test_acting_policy_is_not_called_if_the_operation_is_refused(applied: list[dict[str, object]]) -> None:
    cluster = make_cluster(size=2, max_size=3)
    make_binding(cluster, "acting")
    assert run("CLUSTER_SCALE_OUT", cluster, count=2).state == "FAILED"
    assert "max_size" in str(Action.objects.get().status_message)
    assert applied == []


def test_message_of_the_action_names_the_policy_that_refused() -> None:
    cluster = make_cluster(size=2, max_size=3)
    binding = make_binding(
        cluster, "senlin.policy.scaling-1.0", {"event": "CLUSTER_SCALE_OUT", "adjustment": {"number": 2}}
    )
    assert run("CLUSTER_SCALE_OUT", cluster).state == "FAILED"
    action = Action.objects.get()
    assert action.status_message == (
        f"Action failed in execute: Policy check failure: Failed policy '{binding.policy.name}': The target capacity"
        " (4) is greater than the cluster's max_size (3)."
    )
    assert (action.data["status"], Node.objects.count()) == ("ERROR", 2)
