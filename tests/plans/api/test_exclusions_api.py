"""``/v1/exclusions``: creating, showing, updating, deleting and trying exclusions."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from actions.models.exclusions import Exclusion
from cluster.models import Server
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.actions.exclusions.builders import make_exclusion
from tests.actions.exclusions.test_exclusions import OFFICE_HOURS, nop
from tests.api import Caller, fault
from tests.builders import (
    action,
    make_aggregate,
    make_cluster,
    make_flavor,
    make_member,
    make_node,
    make_plan,
    make_server,
)
from tests.plans.applier.test_commits import counted
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
NOBODYS = "4a0cd5e7-7d75-4a1c-8f2a-111111111111"
NEVER = "2999-01-01T12:00:00+00:00"


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.13")


def replace(name: str, value: Any) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": f"/{name}", "value": value}]


def test_exclusion_is_created_with_all_its_fields(api: Caller) -> None:
    node = make_node("compute1")
    server = make_server("db", node)
    make_aggregate(7, "gpu", node)
    body = {
        "name": "never db",
        "reason": "licence is bound to the host",
        "owner": "databases",
        "action_types": ["resize", "migrate", "migrate"],
        "targets": {"servers": ["db"], "aggregates": ["gpu"]},
        "window": {**OFFICE_HOURS, "weekdays": ["monday", "friday"]},
        "zone": "Europe/Berlin",
        "expires_at": "2999-01-01T13:00:00",
    }
    answer = api.post("/exclusions", body)
    assert answer.status_code == 201
    shown = answer.json()
    assert shown["uuid"] in answer.headers["Location"]
    assert (shown["owner"], shown["action_types"]) == ("databases", ["migrate", "resize"])
    assert shown["targets"] == {"servers": [str(server.uuid)], "aggregates": ["7"]}
    assert shown["window"]["weekdays"] == ["monday", "friday"]
    assert shown["expires_at"] == NEVER


def test_exclusion_defaults_to_all_actions_at_any_time_and_the_caller_as_owner(api: Caller) -> None:
    shown = api.post("/exclusions", {"name": "freeze"}).json()
    assert (shown["owner"], shown["reason"], shown["is_in_force"]) == ("alice", "", True)
    assert (shown["action_types"], shown["targets"], shown["window"], shown["expires_at"]) == ([], {}, None, None)


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("name", "", "name"),
        ("name", "x" * 101, "name"),
        ("name", "try", "name: must not contain a slash"),
        ("name", "a/b", "name: must not contain a slash"),
        ("name", "8b3a1d69-0000-4000-8000-000000000000", "name: must not be a UUID"),
        ("reason", "x" * 256, "reason"),
        ("reason", 5000 * ["x"], "reason"),
        ("action_types", ["fly"], "action_types: there is no action type fly; there are "),
        ("targets", {"servers": ["nobody"]}, "targets.servers: there is no server nobody."),
        ("targets", {"servers": ["twin"]}, "targets.servers: several are called twin: name its UUID."),
        ("targets", {"compute_nodes": ["web"]}, "targets.compute_nodes: there is no compute node web."),
        ("targets", {"aggregates": ["99999999999999999999"]}, "targets.aggregates: there is no aggregate 9"),
        ("targets", {"availability_zones": ["moon"]}, "there is no availability zone moon."),
        ("targets", {"clusters": ["web"]}, "targets.clusters: there is no cluster web."),
        ("targets", {"projects": ["x\0"]}, "projects"),
        ("targets", {"planets": ["x"]}, "planets"),
        ("targets", [], "targets: must be an object of lists"),
        ("targets", {"servers": ""}, "servers"),
        ("targets", {"servers": "db"}, "servers"),
        ("targets", {"servers": []}, "targets.servers: must not be empty"),
        ("window", {"opens": "08:00"}, "window.closes: missing."),
        ("window", {"opens": "08:00", "closes": "08:00"}, "window.closes: must differ from opens."),
        ("window", {"opens": "25:00", "closes": "08:00"}, "window.opens: must be a time such as 22:00"),
        ("window", {**OFFICE_HOURS, "weekdays": ["someday"]}, "window.weekdays: must be a list of one or more of"),
        ("window", {**OFFICE_HOURS, "last_day": "2020-01-01"}, "window.last_day: the window opens on no day"),
        ("zone", "Mars/Olympus", "zone: there is no time zone 'Mars/Olympus'."),
        ("expires_at", "2020-01-01T00:00:00Z", "expires_at: must not be in the past"),
        ("expires_at", "tomorrow", "expires_at: must be a time in ISO 8601"),
        ("enabled", "perhaps", "enabled"),
        ("since", "now", "Unknown attribute for argument exclusion: since"),
        ("uuid", "x", "Cannot set read only field"),
    ],
)
def test_invalid_exclusion_is_refused_with_the_field_and_the_reason(
    api: Caller, attribute: str, value: Any, words: str
) -> None:
    make_server("twin"), make_server("twin")
    answer = api.post("/exclusions", {"name": "x", attribute: value})
    assert answer.status_code == 400
    assert words in fault(answer)
    assert not Exclusion.objects.exists()


def test_exclusion_that_expires_before_its_window_opens_is_refused(api: Caller) -> None:
    window = {**OFFICE_HOURS, "first_day": "2900-01-01"}
    answer = api.post("/exclusions", {"name": "x", "window": window, "expires_at": "2899-01-01T00:00:00"})
    assert fault(answer).startswith("expires_at: the exclusion would expire before its window opens")


def test_create_query_count_does_not_depend_on_the_number_of_targets(api: Caller) -> None:
    node = make_node("compute1")
    make_aggregate(7, "gpu", node), make_cluster("web")
    one = make_server("server", node)
    size = {"vcpus": 1, "memory": 512, "disk": 1}
    Server.objects.bulk_create(Server(name=f"server-{number}", **size) for number in range(999))
    many = [str(one.uuid), *(f"server-{number}" for number in range(999))]
    others = {"compute_nodes": ["compute1"], "aggregates": ["gpu"], "clusters": ["web"]}
    api.post("/exclusions", {"name": "the first"})  # The caller's permissions are read once.
    taken = []
    for servers in (["server"], many):
        with counted() as statements:
            named = {"name": f"never {len(servers)}", "targets": {"servers": servers, **others}}
            made = api.post("/exclusions", named)
        assert len(made.json()["targets"]["servers"]) == len(servers)
        taken.append(len(statements))
    assert taken[0] == taken[1]


def test_aggregate_is_found_by_its_name_before_its_id(api: Caller) -> None:
    make_aggregate(7, "gpu"), make_aggregate(8, "7"), make_aggregate(9, "8")
    made = api.post("/exclusions", {"name": "x", "targets": {"aggregates": ["9", "7"]}})
    assert made.json()["targets"] == {"aggregates": ["8", "9"]}


def test_exclusion_name_is_unique_regardless_of_case(api: Caller) -> None:
    make_exclusion("freeze")
    answer = api.post("/exclusions", {"name": "FREEZE"})
    assert (answer.status_code, fault(answer)) == (409, "name: another exclusion is called FREEZE.")


def test_patch_keeps_targets_that_it_does_not_name_even_if_they_are_deleted(api: Caller) -> None:
    server = make_server("db")
    make_exclusion("freeze", targets={"servers": ["db"]}, expires_at=NEVER)
    Server.objects.filter(pk=server.pk).soft_delete()
    answer = api.patch("/exclusions/freeze", [*replace("name", "thaw"), {"op": "remove", "path": "/expires_at"}])
    shown = answer.json()
    assert (shown["name"], shown["targets"], shown["expires_at"]) == ("thaw", {"servers": [str(server.uuid)]}, None)


def test_exclusion_is_disabled_and_enabled_with_a_history_entry(api: Caller) -> None:
    assert api.post("/exclusions", {"name": "freeze"}).json()["enabled"] is True
    shown = api.patch("/exclusions/freeze", replace("enabled", False)).json()
    assert (shown["enabled"], shown["is_in_force"]) == (False, False)
    assert HistoryEntry.objects.latest("pk").details == {"enabled": {"from": True, "to": False}}
    assert api.patch("/exclusions/freeze", replace("enabled", True)).json()["is_in_force"] is True


@pytest.mark.parametrize("step", [{"op": "replace", "value": "no"}, {"op": "remove"}])
def test_enabled_must_be_true_or_false(api: Caller, step: dict[str, Any]) -> None:
    make_exclusion("freeze")
    answer = api.patch("/exclusions/freeze", [{"path": "/enabled", **step}])
    assert (answer.status_code, "enabled" in fault(answer)) == (400, True)


def test_exclusion_list_is_filtered_by_enabled(api: Caller) -> None:
    make_exclusion("on"), make_exclusion("off", enabled=False)
    for value, names in (("true", ["on"]), ("False", ["off"])):
        assert [one["name"] for one in api.get(f"/exclusions?enabled={value}").json()["exclusions"]] == names
    assert fault(api.get("/exclusions?enabled=perhaps")) == "enabled: must be true or false, not perhaps."


def test_deleted_exclusion_returns_404_and_its_name_can_be_reused(api: Caller) -> None:
    make_exclusion("freeze")
    assert api.delete("/exclusions/freeze").status_code == 204
    assert api.get("/exclusions/freeze").status_code == 404
    assert api.patch("/exclusions/freeze", replace("name", "x")).status_code == 404
    assert api.post("/exclusions", {"name": "freeze"}).status_code == 201


def test_history_records_changes_of_an_exclusion_and_their_user(api: Caller) -> None:
    uuid = api.post("/exclusions", {"name": "freeze", "reason": "audit week"}).json()["uuid"]
    api.patch("/exclusions/freeze", replace("reason", "two audits"))
    api.patch("/exclusions/freeze", replace("reason", "two audits"))
    api.delete("/exclusions/freeze")
    entries = HistoryEntry.objects.filter(object_uuid=uuid).order_by("pk")
    assert list(entries.values_list("deed", "user", "object_name")) == [
        ("exclusion.create", "alice", "freeze"),
        ("exclusion.update", "alice", "freeze"),
        ("exclusion.delete", "alice", "freeze"),
    ]
    assert entries[1].details == {"reason": {"from": "audit week", "to": "two audits"}}


def test_readers_see_and_try_exclusions_but_cannot_change_them(reader: User, stranger: User) -> None:
    rule, plan = make_exclusion("freeze"), make_plan({"a": []})
    looking = Caller(reader, "1.13")
    assert looking.get("/exclusions").json()["exclusions"][0]["uuid"] == str(rule.uuid)
    assert looking.post("/exclusions/freeze/try", {"action_plan": str(plan.uuid)}).status_code == 200
    assert looking.post("/exclusions", {"name": "x"}).status_code == 403
    assert looking.patch("/exclusions/freeze", replace("name", "x")).status_code == 403
    assert looking.delete("/exclusions/freeze").status_code == 403
    other = Caller(stranger, "1.13")
    assert other.get("/exclusions").status_code == 403
    assert other.post("/exclusions/freeze/try", {"action_plan": str(plan.uuid)}).status_code == 403


def test_exclusions_are_not_acceptable_before_microversion_1_13(cloud_admin: User) -> None:
    assert Caller(cloud_admin, "1.12").get("/exclusions").status_code == 406


def test_list_query_count_does_not_depend_on_the_number_of_exclusions(
    api: Caller, django_assert_max_num_queries: Any
) -> None:
    Exclusion.objects.bulk_create(Exclusion(name=f"rule {number}", owner="alice") for number in range(100))
    with django_assert_max_num_queries(3):
        assert len(api.get("/exclusions/detail").json()["exclusions"]) == 100


def test_action_shows_the_exclusion_that_skipped_it_from_microversion_1_13_on(api: Caller, cloud_admin: User) -> None:
    rule = make_exclusion(action_types=["nop"])
    a = action(propose([nop("a")]), "a")
    assert api.get(f"/actions/{a.uuid}").json()["exclusion_uuid"] == str(rule.uuid)
    assert "exclusion_uuid" not in Caller(cloud_admin, "1.12").get(f"/actions/{a.uuid}").json()


# Trials


@pytest.fixture
def plan() -> ActionPlan:
    """Two migrations and a nop."""
    node = make_node("compute1")
    plan = make_plan({"a": []})
    for name in ("db", "web"):
        named = {"resource_id": str(make_server(name, node).uuid), "migration_type": "live", "source_node": "compute1"}
        plan.actions.create(action_type="migrate", input_parameters=named)
    return plan


def try_out(api: Caller, plan: ActionPlan, rule: dict[str, Any], query: str = "", **body: Any) -> Any:
    wanted = {"action_plan": str(plan.uuid), "exclusion": {"name": "x", **rule}, **body}
    return api.post(f"/exclusions/try{query}", wanted)


def test_trial_of_an_unsaved_exclusion_lists_excluded_actions_with_the_reason(api: Caller, plan: ActionPlan) -> None:
    server = Server.objects.get(name="db")
    answer = try_out(api, plan, {"targets": {"servers": ["db"]}}).json()
    [row] = answer["actions"]
    assert (answer["total"], answer["excluded"], answer["is_in_force"]) == (3, 1, True)
    assert (row["action_type"], row["target"], row["why"]) == (
        "migrate",
        str(server.uuid),
        f"server db ({server.uuid})",
    )
    assert not Exclusion.objects.exists()
    assert not HistoryEntry.objects.exists()
    assert set(plan.actions.values_list("state", flat=True)) == {"PENDING"}


def test_trial_shows_whether_the_exclusion_is_in_force_at_a_time_and_when_next(api: Caller, plan: ActionPlan) -> None:
    rule = {"window": {**OFFICE_HOURS, "weekdays": ["monday"]}, "zone": "Europe/Berlin"}
    answer = try_out(api, plan, rule, at="2026-03-29T12:00:00").json()  # A Sunday.
    assert (answer["is_in_force"], answer["in_force_from"]) == (False, "2026-03-30T06:00:00+00:00")
    assert try_out(api, plan, rule, at="2026-03-30T12:00:00").json()["is_in_force"]


def test_trial_of_a_disabled_exclusion_lists_its_actions_and_is_not_in_force(api: Caller, plan: ActionPlan) -> None:
    answer = try_out(api, plan, {"enabled": False}).json()
    assert (answer["excluded"], answer["is_in_force"], answer["in_force_from"]) == (3, False, None)


def test_trial_is_paginated(api: Caller, plan: ActionPlan) -> None:
    first = try_out(api, plan, {}, "?limit=2").json()
    second = try_out(api, plan, {}, f"?{first['next'].partition('?')[2]}").json()
    assert [len(page["actions"]) for page in (first, second)] == [2, 1]
    assert "next" not in second


def test_saved_exclusion_is_tried_by_name(api: Caller, plan: ActionPlan) -> None:
    make_exclusion("freeze", action_types=["nop"])
    answer = api.post("/exclusions/freeze/try", {"action_plan": str(plan.uuid)})
    assert answer.json()["excluded"] == 1


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (
            {"action_plan": NOBODYS, "exclusion": {"name": "x"}},
            404,
            "could not be found",
        ),
        ({"action_plan": "PLAN", "exclusion": {"name": "x", "window": {}}}, 400, "window.opens: missing."),
        ({"action_plan": "PLAN", "exclusion": {"name": "x"}, "at": "noon"}, 400, "at: must be a time in ISO 8601"),
        ({"action_plan": "PLAN", "exclusion": {"name": "x", "colour": 1}}, 400, "Unknown attribute"),
        ({"action_plan": "PLAN", "exclusion": "x"}, 400, "exclusion"),
        ({"exclusion": {"name": "x"}}, 400, "action_plan"),
    ],
)
def test_invalid_trial_is_refused(
    api: Caller, plan: ActionPlan, body: dict[str, Any], status: int, words: str
) -> None:
    named = {name: str(plan.uuid) if value == "PLAN" else value for name, value in body.items()}
    answer = api.post("/exclusions/try", named)
    assert answer.status_code == status
    assert words in fault(answer)


# Operations that an exclusion refuses


def test_excluded_operation_is_refused_and_creates_no_objects(api: Caller) -> None:
    make_flavor("small")
    make_exclusion(reason="audit week")
    refusal = "cannot be done now: it is excluded by 'frozen'. Reason: audit week"
    created = api.post("/servers", {"server": {"name": "web", "flavorRef": "small"}})
    assert (created.status_code, fault(created)) == (409, f"build {refusal}")
    member = make_member("one", status="ACTIVE", server=make_server(node=make_node()))
    checked = api.post(f"/nodes/{member.uuid}/check")
    assert (checked.status_code, fault(checked)) == (409, f"NODE_CHECK {refusal}")
    assert not Server.objects.filter(name="web").exists()
    assert not ActionPlan.objects.exists()


def test_plan_only_operation_shows_excluded_actions_as_skipped(api: Caller) -> None:
    make_exclusion()
    member = make_member("one", status="ACTIVE", server=make_server(node=make_node()))
    answer = api.post(f"/nodes/{member.uuid}/recover", {"plan_only": True})
    assert answer.status_code == 202
    assert set(ActionPlan.objects.get().actions.values_list("state", flat=True)) == {"SKIPPED"}


def test_deletion_of_a_server_without_a_node_is_refused_by_an_exclusion(api: Caller) -> None:
    server = make_server("db", node=None, state="pending")
    make_exclusion("never db", targets={"servers": ["db"]})
    answer = api.delete(f"/servers/{server.uuid}")
    assert (answer.status_code, "excluded by 'never db'" in fault(answer)) == (409, True)
    assert Server.objects.get().deleted_at is None
