"""The form of a new audit: what it offers of the cloud, what it asks for, and what its fields become."""

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from audits.models import Audit, Goal, Strategy
from tests.builders import make_aggregate, make_node, make_pool, make_volume_type
from watcher_site.console.schema_fields import fields_for, parameters_of

BALANCING = {"goal": "workload_balancing", "strategy": "workload_stabilization"}


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def show(client: Client, **query: Any) -> str:
    return client.get(reverse("audits:create"), query).content.decode()


def redraw(client: Client, trigger: str, **query: Any) -> str:
    headers = {"HX-Request": "true", "HX-Source": f"select#id_{trigger}"}
    return client.post(reverse("audits:create"), query, headers=headers).content.decode()


def create(client: Client, goal: str, **fields: Any) -> str:
    return client.post(reverse("audits:create"), {"goal": goal, **fields}, follow=True).content.decode()


def options(text: str, field: str) -> list[str]:
    select = re.search(rf'<select name="{re.escape(field)}".*?</select>', text, re.DOTALL)
    return re.findall(r'value="(.*?)"', select[0]) if select else []


def boxes(text: str, field: str) -> list[str]:
    return re.findall(rf'name="{field}"\s+value="(.*?)"', text)


def test_a_goal_without_a_strategy_is_shown_and_cannot_be_chosen(administrator: Client) -> None:
    Goal.objects.create(name="world-peace", display_name="World peace")
    option = re.search(r'<option value="world-peace".*?</option>', show(administrator))
    assert option is not None
    assert "disabled" in option[0]
    assert "no strategy installed" in option[0]


def test_a_goal_without_a_strategy_is_refused_beside_its_field(administrator: Client) -> None:
    Goal.objects.create(name="world-peace", display_name="World peace")
    text = create(administrator, "world-peace")
    assert "No strategy is installed for this goal" in text
    assert "alert-danger" not in text


def test_a_goals_only_strategy_is_chosen_with_its_parameters(administrator: Client) -> None:
    text = show(administrator, goal="cluster_maintaining")
    assert options(text, "strategy") == ["host_maintenance"]
    assert 'name="parameter-maintenance_node"' in text


def test_a_goals_only_strategy_asks_for_what_it_needs_although_it_was_left_open(administrator: Client) -> None:
    text = create(administrator, "cluster_maintaining")
    assert 'id="error_1_id_parameter-maintenance_node"' in text
    assert "This field is required." in text
    assert not Audit.objects.exists()


def test_of_several_strategies_the_one_that_is_taken_is_named(administrator: Client) -> None:
    assert "Default: Basic offline consolidation" in show(administrator, goal="server_consolidation")


