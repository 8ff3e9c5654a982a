"""The health policy decides the operation that recovers nodes."""

import pytest

from tests.builders import make_binding, make_cluster
from tests.cluster.policies.policy_checks import check

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("spec", "inputs", "expected"),
    [
        ({}, {}, "RECREATE"),
        ({"recovery": {"operation": "REBOOT"}}, {}, "REBOOT"),
        ({"recovery": {"operation": "REBOOT"}}, {"operation": "REBUILD"}, "REBUILD"),
    ],
)
def test_recovery_operation_is_taken_from_the_policy_unless_requested(
    spec: dict[str, object], inputs: dict[str, str], expected: str
) -> None:
    cluster = make_cluster(size=1)
    make_binding(cluster, "senlin.policy.health-1.2", spec)
    assert check(cluster, "CLUSTER_RECOVER", **inputs)["health"] == {"recover_action": expected}


def test_policy_does_not_apply_to_a_check() -> None:
    cluster = make_cluster(size=1)
    make_binding(cluster, "senlin.policy.health-1.2")
    assert "health" not in check(cluster, "CLUSTER_CHECK")
