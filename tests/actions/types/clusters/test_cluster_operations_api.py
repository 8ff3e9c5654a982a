"""Operations on clusters and nodes through the API, from the request to their result."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from cluster.models import Cluster, Node, Server
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import make_member, make_node, make_profile
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_node()
    make_profile("small web")
    caller = Caller(cloud_admin, "1.12")
    request_and_run(caller, "POST", "", {"name": "web", "profile": "small web", "desired_capacity": 3, "min_size": 1})
    return caller


def request_and_run(api: Caller, method: str, path: str, body: Any = None, *, of: str = "/clusters") -> None:
    """Request an operation, and check that its plan succeeds."""
    answer = api.call(method, f"{of}{path}", body)
    assert answer.status_code == 202, fault(answer)
    run_waiting()
    plan = ActionPlan.objects.get(uuid=answer.json()["action_plan"])
    assert plan.state == "SUCCEEDED", [(one.action_type, one.status_message) for one in plan.actions.all()]


def members() -> list[Node]:
    return list(Cluster.objects.get().members())


def sizes() -> tuple[int, int, int]:
    """Return the number of members, the desired capacity and the number of servers."""
    return len(members()), Cluster.objects.get().desired_capacity, Server.objects.present().count()


def test_cluster_is_scaled_in(api: Caller) -> None:
    request_and_run(api, "POST", "/web/scale_in", {"count": 2})
    assert sizes() == (1, 1, 1)


@pytest.mark.parametrize(
    ("body", "size"),
    [
        ({"adjustment_type": "EXACT_CAPACITY", "number": 5}, 5),
        ({"adjustment_type": "CHANGE_IN_CAPACITY", "number": -1}, 2),
        ({"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 100}, 6),
        ({"adjustment_type": "EXACT_CAPACITY", "number": 9, "max_size": 4, "strict": False}, 4),
        ({"min_size": 2, "max_size": 3}, 3),
    ],
)
def test_cluster_is_resized(api: Caller, body: dict[str, Any], size: int) -> None:
    request_and_run(api, "POST", "/web/resize", body)
    assert sizes() == (size, size, size)


def test_node_is_added_to_and_removed_from_a_cluster(api: Caller) -> None:
    request_and_run(api, "POST", "", {"name": "alone", "profile": "small web"}, of="/nodes")
    node = Node.objects.get(name="alone")
    request_and_run(api, "POST", "/web/add_nodes", {"nodes": [str(node.uuid)]})
    assert (members()[-1], sizes()) == (node, (4, 4, 4))
    request_and_run(api, "POST", "/web/del_nodes", {"nodes": [str(node.uuid)]})
    assert sizes() == (3, 3, 4)
    assert api.get(f"/nodes/{node.uuid}").json()["cluster_uuid"] is None


def test_del_nodes_deletes_the_members_if_requested(api: Caller) -> None:
    first = members()[0]
    request_and_run(api, "POST", "/web/del_nodes", {"nodes": [str(first.uuid)], "destroy_after_deletion": True})
    assert sizes() == (2, 2, 2)


def test_node_is_created_in_a_cluster(api: Caller) -> None:
    request_and_run(api, "POST", "", {"name": "fourth", "cluster": "web"}, of="/nodes")
    assert (members()[-1].name, members()[-1].profile.name, sizes()) == ("fourth", "small web", (4, 4, 4))


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"name": "new", "cluster": "nope"}, 400, "cluster: there is no cluster nope."),
        ({"name": "new"}, 400, "profile: is required unless cluster is given."),
        ({"name": "new", "cluster": "web"}, 409, "cluster: The target capacity (4) is greater than the cluster's"),
    ],
)
def test_node_that_cannot_join_the_cluster_is_not_created(
    api: Caller, body: dict[str, Any], status: int, words: str
) -> None:
    Cluster.objects.update(max_size=3)
    answer = api.post("/nodes", body)
    assert (answer.status_code, words in fault(answer)) == (status, True), fault(answer)
    assert Node.objects.count() == 3


def test_cluster_is_checked_and_recovered(api: Caller) -> None:
    Server.objects.filter(uuid=members()[1].physical_id).soft_delete()
    request_and_run(api, "POST", "/web/check")
    assert (Cluster.objects.get().status, members()[1].status) == ("WARNING", "ERROR")
    request_and_run(api, "POST", "/web/recover", {"operation": "RECREATE"})
    assert (Cluster.objects.get().status, members()[1].status, sizes()) == ("ACTIVE", "ACTIVE", (3, 3, 3))


def test_node_is_recovered(api: Caller) -> None:
    node = members()[0]
    Server.objects.filter(uuid=node.physical_id).soft_delete()
    request_and_run(api, "POST", f"/{node.uuid}/recover", {"operation": "RECREATE", "check": True}, of="/nodes")
    assert members()[0].status == "ACTIVE"
    assert members()[0].physical_id != node.physical_id


def test_forced_deletion_deletes_the_nodes_of_the_cluster(api: Caller) -> None:
    request_and_run(api, "DELETE", "/web?force=true")
    assert api.get("/clusters/web").status_code == 404
    assert not Node.objects.present().exists()
    assert not Server.objects.present().exists()


def test_cluster_without_nodes_is_deleted(api: Caller) -> None:
    request_and_run(api, "POST", "/web/resize", {"adjustment_type": "EXACT_CAPACITY", "number": 0, "min_size": 0})
    request_and_run(api, "DELETE", "/web")
    assert api.get("/clusters/web").status_code == 404


def test_member_can_be_skipped_in_a_planned_scale_in(api: Caller) -> None:
    make_member("alone")
    plan = api.post("/clusters/web/scale_in", {"count": 2, "plan_only": True}).json()["action_plan"]
    actions = ActionPlan.objects.get(uuid=plan).actions.filter(action_type="NODE_DELETE").order_by("pk")
    stays, goes = actions
    answer = api.post(f"/action_plans/{plan}/skip", {"actions": [str(stays.uuid)], "reason": "it is busy"})
    assert answer.status_code == 200, fault(answer)
    api.post(f"/action_plans/{plan}/start")
    run_waiting()
    left = {str(node.uuid) for node in members()}
    assert (stays.target in left, goes.target in left, sizes()) == (True, False, (2, 2, 2))
    assert Cluster.objects.get().status == "ACTIVE"