def test_a_choice_that_would_leave_a_needed_parameter_out_is_not_left_open(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_a_node = {"type": "object", "properties": {"node": {"type": "string"}}, "required": ["node"]}
    Strategy.objects.filter(name="basic", deleted_at=None).update(parameters_spec=needs_a_node)
    text = create(administrator, "server_consolidation")
    assert "This field is required." in text
    assert not Audit.objects.exists()


def test_nodes_are_offered_with_their_zone_and_what_keeps_them_from_taking_servers(administrator: Client) -> None:
    make_node("compute1", zone="hall-a")
    make_node("compute2", zone="hall-b", status="disabled", power_state="off")
    text = show(administrator, goal="cluster_maintaining")
    assert options(text, "parameter-maintenance_node") == ["", "compute1", "compute2"]
    assert "compute1 in hall-a<" in text
    assert "compute2 in hall-b, disabled, off<" in text


def test_an_empty_cloud_leaves_names_to_the_person(administrator: Client) -> None:
    assert re.search(
        r'<input type="text" name="parameter-maintenance_node"', show(administrator, goal="cluster_maintaining")
    )


def test_a_node_that_is_not_there_is_refused(administrator: Client) -> None:
    make_node("compute1")
    text = create(administrator, "cluster_maintaining", **{"parameter-maintenance_node": "compute9"})
    assert "compute9 is not one of the available choices" in text


def test_pools_and_volume_types_are_offered(administrator: Client) -> None:
    make_pool("a@lvm#one")
    make_volume_type("fast")
    text = show(administrator, goal="hardware_maintenance")
    assert options(text, "parameter-storage_pools.0.src_pool") == ["", "a@lvm#one"]
    assert options(text, "parameter-storage_pools.0.dst_type") == ["", "fast"]


def test_filling_in_a_row_brings_another(administrator: Client) -> None:
    make_node("compute1")
    cell = "parameter-compute_nodes.0.src_node"
    text = redraw(administrator, cell, goal="hardware_maintenance", **{cell: "compute1"})
    assert options(text, "parameter-compute_nodes.1.src_node") == ["", "compute1"]
    assert 'value="compute1" selected' in text


@pytest.mark.parametrize(("trigger", "period"), [("strategy", "3600"), ("audit_type", "7200")])
def test_another_strategy_begins_with_its_own_defaults(administrator: Client, trigger: str, period: str) -> None:
    query = {"goal": "server_consolidation", "strategy": "vm_workload_consolidation", "parameter-period": "7200"}
    text = redraw(administrator, trigger, **query)
    assert re.findall(r'name="parameter-period" value="(.*?)"', text) == [period]


@pytest.mark.parametrize("ticked", [[], ["instance_cpu_usage"], ["instance_cpu_usage", "instance_ram_usage"]])
def test_boxes_stay_as_they_were_ticked_when_the_form_is_drawn_again(administrator: Client, ticked: list[str]) -> None:
    text = redraw(administrator, "audit_type", **BALANCING, **{"parameter-metrics": ticked})
    inputs = re.findall(r'<input[^>]*name="parameter-metrics"[^>]*>', text)
    assert [re.search('value="(.*?)"', box)[1] for box in inputs if "checked" in box] == ticked


def test_drawing_the_form_again_makes_no_audit(administrator: Client) -> None:
    redraw(administrator, "audit_type", goal="dummy", audit_type="ONESHOT")
    assert not Audit.objects.exists()


def test_json_is_not_quoted_when_the_form_is_drawn_again(administrator: Client) -> None:
    typed = '[{"action_type": "nop"}]'
    text = redraw(administrator, "audit_type", goal="unclassified", **{"parameter-actions": typed})
    area = re.search('<textarea name="parameter-actions".*?>(.*?)</textarea>', text, re.DOTALL)
    assert html.unescape(area[1]).strip() == typed


def test_rows_become_a_list_of_objects(administrator: Client) -> None:
    for name in ("compute1", "compute2", "compute3"):
        make_node(name)
    create(
        administrator,
        "hardware_maintenance",
        **{
            "parameter-compute_nodes.0.src_node": "compute1",
            "parameter-compute_nodes.0.dst_node": "compute3",
            "parameter-compute_nodes.1.src_node": "compute2",
            "parameter-compute_nodes.2.src_node": "",
            "parameter-priority.project": "web-shop\r\n\r\nbuild ",
            "parameter-priority.compute": ["vcpu_num", "created_at"],
        },
    )
    parameters = Audit.objects.get().parameters
    assert parameters["compute_nodes"] == [{"src_node": "compute1", "dst_node": "compute3"}, {"src_node": "compute2"}]
    assert parameters["priority"] == {"project": ["web-shop", "build"], "compute": ["vcpu_num", "created_at"]}


def test_a_row_without_what_it_needs_is_named(administrator: Client) -> None:
    make_node("compute1")
    text = create(administrator, "hardware_maintenance", **{"parameter-compute_nodes.0.dst_node": "compute1"})
    assert "Row 1, From node: This field is required." in text
    assert not Audit.objects.exists()


def test_what_only_the_whole_schema_refuses_stands_beside_its_field(administrator: Client) -> None:
    make_pool("a@lvm#one")
    text = create(administrator, "hardware_maintenance", **{"parameter-storage_pools.0.src_pool": "a@lvm#one"})
    assert "Invalid parameters for strategy: storage_pools.0" in text
    assert "alert-danger" not in text
    assert not Audit.objects.exists()


def test_a_part_of_the_cloud_is_chosen_from_what_it_has(administrator: Client) -> None:
    node = make_node("compute1", zone="hall-a")
    make_aggregate(1, "large-memory", node)
    text = show(administrator)
    assert boxes(text, "scope_zones") == ["hall-a"]
    assert boxes(text, "scope_aggregates") == ["large-memory"]
    assert boxes(text, "scope_left_out") == ["compute1"]


def test_the_part_becomes_the_scope_of_the_audit(administrator: Client) -> None:
    make_aggregate(1, "large-memory", make_node("compute1", zone="hall-a"))
    part = {"scope_zones": ["hall-a"], "scope_aggregates": ["large-memory"], "scope_left_out": ["compute1"]}
    create(administrator, "dummy", **part)
    assert Audit.objects.get().scope == [
        {
            "compute": [
                {"availability_zones": [{"name": "hall-a"}]},
                {"host_aggregates": [{"name": "large-memory"}]},
                {"exclude": [{"compute_nodes": [{"name": "compute1"}]}]},
            ]
        }
    ]


def test_the_page_of_an_audit_says_what_it_looks_at(administrator: Client) -> None:
    make_aggregate(1, "large-memory", make_node("compute1", zone="hall-a"))
    create(administrator, "dummy")
    create(administrator, "dummy", scope_zones=["hall-a"], scope_left_out=["compute1"])
    pages = [
        administrator.get(reverse("audits:detail", args=[audit.uuid])).content.decode()
        for audit in Audit.objects.order_by("pk")
    ]
    assert "entire cloud" in pages[0]
    assert "only availability zones hall-a" in pages[1]
    assert "except compute nodes compute1" in pages[1]


def test_an_audit_of_everything_has_no_scope(administrator: Client) -> None:
    make_node("compute1")
    create(administrator, "dummy")
    assert Audit.objects.get().scope == []


def test_the_form_comes_back_after_logging_in_again(administrator: Client, cloud_admin: User) -> None:
    administrator.logout()
    create(administrator, "dummy", name="tonight")
    person = {"username": "alice", "password": "alice-password", "next": reverse("audits:create")}
    text = administrator.post(reverse("login"), {**person, "kept": "goal=dummy&name=tonight"}, follow=True)
    assert 'value="tonight"' in text.content.decode()


def test_a_form_of_an_earlier_session_is_loaded_again_as_a_whole(cloud_admin: User) -> None:
    client = Client(enforce_csrf_checks=True, headers={"Origin": "http://testserver", "HX-Request": "true"})
    client.force_login(cloud_admin)
    response = client.post(reverse("audits:create"), {"goal": "dummy", "name": "tonight"})
    assert response.headers["HX-Refresh"] == "true"
    assert 'value="tonight"' in show(client)


SCHEMAS = {
    "a text": ({"type": "string"}, "x", "x"),
    "a whole number": ({"type": "integer"}, "3", 3),
    "a number": ({"type": "number"}, "0.5", 0.5),
    "a choice of numbers": ({"enum": [60, 300]}, "300", 300),
    "choices": ({"type": "array", "items": {"enum": ["a", "b"]}}, ["b"], ["b"]),
    "texts": ({"type": "array", "items": {"type": "string"}}, "a\nb", ["a", "b"]),
    "anything": ({"type": "array"}, "[1, {}]", [1, {}]),
    "an object without properties": ({"type": "object"}, '{"a": 1}', {"a": 1}),
}


@pytest.mark.parametrize(("rule", "typed", "value"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_becomes_a_field_that_gives_its_type(rule: dict[str, Any], typed: Any, value: Any) -> None:
    (name, field), *_ = fields_for({"properties": {"group": {"type": "object", "properties": {"one": rule}}}}).items()
    assert name == "parameter-group.one"
    assert parameters_of({name: field.clean(typed)}) == {"group": {"one": value}}


def test_labels_read_as_people_write(administrator: Client) -> None:
    (field,) = fields_for({"properties": {"maintenance_node": {"type": "string", "description": "the node"}}}).values()
    assert (field.label, field.help_text) == ("Maintenance node", "The node.")
