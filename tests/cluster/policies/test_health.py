"""The health policy says how nodes are recovered."""

import pytest

from tests.builders import make_binding, make_cluster
from tests.cluster.policies.asking import ask

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("spec", "inputs", "expected"),
    [
        ({}, {}, "RECREATE"),
        ({"recovery": {"operation": "REBOOT"}}, {}, "REBOOT"),
        ({"recovery": {"operation": "REBOOT"}}, {"operation": "REBUILD"}, "REBUILD"),
    ],
)
def test_the_policy_chooses_the_operation_unless_one_is_requested(
    spec: dict[str, object], inputs: dict[str, str], expected: str
) -> None:
    cluster = make_cluster(size=1)
    make_binding(cluster, "senlin.policy.health-1.2", spec)
    assert ask(cluster, "CLUSTER_RECOVER", **inputs)["health"] == {"recover_action": expected}


def test_it_says_nothing_about_a_check() -> None:
    cluster = make_cluster(size=1)
    make_binding(cluster, "senlin.policy.health-1.2")
    assert "health" not in ask(cluster, "CLUSTER_CHECK")
