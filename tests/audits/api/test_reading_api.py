"""Goals, strategies, scoring engines and the data model in the API."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from cluster.models import StorageNode, VolumeType
from tests.api import Caller, fault
from tests.builders import make_audit, make_node, make_pool, make_server, make_volume, make_volume_type

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("collection", ["goals", "strategies", "scoring_engines"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_goals_strategies_and_scoring_engines_are_read_only(api: Caller, collection: str, method: str) -> None:
    answer = api.call(method, f"/{collection}")
    assert answer.status_code == 405
    assert fault(answer)
    assert "GET" in answer["Allow"]


def test_goal_is_found_by_name_in_any_case(api: Caller) -> None:
    assert api.get("/goals/DUMMY").json()["name"] == "dummy"


def test_efficacy_specification_is_a_list_with_schemas_as_text(api: Caller) -> None:
    specification = api.get("/goals/server_consolidation").json()["efficacy_specification"]
    assert {"name", "description", "unit", "schema"} == set(specification[0])
    assert isinstance(specification[0]["schema"], str)


def test_strategy_shows_its_parameters_and_no_times(api: Caller) -> None:
    shown = api.get("/strategies/detail").json()["strategies"][0]
    assert "parameters_spec" in shown
    assert "created_at" not in shown


def test_strategy_list_is_filtered_by_goal(api: Caller) -> None:
    listed = api.get("/strategies/?goal=cluster_maintaining").json()["strategies"]
    assert [row["name"] for row in listed] == ["host_maintenance"]


def test_strategy_state_shows_available_data_models(api: Caller) -> None:
    make_node()
    entries = api.get("/strategies/host_maintenance/state").json()
    assert [entry["type"] for entry in entries] == ["Datasource", "Metrics", "CDM", "Name"]
    assert entries[2]["state"] == [
        {"compute_model": "available"},
        {"storage_model": "not available"},
        {"baremetal_model": "not available"},
    ]


def test_strategy_state_shows_the_storage_model_available_if_a_pool_exists(api: Caller) -> None:
    make_pool()
    entries = api.get("/strategies/host_maintenance/state").json()
    assert entries[2]["state"][:2] == [{"compute_model": "not available"}, {"storage_model": "available"}]


@pytest.mark.parametrize(
    "path", ["/goals/nope", "/strategies/nope", "/strategies/nope/state", "/scoring_engines/nope"]
)
def test_unknown_object_is_404_with_its_name(api: Caller, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    assert "nope could not be found" in fault(answer)


@pytest.mark.parametrize("path", ["/goals/dummy/detail", "/foo", "/goals/dummy/x"])
def test_unknown_path_is_404(api: Caller, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    assert fault(answer)


@pytest.mark.parametrize("path", ["/scoring_engines/dummy_scorer", "/scoring_engines/detail"])
@pytest.mark.parametrize(
    ("version", "times"), [("1.0", set()), ("1.7", set()), ("1.8", {"created_at", "updated_at", "deleted_at"})]
)
def test_scoring_engine_shows_times_from_1_8_on(cloud_admin: User, path: str, version: str, times: set[str]) -> None:
    answer = Caller(cloud_admin, version).get(path).json()
    shown = answer["scoring_engines"][0] if "scoring_engines" in answer else answer
    assert shown.keys() == {"uuid", "name", "description", "metainfo", "links"} | times


@pytest.mark.parametrize("path", ["/goals/", "/goals/dummy/", "/goals/dummy.json", "/goals/detail/"])
def test_path_with_trailing_slash_or_json_suffix_is_accepted(api: Caller, path: str) -> None:
    assert api.get(path).status_code == 200


def test_path_without_the_version_prefix_is_served(api: Caller) -> None:
    assert api.client.get("/goals/dummy").json()["name"] == "dummy"


def test_compute_data_model_shows_each_server_on_its_node(api: Caller) -> None:
    node = make_node("compute1")
    make_node("compute2")
    make_server("web-1", node)
    rows = api.get("/data_model/").json()["context"]
    assert sorted((row["node_hostname"], row.get("server_name")) for row in rows) == [
        ("compute1", "web-1"),
        ("compute2", None),
    ]


def test_compute_data_model_of_an_audit_is_limited_to_its_scope(api: Caller) -> None:
    make_node("compute1")
    make_node("compute2")
    scope = [{"compute": [{"exclude": [{"compute_nodes": [{"name": "compute1"}]}]}]}]
    rows = api.get(f"/data_model/?audit_uuid={make_audit(scope=scope).uuid}").json()["context"]
    assert [row["node_hostname"] for row in rows] == ["compute2"]


def storage_rows(api: Caller, query: str = "") -> list[dict[str, Any]]:
    answer = api.get(f"/data_model/?data_model_type=storage{query}", **{"OpenStack-API-Version": "infra-optim 1.8"})
    rows: list[dict[str, Any]] = answer.json()["context"]
    return rows


@pytest.mark.parametrize("version", ["1.3", "1.7"])
@pytest.mark.parametrize("model", ["storage", "baremetal", "COMPUTE", ""])
def test_up_to_1_7_data_models_other_than_compute_are_404(cloud_admin: User, version: str, model: str) -> None:
    make_pool()
    answer = Caller(cloud_admin, version).get(f"/data_model?data_model_type={model}")
    assert (answer.status_code, fault(answer)) == (404, f"The {model} data model could not be found")


def test_storage_data_model_is_served_from_1_8_on(cloud_admin: User) -> None:
    make_pool()
    assert Caller(cloud_admin, "1.8").get("/data_model?data_model_type=storage").status_code == 200


def test_baremetal_data_model_is_404_at_the_latest_version(cloud_admin: User) -> None:
    answer = Caller(cloud_admin, "latest").get("/data_model?data_model_type=baremetal")
    assert (answer.status_code, fault(answer)) == (404, "The baremetal data model could not be found")


def test_storage_data_model_shows_each_volume_in_its_pool(api: Caller) -> None:
    pool = make_pool("a@lvm#one", volume_types=[make_volume_type("fast")])
    make_pool("a@lvm#two")
    StorageNode.objects.create(host="b@lvm")
    server = make_server("web-1", make_node())
    make_volume("data", pool, size=5, attached_to=[server], volume_type=VolumeType.objects.get())
    rows = storage_rows(api)
    assert [(row["node_host"], row.get("pool_name"), row.get("volume_name")) for row in rows] == [
        ("a@lvm", "a@lvm#one", "data"),
        ("a@lvm", "a@lvm#two", None),
        ("b@lvm", None, None),
    ]
    assert (rows[0]["node_volume_type"], rows[0]["pool_free_capacity_gb"], rows[0]["volume_host"]) == (
        ["fast"],
        95,
        "a@lvm#one",
    )
    assert (rows[0]["volume_volume_type"], rows[0]["volume_attachments"][0]["server_id"]) == ("fast", str(server.uuid))


def test_storage_data_model_of_an_audit_is_limited_to_its_scope(api: Caller) -> None:
    make_pool("a@lvm#one")
    make_pool("a@lvm#two")
    scope = [{"compute": []}, {"storage": [{"exclude": [{"storage_pools": [{"name": "a@lvm#one"}]}]}]}]
    rows = storage_rows(api, f"&audit_uuid={make_audit(scope=scope).uuid}")
    assert [row["pool_name"] for row in rows] == ["a@lvm#two"]


def test_data_model_of_a_scope_without_matches_is_empty(api: Caller) -> None:
    make_node()
    scope = [{"compute": [{"host_aggregates": [{"id": 9}]}]}]
    assert api.get(f"/data_model/?audit_uuid={make_audit(scope=scope).uuid}").json() == {"context": []}


@pytest.mark.parametrize(("version", "status"), [("1.2", 406), ("1.3", 200)])
def test_data_model_is_not_acceptable_before_1_3(cloud_admin: User, version: str, status: int) -> None:
    assert Caller(cloud_admin, version).get("/data_model").status_code == status


def test_extended_attributes_of_the_data_model_are_shown_from_1_6_on(cloud_admin: User) -> None:
    make_server("web-1", make_node())
    older = Caller(cloud_admin, "1.5").get("/data_model").json()["context"][0]
    newer = Caller(cloud_admin, "1.6").get("/data_model").json()["context"][0]
    assert newer.keys() - older.keys() == {"server_pinned_az", "server_flavor_extra_specs"}


@pytest.mark.parametrize(
    ("query", "status"),
    [("data_model_type=baremetal", 404), ("audit_uuid=nope", 400), ("foo=1", 400)],
)
def test_unknown_data_model_audit_or_argument_is_refused(api: Caller, query: str, status: int) -> None:
    answer = api.get(f"/data_model/?{query}")
    assert answer.status_code == status
    assert fault(answer)


@pytest.mark.parametrize("count", [2, 40])
def test_data_model_query_count_does_not_depend_on_the_number_of_servers(
    api: Caller, django_assert_num_queries: Any, count: int
) -> None:
    node = make_node()
    for number in range(count):
        make_server(f"web-{number}", node)
    with django_assert_num_queries(11):  # rights, and the whole cluster
        assert len(api.get("/data_model").json()["context"]) == count
