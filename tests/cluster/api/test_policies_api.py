"""Policies and their types through the API."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from cluster.models import Policy
from tests.api import Caller, fault
from tests.builders import make_binding, make_cluster, make_policy
from watcher_site import plugins

pytestmark = pytest.mark.django_db

SCALING = "senlin.policy.scaling-1.0"
OUT = {"event": "CLUSTER_SCALE_OUT", "adjustment": {"number": 2}}
NEW = {"name": "grow", "type": SCALING, "spec": OUT}


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


def replace(path: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": path, "value": value}]


def test_policy_is_created_shown_and_deleted(api: Caller) -> None:
    made = api.post("/policies", NEW)
    uuid = made.json()["uuid"]
    assert (made.status_code, made["Location"]) == (201, f"http://testserver/v1/policies/{uuid}")
    shown = api.get("/policies/GROW").json()
    assert shown == made.json()
    assert (shown["name"], shown["type"], shown["spec"]) == ("grow", SCALING, OUT)
    assert api.delete(f"/policies/{uuid}").status_code == 204
    assert api.get(f"/policies/{uuid}").status_code == 404


@pytest.mark.parametrize("path", ["/policies", "/policies/detail", "/policies/grow", "/policy_types"])
def test_policies_are_not_available_before_1_12(cloud_admin: User, path: str) -> None:
    make_policy("grow")
    assert Caller(cloud_admin, "1.11").get(path).status_code == 406


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": None}, "name. Value: 'None'. Mandatory field missing."),
        ({"name": " "}, "name"),
        ({"type": None}, "type. Value: 'None'. Mandatory field missing."),
        ({"type": "grow"}, "type: there is no policy type grow; there are senlin.policy."),
        ({"spec": []}, "spec: [] is not of type 'object'"),
        ({"spec": {}}, "spec: 'event' is a required property"),
        ({"spec": {"event": "CLUSTER_RESIZE"}}, "spec: event: 'CLUSTER_RESIZE' is not one of"),
        ({"spec": {**OUT, "pause": 1}}, "spec: Additional properties are not allowed ('pause'"),
        ({"spec": {**OUT, "adjustment": {"number": 0}}}, "spec: adjustment.number: 0 is less than the minimum of 1"),
        ({"spec": {**OUT, "adjustment": {"number": 1.5}}}, "spec: adjustment.number: must be a whole number"),
        ({"spec": {**OUT, "adjustment": {"number": 1001}}}, "spec: adjustment.number: must not be above 1000 nodes."),
        (
            {"spec": {**OUT, "adjustment": {"type": "CHANGE_IN_PERCENTAGE", "number": 10000}}},
            "spec: adjustment.number: must not be above 1000 percent.",
        ),
        ({"spec": {**OUT, "adjustment": {"cooldown": 10**12}}}, "spec: adjustment.cooldown: 1000000000000 is greater"),
        (
            {"type": "senlin.policy.batch-1.0", "spec": {"max_batch_size": 0}},
            "spec: max_batch_size: must not be 0.",
        ),
        (
            {"type": "senlin.policy.health-1.2", "spec": {"recovery": {"operation": "PRAY"}}},
            "spec: recovery.operation: 'PRAY' is not one of",
        ),
        (
            {"type": "senlin.policy.deletion-1.1", "spec": {"criteria": "UGLIEST_FIRST"}},
            "spec: criteria: 'UGLIEST_FIRST' is not one of",
        ),
        (
            {"type": "senlin.policy.zone_placement-1.0", "spec": {"zones": [{"name": "a"}, {"name": "a"}]}},
            "spec: zones: a is given 2 times.",
        ),
        (
            {"type": "senlin.policy.zone_placement-1.0", "spec": {"zones": [{"name": "a", "weight": 0}]}},
            "spec: zones.0.weight: 0 is less than the minimum of 1",
        ),
        ({"type": "senlin.policy.affinity-1.0", "spec": {"availability_zone": ""}}, "spec: availability_zone: ''"),
        ({"foo": 1}, "Unknown attribute for argument policy: foo"),
        ({"uuid": "x"}, "Cannot set read only field."),
    ],
)
def test_invalid_policy_is_refused_and_not_created(api: Caller, changes: dict[str, Any], words: str) -> None:
    answer = api.post("/policies", NEW | changes)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert not Policy.objects.exists()


def test_duplicate_policy_name_is_refused(api: Caller) -> None:
    make_policy("grow")
    answer = api.post("/policies", NEW | {"name": "Grow"})
    assert (answer.status_code, fault(answer)) == (409, "name: another policy is called Grow.")


def test_validation_returns_defaults_without_creating_a_policy(api: Caller) -> None:
    answer = api.post("/policies/validate", {"type": SCALING, "spec": OUT})
    assert answer.status_code == 200
    assert answer.json()["spec"]["adjustment"] == {
        "type": "CHANGE_IN_CAPACITY",
        "number": 2,
        "min_step": 1,
        "best_effort": False,
        "cooldown": 0,
    }
    assert api.post("/policies/validate", {"type": SCALING, "spec": {}}).status_code == 400
    assert not Policy.objects.exists()


def test_policy_name_is_changed(api: Caller) -> None:
    policy = make_policy("grow")
    shown = api.patch(f"/policies/{policy.uuid}", replace("/name", "grow slowly")).json()
    assert shown["name"] == "grow slowly"
    assert shown["updated_at"]


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        (replace("/spec", OUT), 400),
        (replace("/spec/event", "CLUSTER_SCALE_IN"), 400),
        (replace("/type", "x"), 400),
        (replace("/name", ""), 400),
        (replace("/name", 7), 400),
        (replace("/name", "other"), 409),
        ([{"op": "remove", "path": "/name"}], 400),
    ],
)
def test_invalid_patch_changes_nothing(api: Caller, patch: Any, status: int) -> None:
    make_policy("other")
    policy = make_policy("grow", SCALING, spec=OUT)
    assert api.patch(f"/policies/{policy.uuid}", patch).status_code == status
    again = Policy.objects.get(pk=policy.pk)
    assert (again.name, again.spec, again.updated_at) == ("grow", OUT, None)


def test_policy_in_use_by_a_cluster_is_not_deleted(api: Caller) -> None:
    policy = make_binding(make_cluster(), "senlin.policy.batch-1.0").policy
    answer = api.delete(f"/policies/{policy.uuid}")
    assert (answer.status_code, fault(answer)) == (409, f"Policy {policy.uuid} is in use by 1 cluster.")
    assert Policy.objects.present().exists()


def test_policy_is_deleted_after_its_last_binding(api: Caller) -> None:
    binding = make_binding(make_cluster(), "senlin.policy.batch-1.0")
    type(binding).objects.filter(pk=binding.pk).soft_delete()
    assert api.delete(f"/policies/{binding.policy.uuid}").status_code == 204


def test_policy_list_is_paged(api: Caller) -> None:
    for name in ("c", "a", "b"):
        make_policy(name)
    first = api.get("/policies?sort_key=name&limit=2").json()
    assert [row["name"] for row in first["policies"]] == ["a", "b"]
    second = api.get(first["next"].removeprefix("http://testserver/v1")).json()
    assert [row["name"] for row in second["policies"]] == ["c"]
    assert "spec" not in first["policies"][0]


@pytest.mark.parametrize("query", ["name=GROW", f"type={SCALING}"])
def test_policy_list_is_filtered_by_name_and_type(api: Caller, query: str) -> None:
    make_policy("grow", SCALING)
    make_policy("update", "senlin.policy.batch-1.0")
    assert [row["name"] for row in api.get(f"/policies/detail?{query}").json()["policies"]] == ["grow"]


@pytest.mark.parametrize("count", [1, 10])
def test_policy_list_query_count_does_not_depend_on_the_number_of_rows(
    api: Caller, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        make_policy(str(number))
    api.get("/goals")
    with django_assert_num_queries(1):
        assert len(api.get("/policies/detail").json()["policies"]) == count


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/policies", NEW | {"name": "another"}),
        ("POST", "/policies/validate", {"type": SCALING, "spec": OUT}),
        ("PATCH", "/policies/grow", replace("/name", "x")),
        ("DELETE", "/policies/grow", None),
    ],
)
def test_reader_may_read_and_not_change_policies(reader: User, method: str, path: str, body: Any) -> None:
    make_policy("grow")
    reading = Caller(reader, "1.12")
    assert reading.get("/policies/grow").status_code == 200
    assert reading.call(method, path, body).status_code == 403
    assert Policy.objects.get().name == "grow"


@pytest.mark.parametrize("path", ["/policies", "/policy_types", f"/policy_types/{SCALING}"])
def test_user_without_permission_is_refused(stranger: User, path: str) -> None:
    assert Caller(stranger, "1.12").get(path).status_code == 403


def test_policy_type_list_includes_the_schemas(api: Caller) -> None:
    types = plugins.load("POLICY_TYPES")
    listed = api.get("/policy_types").json()["policy_types"]
    assert [(one["name"], one["schema"]) for one in listed] == [(one.name, one.schema) for one in types.values()]


def test_policy_type_is_shown_with_its_events(api: Caller) -> None:
    shown = api.get(f"/policy_types/{SCALING}").json()
    assert (shown["name"], shown["priority"], shown["is_single"]) == (SCALING, 100, False)
    assert shown["before"] == ["CLUSTER_SCALE_IN", "CLUSTER_SCALE_OUT"]
    assert api.get("/policy_types/nope").status_code == 404
