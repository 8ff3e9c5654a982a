"""The form of a new audit: choices from the cloud, required fields, parameters and scope."""

import html
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from audits.models import Audit, Goal, Strategy
from tests.builders import make_aggregate, make_node, make_pool, make_strategy, make_volume_type
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


def test_goal_without_strategies_is_a_disabled_option(administrator: Client) -> None:
    Goal.objects.create(name="world-peace", display_name="World peace")
    option = re.search(r'<option value="world-peace".*?</option>', show(administrator))
    assert option is not None
    assert "disabled" in option[0]
    assert "no strategy installed" in option[0]


def test_goal_without_strategies_is_refused_at_its_field(administrator: Client) -> None:
    Goal.objects.create(name="world-peace", display_name="World peace")
    text = create(administrator, "world-peace")
    assert "No strategy is installed for this goal" in text
    assert "alert-danger" not in text


def test_single_strategy_of_a_goal_is_selected_with_its_parameters(administrator: Client) -> None:
    text = show(administrator, goal="cluster_maintaining")
    assert options(text, "strategy") == ["host_maintenance"]
    assert 'name="parameter-maintenance_node"' in text


def test_required_parameter_of_the_single_strategy_is_required_without_a_selected_strategy(
    administrator: Client,
) -> None:
    text = create(administrator, "cluster_maintaining")
    assert 'id="error_1_id_parameter-maintenance_node"' in text
    assert "This field is required." in text
    assert not Audit.objects.exists()


def test_default_strategy_of_a_goal_is_named(administrator: Client) -> None:
    assert "Default: Basic offline consolidation" in show(administrator, goal="server_consolidation")


