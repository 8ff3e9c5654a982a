"""Clusters through the API: lists, details, and operations, each executed by an action."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpResponse

from actions.models import Action
from cluster.models import Cluster, Node, PolicyBinding
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import make_cluster, make_member, make_node, make_policy, make_profile
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db

WEB = {"name": "web", "profile": "small web", "desired_capacity": 2, "max_size": 5, "metadata": {"team": "shop"}}


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_node()
    make_profile("small web")
    return Caller(cloud_admin, "1.12")


def action_of(answer: HttpResponse) -> Action:
    """Check the response to an operation, and return its action."""
    assert answer.status_code == 202, fault(answer)
    found = answer.json()
    assert answer["Location"] == f"http://testserver/v1/actions/{found['action']}"
    action = Action.objects.select_related("action_plan").get(uuid=found["action"])
    assert (str(action.action_plan.uuid), action.target) == (found["action_plan"], found["cluster"])
    return action


def done(api: Caller, answer: HttpResponse) -> dict[str, Any]:
    """Run the requested operation, and return the cluster as the API shows it."""
    action = action_of(answer)
    run_waiting()
    assert ActionPlan.objects.get(pk=action.action_plan.pk).state == "SUCCEEDED"
    found: dict[str, Any] = api.get(f"/clusters/{action.target}").json()
    return found


def test_cluster_is_created_by_an_action_that_is_started_immediately(api: Caller) -> None:
    action = action_of(api.post("/clusters", WEB))
    assert (action.action_type, action.action_plan.state) == ("CLUSTER_CREATE", "PENDING")
    assert api.get("/clusters/web").json()["status"] == "INIT"
    run_waiting()
    shown = api.get("/clusters/web").json()
    assert {name: shown[name] for name in ("status", "min_size", "max_size", "desired_capacity", "timeout")} == {
        "status": "ACTIVE",
        "min_size": 0,
        "max_size": 5,
        "desired_capacity": 2,
        "timeout": 0,
    }
    assert (shown["profile_name"], shown["metadata"], shown["policies"]) == ("small web", {"team": "shop"}, [])
    assert shown["nodes"] == [str(uuid) for uuid in Node.objects.order_by("index").values_list("uuid", flat=True)]
    assert shown["init_at"]


def test_desired_capacity_defaults_to_min_size(api: Caller) -> None:
    shown = done(api, api.post("/clusters", {"name": "web", "profile": "small web", "min_size": 1}))
    assert (shown["desired_capacity"], len(shown["nodes"])) == (1, 1)


def test_action_timeout_is_the_timeout_of_the_cluster(api: Caller) -> None:
    assert action_of(api.post("/clusters", WEB | {"timeout": 77})).timeout == 77


def test_scale_out_adds_nodes_to_the_cluster(api: Caller) -> None:
    done(api, api.post("/clusters", WEB))
    shown = done(api, api.post("/clusters/web/scale_out", {"count": 2}))
    assert (shown["desired_capacity"], len(shown["nodes"])) == (4, 4)
    assert len(done(api, api.post("/clusters/web/scale_out"))["nodes"]) == 5


def test_operations_are_accepted_in_the_form_of_senlin_actions(api: Caller) -> None:
    done(api, api.post("/clusters", WEB))
    shown = done(api, api.post("/clusters/web/actions", {"scale_out": {"count": 2}}))
    assert len(shown["nodes"]) == 4


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "An object with one operation is expected."),
        ([], "An object with one operation is expected."),
        ({"scale_out": {}, "scale_in": {}}, "An object with one operation is expected."),
        ({"explode": {}}, "Unknown operation explode."),
        ({"scale_out": 3}, "An object is expected."),
        ({"scale_out": {"count": 0}}, "count"),
    ],
)
def test_invalid_operation_is_refused(api: Caller, body: Any, words: str) -> None:
    cluster = make_cluster()
    answer = api.post(f"/clusters/{cluster.uuid}/actions", body)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert not ActionPlan.objects.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": None}, "name. Value: 'None'. Mandatory field missing."),
        ({"name": ""}, "name"),
        ({"profile": "nope"}, "profile: there is no profile nope."),
        ({"min_size": -1}, "min_size: must not be below 0."),
        ({"min_size": 6}, "min_size: 6 is above the max_size 5."),
        ({"max_size": -2}, "max_size: must not be below 0"),
        ({"max_size": 1001}, "max_size: must not be above 1000."),
        ({"min_size": 3}, "desired_capacity: The target capacity (2) is less than the cluster's min_size (3)."),
        ({"desired_capacity": 6}, "desired_capacity: The target capacity (6) is greater than the cluster's max_size"),
        ({"desired_capacity": 1001, "max_size": -1}, "desired_capacity: The target capacity (1001) is greater"),
        ({"desired_capacity": -1}, "desired_capacity"),
        ({"plan_only": "yes"}, "plan_only. Must be a valid boolean: true or false, not a text or a number."),
        ({"timeout": -1}, "timeout: must be a whole number of seconds"),
        ({"timeout": 2**31}, "timeout: must be a whole number of seconds"),
        ({"metadata": []}, "metadata"),
        ({"status": "ACTIVE"}, "Cannot set read only field."),
        ({"foo": 1}, "Unknown attribute for argument cluster: foo"),
    ],
)
def test_invalid_cluster_is_refused_and_not_created(api: Caller, changes: dict[str, Any], words: str) -> None:
    answer = api.post("/clusters", WEB | changes)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert not Cluster.objects.exists()
    assert not ActionPlan.objects.exists()


def test_scale_out_above_max_size_is_refused_by_the_request(api: Caller) -> None:
    cluster = make_cluster(size=2, max_size=3)
    answer = api.post(f"/clusters/{cluster.uuid}/scale_out", {"count": 2})
    words = "The target capacity (4) is greater than the cluster's max_size (3)."
    assert (answer.status_code, fault(answer)) == (409, words)
    assert not ActionPlan.objects.exists()


def test_cluster_operation_is_refused_while_another_is_pending_or_running(api: Caller) -> None:
    first = action_of(api.post("/clusters", WEB))
    answer = api.post("/clusters/web/scale_out")
    words = (
        f"The CLUSTER_SCALE_OUT action for target {first.target} conflicts with the following action(s): "
        f"{first.uuid}. Wait for action plan {first.action_plan.uuid} to end, or cancel it."
    )
    assert (answer.status_code, fault(answer)) == (409, words)


def test_cluster_operation_is_refused_while_an_action_on_a_member_is_pending(api: Caller) -> None:
    cluster = make_cluster(size=1)
    check = api.post(f"/nodes/{Node.objects.get().uuid}/check").json()["action"]
    answer = api.post(f"/clusters/{cluster.uuid}/scale_out")
    assert (answer.status_code, check in fault(answer)) == (409, True)


def test_node_operation_is_refused_while_an_action_on_its_cluster_is_pending(api: Caller) -> None:
    cluster = make_cluster(size=1)
    scaling = api.post(f"/clusters/{cluster.uuid}/scale_out").json()["action"]
    answer = api.post(f"/nodes/{Node.objects.get().uuid}/check")
    assert (answer.status_code, scaling in fault(answer)) == (409, True)


def test_cluster_with_nodes_is_not_deleted_without_force(api: Caller) -> None:
    cluster = make_cluster(size=2)
    answer = api.delete(f"/clusters/{cluster.uuid}")
    words = f"Cluster {cluster.uuid} has 2 nodes: they are deleted with it if that is forced."
    assert (answer.status_code, fault(answer)) == (409, words)


RESIZES: list[tuple[dict[str, Any], str]] = [
    ({}, "adjustment_type: is required unless min_size or max_size is given."),
    ({"number": 1}, "adjustment_type: is required with number."),
    ({"adjustment_type": "EXACT_CAPACITY"}, "number: is required with adjustment_type."),
    ({"adjustment_type": "SOMEHOW", "number": 1}, "adjustment_type"),
    ({"adjustment_type": "EXACT_CAPACITY", "number": -1}, "number: must not be below 0."),
    ({"adjustment_type": "EXACT_CAPACITY", "number": 1.5}, "number: must be a whole number of nodes."),
    ({"adjustment_type": "CHANGE_IN_CAPACITY", "number": 0}, "number: must not be 0."),
    ({"adjustment_type": "CHANGE_IN_CAPACITY", "number": -3}, "number: the target capacity (-1) is below 0."),
    ({"adjustment_type": "CHANGE_IN_CAPACITY", "number": 9}, "number: The target capacity (11) is greater"),
    ({"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 0}, "number: must not be 0."),
    ({"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 10000}, "number: must be a percentage from -1000 to 1000."),
    ({"adjustment_type": "CHANGE_IN_CAPACITY", "number": 1, "min_step": 2}, "min_step: is for CHANGE_IN_PERCENTAGE"),
    ({"min_size": 6}, "min_size: 6 is above the max_size 5."),
    ({"min_size": 3}, "min_size: The target capacity (2) is less than the cluster's min_size (3)."),
    ({"max_size": 1}, "max_size: The target capacity (2) is greater than the cluster's max_size (1)."),
]


@pytest.mark.parametrize(("body", "words"), RESIZES, ids=range(len(RESIZES)))
def test_invalid_resize_is_refused(api: Caller, body: dict[str, Any], words: str) -> None:
    cluster = make_cluster(size=2, max_size=5)
    answer = api.post(f"/clusters/{cluster.uuid}/resize", body)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert not ActionPlan.objects.exists()


def test_nodes_that_cannot_join_are_refused_with_their_uuid(api: Caller) -> None:
    cluster, other = make_cluster(), make_cluster("other", size=1)
    owned, broken = Node.objects.get(), make_member(status="ERROR")
    path = f"/clusters/{cluster.uuid}/add_nodes"
    refusals = {
        f"nodes: node {owned.uuid} is already owned by cluster {other.uuid}.": (409, [owned.uuid]),
        f"nodes: node {broken.uuid} is ERROR; only ACTIVE nodes join a cluster.": (409, [broken.uuid]),
        f"nodes: there is no node {cluster.uuid}.": (400, [cluster.uuid]),
        f"nodes: node {owned.uuid} is given 2 times.": (400, [owned.uuid, owned.uuid]),
        "nodes: must name at least one node.": (400, []),
    }
    for words, (status, uuids) in refusals.items():
        answer = api.post(path, {"nodes": [str(uuid) for uuid in uuids]})
        assert (answer.status_code, fault(answer)) == (status, words)
    assert api.post(path, {"nodes": ["web-1"]}).status_code == 400


def test_nodes_of_other_clusters_cannot_leave_the_cluster(api: Caller) -> None:
    cluster, _ = make_cluster(), make_cluster("other", size=1)
    owned = Node.objects.get()
    answer = api.post(f"/clusters/{cluster.uuid}/del_nodes", {"nodes": [str(owned.uuid)]})
    words = f"nodes: node {owned.uuid} is not a member of cluster {cluster.uuid}."
    assert (answer.status_code, fault(answer)) == (409, words)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"op": "replace", "path": "/name", "value": ""}, "name"),
        ({"op": "replace", "path": "/name", "value": 5}, "name: must be a text."),
        ({"op": "replace", "path": "/timeout", "value": "soon"}, "timeout: must be a whole number"),
        ({"op": "replace", "path": "/profile", "value": "nope"}, "profile: there is no profile nope."),
        ({"op": "replace", "path": "/profile", "value": None}, "profile: must be a text."),
        ({"op": "replace", "path": "/desired_capacity", "value": 3}, "is an internal attribute"),
        ({"op": "replace", "path": "/min_size", "value": 3}, "is an internal attribute"),
        ({"op": "remove", "path": "/name"}, "is a mandatory attribute"),
        ({"op": "replace", "path": "/name", "value": "a cluster"}, "It changes nothing."),
    ],
)
def test_invalid_patch_is_refused(api: Caller, step: dict[str, Any], words: str) -> None:
    cluster = make_cluster("a cluster")
    answer = api.patch(f"/clusters/{cluster.uuid}", [step])
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)


# Policies


def test_policies_of_a_cluster_are_listed_by_priority(api: Caller) -> None:
    cluster = make_cluster("web")
    for name, priority in (("late", 300), ("early", 100)):
        PolicyBinding.objects.create(cluster=cluster, policy=make_policy(name, f"type of {name}"), priority=priority)
    shown = api.get("/clusters/web/policies").json()["cluster_policies"]
    assert [(row["policy_name"], row["priority"], row["enabled"]) for row in shown] == [
        ("early", 100, True),
        ("late", 300, True),
    ]
    assert api.get("/clusters/web").json()["policies"] == [row["policy_uuid"] for row in shown]
    assert api.get("/clusters/web/policies/early").json() == shown[0]


@pytest.mark.parametrize("path", ["/clusters/nope/policies", "/clusters/web/policies/nope"])
def test_policy_that_is_not_attached_to_the_cluster_returns_404(api: Caller, path: str) -> None:
    make_cluster("web")
    make_policy("nope")
    assert api.get(path).status_code == 404


def test_attaching_a_second_policy_of_the_same_type_is_refused(api: Caller) -> None:
    cluster, policy = make_cluster("web"), make_policy("small first", "a type")
    PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=1)
    answer = api.post("/clusters/web/policies", {"policy": "small first"})
    words = f"policy: policy {policy.uuid} is attached to cluster {cluster.uuid} already."
    assert (answer.status_code, fault(answer)) == (409, words)
    make_policy("large first", "a type")
    answer = api.post("/clusters/web/policies", {"policy": "large first"})
    assert (answer.status_code, fault(answer)) == (
        409,
        f"policy: the cluster has policy {policy.uuid} of type a type already.",
    )


def test_attaching_an_unknown_policy_is_refused(api: Caller) -> None:
    make_cluster("web")
    answer = api.post("/clusters/web/policies", {"policy": "nope"})
    assert (answer.status_code, fault(answer)) == (400, "policy: there is no policy nope.")


# Permissions

OPERATIONS = [
    ("POST", "/clusters", WEB),
    ("PATCH", "/clusters/web", [{"op": "replace", "path": "/name", "value": "db"}]),
    ("DELETE", "/clusters/web", None),
    ("POST", "/clusters/web/scale_out", {}),
    ("POST", "/clusters/web/actions", {"check": {}}),
    ("POST", "/clusters/web/policies", {"policy": "small first"}),
    ("PATCH", "/clusters/web/policies/small first", [{"op": "replace", "path": "/enabled", "value": False}]),
    ("DELETE", "/clusters/web/policies/small first", None),
]


@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS, ids=range(len(OPERATIONS)))
def test_readers_see_clusters_but_cannot_change_them(
    api: Caller, reader: User, method: str, path: str, body: Any
) -> None:
    PolicyBinding.objects.create(cluster=make_cluster("web"), policy=make_policy("small first"), priority=1)
    reading = Caller(reader, "1.12")
    assert reading.get("/clusters/web/policies/small first").status_code == 200
    assert reading.call(method, path, body).status_code == 403
    assert not ActionPlan.objects.exists()


def test_clusters_are_refused_without_permissions(api: Caller, stranger: User) -> None:
    make_cluster("web")
    asking = Caller(stranger, "1.12")
    for path in ("/clusters", "/clusters/web", "/clusters/web/policies"):
        assert asking.get(path).status_code == 403


def test_cluster_operation_without_the_start_permission_requires_plan_only(api: Caller, stranger: User) -> None:
    make_cluster("web")
    stranger.user_permissions.set(Permission.objects.filter(codename="operate_cluster"))
    asking = Caller(User.objects.get(pk=stranger.pk), "1.12")
    assert asking.post("/clusters/web/scale_out").status_code == 403
    assert action_of(asking.post("/clusters/web/scale_out", {"plan_only": True})).action_plan.state == "RECOMMENDED"


# Lists


@pytest.mark.parametrize("path", ["/clusters", "/clusters/detail", "/clusters/web", "/clusters/web/policies"])
def test_clusters_are_not_acceptable_before_microversion_1_12(cloud_admin: User, path: str) -> None:
    assert Caller(cloud_admin, "1.11").get(path).status_code == 406


def names(api: Caller, query: str) -> list[str]:
    return [row["name"] for row in api.get(f"/clusters?{query}").json()["clusters"]]


def test_cluster_list_is_sorted_and_paginated(api: Caller) -> None:
    for name in ("c", "a", "b"):
        make_cluster(name)
    first = api.get("/clusters?sort_key=name&limit=2").json()
    assert [row["name"] for row in first["clusters"]] == ["a", "b"]
    second = api.get(first["next"].removeprefix("http://testserver/v1")).json()
    assert [row["name"] for row in second["clusters"]] == ["c"]
    assert "nodes" not in first["clusters"][0]


def test_cluster_list_is_filtered(api: Caller) -> None:
    make_cluster("web")
    make_cluster("db", status="ERROR", profile=make_profile("large"))
    assert names(api, "name=db") == ["db"]
    assert names(api, "status=ERROR") == ["db"]
    assert names(api, "status=ERROR&status=ACTIVE&sort_key=name") == ["db", "web"]
    assert names(api, "profile=large") == ["db"]


@pytest.mark.parametrize("query", ["status=FINE", "foo=1", "sort_key=timeout"])
def test_invalid_query_of_the_cluster_list_is_refused(api: Caller, query: str) -> None:
    assert api.get(f"/clusters?{query}").status_code == 400


def test_ambiguous_cluster_name_is_refused(api: Caller) -> None:
    make_cluster("web")
    make_cluster("web")
    answer = api.get("/clusters/web")
    words = "Multiple results found matching the query criteria 'web'. Please be more specific."
    assert (answer.status_code, fault(answer)) == (400, words)


@pytest.mark.parametrize("path", ["", "/scale_out", "/actions", "/policies"])
def test_unknown_cluster_returns_404(api: Caller, path: str) -> None:
    method = "POST" if path else "GET"
    assert (
        api.call(method, f"/clusters/{uuid4()}{path}", {"check": {}} if path == "/actions" else None).status_code
        == 404
    )


@pytest.mark.parametrize("count", [10, 1000])
def test_cluster_list_query_count_does_not_depend_on_the_number_of_clusters(
    api: Caller, count: int, django_assert_num_queries: Any
) -> None:
    profile = make_profile("other")
    Cluster.objects.bulk_create(Cluster(name=str(number), profile=profile) for number in range(count))
    api.get("/goals")
    with django_assert_num_queries(3):  # the clusters, their nodes, their policies
        assert len(api.get("/clusters/detail?limit=1000").json()["clusters"]) == count


@pytest.mark.parametrize("count", [10, 1000])
def test_node_list_of_a_cluster_uses_one_query(api: Caller, count: int, django_assert_num_queries: Any) -> None:
    cluster = make_cluster("web")
    Node.objects.bulk_create(
        Node(name=str(number), profile=cluster.profile, cluster=cluster, index=number) for number in range(count)
    )
    api.get("/goals")
    with django_assert_num_queries(1):
        assert len(api.get("/nodes/detail?cluster=web&limit=1000").json()["nodes"]) == count


@pytest.mark.parametrize("operation", ["scale_out", "scale_in"])
def test_scaling_is_refused_before_the_cluster_is_created(api: Caller, operation: str) -> None:
    cluster = make_cluster(status="INIT", desired_capacity=1)
    answer = api.post(f"/clusters/{cluster.uuid}/{operation}", {})
    assert (answer.status_code, "has not been created yet" in fault(answer)) == (409, True)
    assert not Action.objects.exists()


@pytest.mark.parametrize("query", ["name=web", "name=WEB", "name=none&name=Web"])
def test_name_filter_of_clusters_ignores_case(api: Caller, query: str) -> None:
    make_cluster("Web")
    make_cluster("web 2")
    assert [row["name"] for row in api.get(f"/clusters?{query}").json()["clusters"]] == ["Web"]


def test_name_filter_of_nodes_ignores_case(api: Caller) -> None:
    make_member("Web-1")
    assert [row["name"] for row in api.get("/nodes?name=web-1").json()["nodes"]] == ["Web-1"]


@pytest.mark.parametrize(("priority", "status"), [(1000, 202), (1001, 400), (-1, 400)])
def test_policy_priority_bounds_are_the_same_for_attaching_and_updating(
    api: Caller, priority: int, status: int
) -> None:
    policy = make_policy("grow", "senlin.policy.scaling-1.0", spec={"event": "CLUSTER_SCALE_OUT"})
    PolicyBinding.objects.create(cluster=make_cluster("web"), policy=policy, priority=1)
    make_cluster("shop")
    patch = [{"op": "replace", "path": "/priority", "value": priority}]
    for answer in (
        api.post("/clusters/shop/policies", {"policy": "grow", "priority": priority}),
        api.patch("/clusters/web/policies/grow", patch),
    ):
        assert answer.status_code == status, answer.content
        if status == 400:
            assert "priority" in fault(answer)


def test_cluster_is_found_by_a_prefix_of_its_uuid(api: Caller) -> None:
    cluster = make_cluster("shop")
    assert api.get(f"/clusters/{str(cluster.uuid)[:8]}").json()["uuid"] == str(cluster.uuid)


@pytest.mark.parametrize("name", ["min_size", "max_size", "desired_capacity"])
def test_patch_of_a_cluster_size_is_refused_with_a_reference_to_resize(api: Caller, name: str) -> None:
    make_cluster("shop")
    answer = api.patch("/clusters/shop", [{"op": "replace", "path": f"/{name}", "value": 3}])
    words = f"'/{name}' is an internal attribute and can not be updated: POST /v1/clusters/{{id}}/resize changes it."
    assert (answer.status_code, fault(answer)) == (400, words)
