"""The console's pages of audits: making one from a strategy's schema, cancelling and deleting."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from audits.models import Audit, Goal, Strategy
from tests.builders import make_audit, make_plan

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "maintenance_node": {"type": "string", "description": "the node to empty"},
        "threshold": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        "rounds": {"type": "integer"},
        "cold": {"type": "boolean", "default": False},
        "granularity": {"enum": [60, 300], "default": 60},
        "weights": {"type": "array"},
    },
    "required": ["maintenance_node"],
}


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def strategy(db: None) -> Strategy:
    goal = Goal.objects.create(name="empty-a-node", display_name="Empty a node")
    return Strategy.objects.create(name="emptier", display_name="Emptier", goal=goal, parameters_spec=SCHEMA)


def create(client: Client, **fields: Any) -> str:
    form = {"goal": "empty-a-node", "strategy": "emptier", "parameter-granularity": "60", **fields}
    return client.post(reverse("audits:create"), form, follow=True).content.decode()


def press(client: Client, verb: str, audit: Audit) -> str:
    return client.post(reverse(f"audits:{verb}", args=[audit.uuid]), follow=True).content.decode()


def test_choosing_a_goal_offers_its_strategies_alone(administrator: Client, strategy: Strategy) -> None:
    other = Goal.objects.create(name="other", display_name="Other")
    Strategy.objects.create(name="stranger", display_name="Stranger", goal=other)
    response = administrator.post(
        reverse("audits:create"),
        {"goal": "empty-a-node"},
        headers={"HX-Request": "true", "HX-Source": "select#id_goal"},
    ).content.decode()
    assert "Emptier" in response
    assert "Stranger" not in response
    assert "<html" not in response


def test_choosing_a_strategy_asks_for_its_parameters(administrator: Client, strategy: Strategy) -> None:
    query = {"goal": "empty-a-node", "strategy": "emptier"}
    headers = {"HX-Request": "true", "HX-Source": "select#id_strategy"}
    text = administrator.post(reverse("audits:create"), query, headers=headers).content.decode()
    assert [name for name in SCHEMA["properties"] if f'name="parameter-{name}"' not in text] == []
    assert "The node to empty." in text


def test_the_fields_become_parameters_of_the_schemas_types(administrator: Client, strategy: Strategy) -> None:
    fields = {"maintenance_node": "compute2", "rounds": "3", "cold": "on", "granularity": "300", "weights": "[1, 2]"}
    text = create(administrator, name="tonight", **{f"parameter-{name}": value for name, value in fields.items()})
    assert "Audit created." in text
    assert Audit.objects.get(name="tonight").parameters == {
        "maintenance_node": "compute2",
        "threshold": 0.5,
        "rounds": 3,
        "cold": True,
        "granularity": 300,
        "weights": [1, 2],
    }


def test_a_missing_parameter_is_reported_beside_its_field(administrator: Client, strategy: Strategy) -> None:
    assert "This field is required." in create(administrator)
    assert not Audit.objects.exists()


def test_what_the_engine_refuses_stands_above_the_form(administrator: Client, strategy: Strategy) -> None:
    make_audit("tonight")
    text = create(administrator, name="Tonight", **{"parameter-maintenance_node": "compute2"})
    assert "already exists" in text
    assert 'value="Tonight"' in text


@pytest.mark.parametrize("field", ["goal", "strategy", "name", "parameter-maintenance_node", "parameter-weights"])
@pytest.mark.parametrize("nonsense", ["\x00", "[", "x" * 10_000])
def test_nonsense_in_the_form_is_no_error(
    administrator: Client, strategy: Strategy, field: str, nonsense: str
) -> None:
    form = {"parameter-maintenance_node": "compute2", field: nonsense}
    response = administrator.post(reverse("audits:create"), {"goal": "empty-a-node", "strategy": "emptier", **form})
    assert response.status_code in {200, 302}


def test_a_reader_neither_finds_the_form_nor_may_send_it(client: Client, reader: User, strategy: Strategy) -> None:
    client.force_login(reader)
    assert reverse("audits:create") not in client.get(reverse("audits:list")).content.decode()
    assert client.post(reverse("audits:create"), {"goal": "empty-a-node"}).status_code == 403


def test_the_list_has_the_words_of_the_api(administrator: Client) -> None:
    make_audit(state="FAILED")
    text = administrator.get(reverse("audits:list"), {"name": "an audit"}).content.decode()
    assert "<div>ONESHOT</div>" in text
    assert ">FAILED</span>" in text


def test_an_audit_shows_its_plans(administrator: Client) -> None:
    audit = make_audit(state="SUCCEEDED")
    plan = make_plan({"a": []}, audit=audit)
    text = administrator.get(reverse("audits:detail", args=[audit.uuid])).content.decode()
    assert str(plan.uuid) in text
    assert "0 of 1" in text


@pytest.mark.parametrize(("state", "moves"), [("PENDING", True), ("ONGOING", True), ("SUCCEEDED", False)])
def test_the_page_updates_itself_until_the_audit_ends(administrator: Client, state: str, moves: bool) -> None:
    audit = make_audit(state=state)
    text = administrator.get(reverse("audits:detail", args=[audit.uuid])).content.decode()
    assert ("hx-trigger" in text) == moves
    assert ('id="cancel"' in text) == moves
    assert ('id="delete"' in text) != moves


def test_an_audit_that_waits_can_be_cancelled(administrator: Client) -> None:
    assert "Audit was canceled by user" in press(administrator, "cancel", make_audit())
    assert Audit.objects.get().state == "CANCELLED"


def test_an_audit_that_ended_cannot_be_cancelled_and_says_why(administrator: Client) -> None:
    text = press(administrator, "cancel", make_audit(state="SUCCEEDED"))
    assert "Cannot cancel the audit: it is already SUCCEEDED." in text


def test_an_audit_that_ended_can_be_deleted(administrator: Client) -> None:
    assert "Deleted audit an audit." in press(administrator, "delete", make_audit(state="FAILED"))
    assert not Audit.objects.present().exists()


def test_an_audit_that_runs_cannot_be_deleted_and_says_why(administrator: Client) -> None:
    text = press(administrator, "delete", make_audit(state="ONGOING"))
    assert "Cannot delete the audit: it is ONGOING. Cancel it first." in text
    assert Audit.objects.present().exists()


@pytest.mark.parametrize("size", [1, 30])
def test_the_list_takes_the_same_queries_whatever_its_size(
    administrator: Client, django_assert_num_queries: Any, size: int
) -> None:
    for number in range(size):
        make_audit(f"audit {number}")
    with django_assert_num_queries(5):
        administrator.get(reverse("audits:list"))