def test_default_strategy_with_a_required_parameter_is_refused_without_it(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_a_node = {"type": "object", "properties": {"node": {"type": "string"}}, "required": ["node"]}
    Strategy.objects.filter(name="basic", deleted_at=None).update(parameters_spec=needs_a_node)
    text = create(administrator, "server_consolidation")
    assert "This field is required." in text
    assert not Audit.objects.exists()


def test_node_choices_show_zone_status_and_power_state(administrator: Client) -> None:
    make_node("compute1", zone="hall-a")
    make_node("compute2", zone="hall-b", status="disabled", power_state="off")
    text = show(administrator, goal="cluster_maintaining")
    assert options(text, "parameter-maintenance_node") == ["", "compute1", "compute2"]
    assert "compute1 in hall-a<" in text
    assert "compute2 in hall-b, disabled, off<" in text


def test_node_field_is_a_text_field_on_an_empty_cloud(administrator: Client) -> None:
    assert re.search(
        r'<input type="text" name="parameter-maintenance_node"', show(administrator, goal="cluster_maintaining")
    )


def test_unknown_node_is_refused(administrator: Client) -> None:
    make_node("compute1")
    text = create(administrator, "cluster_maintaining", **{"parameter-maintenance_node": "compute9"})
    assert "compute9 is not one of the available choices" in text


def test_pools_and_volume_types_are_choices(administrator: Client) -> None:
    make_pool("a@lvm#one")
    make_volume_type("fast")
    text = show(administrator, goal="hardware_maintenance")
    assert options(text, "parameter-storage_pools.0.src_pool") == ["", "a@lvm#one"]
    assert options(text, "parameter-storage_pools.0.dst_type") == ["", "fast"]


def test_filled_row_adds_an_empty_row(administrator: Client) -> None:
    make_node("compute1")
    cell = "parameter-compute_nodes.0.src_node"
    text = redraw(administrator, cell, goal="hardware_maintenance", **{cell: "compute1"})
    assert options(text, "parameter-compute_nodes.1.src_node") == ["", "compute1"]
    assert 'value="compute1" selected' in text


@pytest.mark.parametrize(("trigger", "period"), [("strategy", "3600"), ("audit_type", "7200")])
def test_changed_strategy_resets_parameters_to_its_defaults(administrator: Client, trigger: str, period: str) -> None:
    query = {"goal": "server_consolidation", "strategy": "vm_workload_consolidation", "parameter-period": "7200"}
    text = redraw(administrator, trigger, **query)
    assert re.findall(r'name="parameter-period" value="(.*?)"', text) == [period]


@pytest.mark.parametrize("ticked", [[], ["instance_cpu_usage"], ["instance_cpu_usage", "instance_ram_usage"]])
def test_redrawn_form_keeps_checked_boxes(administrator: Client, ticked: list[str]) -> None:
    text = redraw(administrator, "audit_type", **BALANCING, **{"parameter-metrics": ticked})
    inputs = re.findall(r'<input[^>]*name="parameter-metrics"[^>]*>', text)
    assert [re.search('value="(.*?)"', box)[1] for box in inputs if "checked" in box] == ticked


def test_redrawing_the_form_creates_no_audit(administrator: Client) -> None:
    redraw(administrator, "audit_type", goal="dummy", audit_type="ONESHOT")
    assert not Audit.objects.exists()


def test_redrawn_form_keeps_json_without_additional_quotes(administrator: Client) -> None:
    typed = '[{"action_type": "nop"}]'
    text = redraw(administrator, "audit_type", goal="unclassified", **{"parameter-actions": typed})
    area = re.search('<textarea name="parameter-actions".*?>(.*?)</textarea>', text, re.DOTALL)
    assert html.unescape(area[1]).strip() == typed


def test_rows_are_stored_as_a_list_of_objects(administrator: Client) -> None:
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


def test_row_without_a_required_cell_is_refused_with_its_number(administrator: Client) -> None:
    make_node("compute1")
    text = create(administrator, "hardware_maintenance", **{"parameter-compute_nodes.0.dst_node": "compute1"})
    assert "Row 1, From node: This field is required." in text
    assert not Audit.objects.exists()


def test_violation_of_the_whole_schema_is_shown_at_its_field(administrator: Client) -> None:
    make_pool("a@lvm#one")
    text = create(administrator, "hardware_maintenance", **{"parameter-storage_pools.0.src_pool": "a@lvm#one"})
    assert "Invalid parameters for strategy: storage_pools.0" in text
    assert "alert-danger" not in text
    assert not Audit.objects.exists()


def test_scope_choices_are_zones_aggregates_and_nodes_of_the_cloud(administrator: Client) -> None:
    node = make_node("compute1", zone="hall-a")
    make_aggregate(1, "large-memory", node)
    text = show(administrator)
    assert boxes(text, "scope_zones") == ["hall-a"]
    assert boxes(text, "scope_aggregates") == ["large-memory"]
    assert boxes(text, "scope_left_out") == ["compute1"]


def test_selected_scope_is_stored_in_the_audit(administrator: Client) -> None:
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


def test_audit_page_shows_the_scope(administrator: Client) -> None:
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


def test_audit_without_selected_scope_has_an_empty_scope(administrator: Client) -> None:
    make_node("compute1")
    create(administrator, "dummy")
    assert Audit.objects.get().scope == []


def test_form_is_kept_over_a_login(administrator: Client, cloud_admin: User) -> None:
    administrator.logout()
    create(administrator, "dummy", name="tonight")
    person = {"username": "alice", "password": "alice-password", "next": reverse("audits:create")}
    text = administrator.post(reverse("login"), {**person, "kept": "goal=dummy&name=tonight"}, follow=True)
    assert 'value="tonight"' in text.content.decode()


def test_form_with_an_expired_csrf_token_is_reloaded_with_its_values(cloud_admin: User) -> None:
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
def test_field_of_a_schema_returns_a_value_of_its_type(rule: dict[str, Any], typed: Any, value: Any) -> None:
    (name, field), *_ = fields_for({"properties": {"group": {"type": "object", "properties": {"one": rule}}}}).items()
    assert name == "parameter-group.one"
    assert parameters_of({name: field.clean(typed)}) == {"group": {"one": value}}


def test_label_and_help_text_are_written_as_text(administrator: Client) -> None:
    (field,) = fields_for({"properties": {"maintenance_node": {"type": "string", "description": "the node"}}}).values()
    assert (field.label, field.help_text) == ("Maintenance node", "The node.")


def test_address_of_the_form_keeps_the_chosen_strategy(administrator: Client) -> None:
    make_strategy("second", goal="dummy")
    chosen = {"goal": "dummy", "strategy": make_strategy().name, "audit_type": "CONTINUOUS", "name": "tonight"}
    headers = {"HX-Request": "true", "HX-Source": "select#id_strategy"}
    redrawn = administrator.post(reverse("audits:create"), chosen, headers=headers)
    address = redrawn["HX-Replace-Url"]
    assert address == f"{reverse('audits:create')}?goal=dummy&strategy=dummy&audit_type=CONTINUOUS"
    text = administrator.get(address).content.decode()
    assert all(f'<option value="{value}" selected>' in text for value in ("dummy", "CONTINUOUS"))
    assert 'name="interval"' in text
