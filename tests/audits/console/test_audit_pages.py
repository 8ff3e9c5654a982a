"""Pages of audits in the console: creation by the schema of a strategy, cancellation and deletion."""

import re
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


def test_selected_goal_limits_the_strategies(administrator: Client, strategy: Strategy) -> None:
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


def test_selected_strategy_shows_its_parameters(administrator: Client, strategy: Strategy) -> None:
    query = {"goal": "empty-a-node", "strategy": "emptier"}
    headers = {"HX-Request": "true", "HX-Source": "select#id_strategy"}
    text = administrator.post(reverse("audits:create"), query, headers=headers).content.decode()
    assert [name for name in SCHEMA["properties"] if f'name="parameter-{name}"' not in text] == []
    assert "The node to empty." in text


def test_fields_are_stored_as_parameters_of_the_types_of_the_schema(administrator: Client, strategy: Strategy) -> None:
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


def test_missing_parameter_is_reported_at_its_field(administrator: Client, strategy: Strategy) -> None:
    assert "This field is required." in create(administrator)
    assert not Audit.objects.exists()


def test_duplicate_name_is_reported_and_stays_in_the_form(administrator: Client, strategy: Strategy) -> None:
    make_audit("tonight")
    text = create(administrator, name="Tonight", **{"parameter-maintenance_node": "compute2"})
    assert "already exists" in text
    assert 'value="Tonight"' in text


@pytest.mark.parametrize("field", ["goal", "strategy", "name", "parameter-maintenance_node", "parameter-weights"])
@pytest.mark.parametrize("nonsense", ["\x00", "[", "x" * 10_000])
def test_invalid_input_in_the_form_is_no_server_error(
    administrator: Client, strategy: Strategy, field: str, nonsense: str
) -> None:
    form = {"parameter-maintenance_node": "compute2", field: nonsense}
    response = administrator.post(reverse("audits:create"), {"goal": "empty-a-node", "strategy": "emptier", **form})
    assert response.status_code in {200, 302}


def test_reader_sees_no_form_and_is_refused(client: Client, reader: User, strategy: Strategy) -> None:
    client.force_login(reader)
    assert reverse("audits:create") not in client.get(reverse("audits:list")).content.decode()
    assert client.post(reverse("audits:create"), {"goal": "empty-a-node"}).status_code == 403


def test_list_shows_type_and_state_as_in_the_api(administrator: Client) -> None:
    make_audit(state="FAILED")
    text = administrator.get(reverse("audits:list"), {"name": "an audit"}).content.decode()
    assert "<div>ONESHOT</div>" in text
    assert ">FAILED</span>" in text


def test_audit_page_shows_its_plans(administrator: Client) -> None:
    audit = make_audit(state="SUCCEEDED")
    plan = make_plan({"a": []}, audit=audit)
    text = administrator.get(reverse("audits:detail", args=[audit.uuid])).content.decode()
    assert str(plan.uuid) in text
    assert "0 of 1" in text


def test_audit_without_parameters_has_no_list_of_them(administrator: Client) -> None:
    text = administrator.get(reverse("audits:detail", args=[make_audit().uuid])).content.decode()
    (section,) = re.findall('aria-labelledby="parameters-heading".*?</section>', text, re.DOTALL)
    assert "None." in section
    assert "<dl" not in section


@pytest.mark.parametrize(("state", "moves"), [("PENDING", True), ("ONGOING", True), ("SUCCEEDED", False)])
def test_page_polls_and_offers_cancel_until_the_audit_ends(administrator: Client, state: str, moves: bool) -> None:
    audit = make_audit(state=state)
    text = administrator.get(reverse("audits:detail", args=[audit.uuid])).content.decode()
    assert ("hx-trigger" in text) == moves
    assert ('id="cancel"' in text) == moves
    assert ('id="delete"' in text) != moves


def test_pending_audit_is_cancelled(administrator: Client) -> None:
    assert "Audit was canceled by user" in press(administrator, "cancel", make_audit())
    assert Audit.objects.get().state == "CANCELLED"


def test_cancellation_of_an_audit_that_was_deleted_after_the_lookup_says_so(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandon = Audit.abandon

    def delete_and_abandon(audit: Audit) -> None:
        Audit.objects.filter(pk=audit.pk).soft_delete()
        abandon(audit)

    monkeypatch.setattr(Audit, "abandon", delete_and_abandon)
    assert "Cannot cancel the audit: it was deleted." in press(administrator, "cancel", make_audit())


def test_cancellation_of_a_finished_audit_is_refused_with_the_reason(administrator: Client) -> None:
    text = press(administrator, "cancel", make_audit(state="SUCCEEDED"))
    assert "Cannot cancel the audit: it is already SUCCEEDED." in text


def test_finished_audit_is_deleted(administrator: Client) -> None:
    assert "Deleted audit an audit." in press(administrator, "delete", make_audit(state="FAILED"))
    assert not Audit.objects.present().exists()


def test_deletion_of_an_ongoing_audit_is_refused_with_the_reason(administrator: Client) -> None:
    text = press(administrator, "delete", make_audit(state="ONGOING"))
    assert "Cannot delete the audit: it is ONGOING. Cancel it first." in text
    assert Audit.objects.present().exists()


@pytest.mark.parametrize("size", [1, 20])
def test_page_query_count_does_not_depend_on_the_number_of_plans(
    administrator: Client, django_assert_num_queries: Any, size: int
) -> None:
    audit = make_audit()
    for _ in range(size):
        make_plan({"a": []}, audit=audit, strategy=audit.strategy)
    with django_assert_num_queries(5):
        administrator.get(reverse("audits:detail", args=[audit.uuid]))


@pytest.mark.parametrize("size", [1, 30])
def test_list_query_count_does_not_depend_on_the_number_of_audits(
    administrator: Client, django_assert_num_queries: Any, size: int
) -> None:
    for number in range(size):
        make_audit(f"audit {number}")
    with django_assert_num_queries(5):
        administrator.get(reverse("audits:list"))


@pytest.mark.parametrize(("language", "texts"), [("en", ["yes", "no", "none"]), ("de", ["ja", "nein", "keine"])])
def test_values_of_parameters_are_words_in_the_language_of_the_reader(
    administrator: Client, language: str, texts: list[str]
) -> None:
    audit = make_audit(parameters={"cold": True, "live": False, "nodes": []}, force=True)
    page = administrator.get(reverse("audits:detail", args=[audit.uuid]), headers={"accept-language": language})
    values = re.findall(r"<dd>\s*(.*?)\s*</dd>", page.content.decode())
    assert values[-3:] == texts
    assert values.count(texts[0]) == 2
