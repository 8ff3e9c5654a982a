"""Order of the policies of a cluster: a policy is applied after the policies whose decisions it requires."""

import pytest
from django.contrib.auth.models import User

from cluster.models import Cluster
from tests.api import Caller, fault
from tests.builders import make_binding, make_cluster, make_policy, make_profile

pytestmark = pytest.mark.django_db
SCALING, DELETION = "senlin.policy.scaling-1.0", "senlin.policy.deletion-1.1"


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


@pytest.fixture
def cluster() -> Cluster:
    make_profile()
    return make_cluster("web")


@pytest.mark.parametrize(("priority", "status"), [(5, 409), (100, 409), (101, 202), (None, 202)])
def test_priority_before_a_policy_whose_decision_is_required_is_refused(
    api: Caller, cluster: Cluster, priority: int | None, status: int
) -> None:
    scaling = make_binding(cluster, SCALING, {"event": "CLUSTER_SCALE_IN"}).policy
    make_policy("oldest", DELETION, spec={})
    body = {"policy": "oldest"} if priority is None else {"policy": "oldest", "priority": priority}
    answer = api.post("/clusters/web/policies", body)
    assert answer.status_code == status
    if status == 409:
        assert fault(answer) == (
            f"priority: policy 'oldest' depends on the decision of policy '{scaling.name}', and must be applied after "
            "it: it must be greater than 100."
        )


def test_priority_after_a_policy_that_requires_the_decision_is_refused(api: Caller, cluster: Cluster) -> None:
    deletion = make_binding(cluster, DELETION).policy
    make_policy("shrink", SCALING, spec={"event": "CLUSTER_SCALE_IN"})
    answer = api.post("/clusters/web/policies", {"policy": "shrink", "priority": 900})
    assert (answer.status_code, fault(answer)) == (
        409,
        f"priority: policy '{deletion.name}' depends on the decision of policy 'shrink', and must be applied after "
        "it: it must be less than 400.",
    )


def test_update_of_a_priority_that_breaks_the_order_is_refused(api: Caller, cluster: Cluster) -> None:
    make_binding(cluster, SCALING, {"event": "CLUSTER_SCALE_IN"})
    deletion = make_binding(cluster, DELETION).policy
    path = f"/clusters/web/policies/{deletion.uuid}"
    assert api.patch(path, [{"op": "replace", "path": "/priority", "value": 5}]).status_code == 409
    assert api.patch(path, [{"op": "replace", "path": "/enabled", "value": False}]).status_code == 202
