"""Pages that compare two plans or two audits."""

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.urls import reverse

from actions.models import Action
from audits.console.comparison import with_place
from plans.models import ActionPlan, EfficacyIndicator
from tests.builders import make_audit, make_plan

pytestmark = pytest.mark.django_db
# The processes of the suite compare the names of parametrized tests: they hold no random values.
SHARED, FIRST, SECOND = (f"{number}{number}000000-0000-4000-8000-000000000000" for number in (1, 2, 3))
UNKNOWN = "99000000-0000-4000-8000-000000000000"


def plan_of(*servers: str, **columns: Any) -> ActionPlan:
    plan = make_plan(**columns)
    Action.objects.bulk_create(
        Action(
            action_plan=plan,
            action_type="migrate",
            input_parameters={"resource_id": server, "resource_name": f"name-{server[:4]}", "migration_type": "live"},
        )
        for server in servers
    )
    return plan


@pytest.fixture
def pair() -> tuple[ActionPlan, ActionPlan]:
    return plan_of(SHARED, FIRST), plan_of(SHARED, SECOND)


def compared(client: Client, *records: Any, page: str = "compare-plans", **query: str) -> Any:
    return client.get(reverse(page), {"compare": [str(record.uuid) for record in records], **query})


def test_actions_of_equal_type_and_server_count_as_common(
    client: Client, cloud_admin: User, pair: tuple[ActionPlan, ActionPlan]
) -> None:
    client.force_login(cloud_admin)
    response = compared(client, *pair)
    assert response.context["types"] == [{"action_type": "migrate", "both": 1, "first": 1, "second": 1}]
    found = {row.resource: (bool(row.first), bool(row.second)) for row in response.context["actions"]}
    assert found == {
        f"name-{SHARED[:4]}": (True, True),
        f"name-{FIRST[:4]}": (True, False),
        f"name-{SECOND[:4]}": (False, True),
    }


@pytest.mark.parametrize(("only", "server"), [("both", SHARED), ("first", FIRST), ("second", SECOND)])
def test_actions_are_filtered_by_their_plan(
    client: Client, cloud_admin: User, pair: tuple[ActionPlan, ActionPlan], only: str, server: str
) -> None:
    client.force_login(cloud_admin)
    rows = compared(client, *pair, only=only).context["actions"]
    assert [row.resource for row in rows] == [f"name-{server[:4]}"]


def test_actions_without_a_target_are_compared_by_type(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    response = compared(client, make_plan({"a": []}), make_plan({"b": []}))
    assert response.context["types"] == [{"action_type": "nop", "both": 1, "first": 0, "second": 0}]


def test_efficacy_of_both_plans_is_compared(
    client: Client, cloud_admin: User, pair: tuple[ActionPlan, ActionPlan]
) -> None:
    for plan, value in zip(pair, (3, 5), strict=True):
        EfficacyIndicator.objects.create(action_plan=plan, name="released_nodes", value=value)
    client.force_login(cloud_admin)
    (fact,) = compared(client, *pair).context["efficacy"]
    assert (fact.label, fact.first, fact.second, fact.differs) == ("Released nodes", 3, 5, True)


@pytest.mark.parametrize(("unit", "text"), [("%", "33.33 %"), ("GB", "33.333 GB")])
def test_efficacy_is_shown_as_on_the_page_of_a_plan(
    client: Client, cloud_admin: User, pair: tuple[ActionPlan, ActionPlan], unit: str, text: str
) -> None:
    plan, other = pair
    plan.global_efficacy = [{"name": "released_nodes_ratio", "description": "", "unit": unit, "value": 100 / 3}]
    plan.save(update_fields=["global_efficacy"])
    client.force_login(cloud_admin)
    page = client.get(reverse("plans:detail", args=[plan.uuid]))
    assert [text in one.content.decode() for one in (page, compared(client, plan, other))] == [True, True]


def test_audits_are_compared_with_their_newest_plans(client: Client, cloud_admin: User) -> None:
    first, second = make_audit("one", parameters={"threshold": 5}), make_audit("two", parameters={"threshold": 7})
    for audit in (first, second):
        make_plan({"a": []}, audit=audit)
        plan_of(SHARED, audit=audit)
    client.force_login(cloud_admin)
    response = compared(client, first, second, page="compare-audits")
    assert ("Parameter threshold", "5", "7") in [
        (fact.label, fact.first, fact.second) for fact in response.context["facts"]
    ]
    assert response.context["types"] == [{"action_type": "migrate", "both": 1, "first": 0, "second": 0}]


def test_audits_without_plans_are_compared_without_actions(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    text = compared(client, make_audit("one"), make_audit("two"), page="compare-audits").content.decode()
    assert "There are no two plans to compare" in text


@pytest.mark.parametrize("query", ["", "compare=nonsense", f"compare={UNKNOWN}", "compare=%00&compare="])
def test_page_without_two_valid_records_shows_a_selection_form(client: Client, cloud_admin: User, query: str) -> None:
    make_plan()
    make_plan()
    client.force_login(cloud_admin)
    text = client.get(f"{reverse('compare-plans')}?{query}").content.decode()
    assert text.count('name="compare"') == 2


def test_selection_form_preselects_two_different_records(client: Client, cloud_admin: User) -> None:
    older = make_plan()
    make_plan()
    client.force_login(cloud_admin)
    page = client.get(reverse("compare-plans")).content.decode()
    assert f'<option value="{older.uuid}" selected>' in page.partition('id="second"')[2]


def test_page_with_three_records_shows_their_number(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    assert "3 are selected" in compared(client, *(make_plan() for _ in range(3))).content.decode()


def test_comparison_query_count_does_not_depend_on_the_number_of_actions(
    client: Client, cloud_admin: User, pair: tuple[ActionPlan, ActionPlan], django_assert_num_queries: Any
) -> None:
    large = [plan_of(SHARED, *(str(uuid4()) for _ in range(30)), audit=make_audit(name)) for name in "ab"]
    client.force_login(cloud_admin)
    compared(client, *pair)
    for plans in (pair, large):
        with django_assert_num_queries(8):
            compared(client, *plans)


@pytest.mark.postgresql
def test_actions_of_the_other_plan_are_read_once_for_all_actions() -> None:
    first, second = plan_of(), plan_of()
    Action.objects.bulk_create(
        Action(action_plan=plan, action_type="nop") for plan in (first, second) for _ in range(1000)
    )
    connection.cursor().execute("ANALYZE actions_action")
    (explained,) = json.loads(with_place(first, second).filter(place="both").explain(analyze=True, format="json"))
    assert {node["Actual Loops"] for node in nodes_of(explained["Plan"])} == {1}


def nodes_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", ()):
        yield from nodes_of(inner)


def test_lists_have_checkboxes_for_the_comparison(client: Client, cloud_admin: User) -> None:
    plan, audit = make_plan(), make_audit()
    client.force_login(cloud_admin)
    for page, record in (("plans:list", plan), ("audits:list", audit)):
        text = client.get(reverse(page)).content.decode()
        assert f'form="compare" name="compare" value="{record.uuid}"' in text
        assert '<form method="get" id="compare"' in text


def test_plan_comparison_is_forbidden_without_the_view_permission(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse("compare-plans")).status_code == 403


def test_plan_comparison_shows_audits_only_with_the_permission_to_view_audits(
    client: Client, stranger: User, cloud_admin: User
) -> None:
    plans = [make_plan(audit=make_audit(name, parameters={"threshold": 5})) for name in ("one", "two")]
    stranger.user_permissions.set(Permission.objects.filter(codename__in=["view_actionplan", "view_action"]))
    shown = {}
    for user in (stranger, cloud_admin):
        client.force_login(user)
        shown[user] = "Parameter threshold" in compared(client, *plans).content.decode()
    assert shown == {stranger: False, cloud_admin: True}


def test_times_are_in_the_zone_of_the_reader(
    client: Client, cloud_admin: User, pair: tuple[ActionPlan, ActionPlan]
) -> None:
    client.force_login(cloud_admin)
    client.cookies["zone"] = "Asia/Tokyo"
    ActionPlan.objects.update(created_at="2026-01-01T20:00:00Z")
    assert "2026-01-02 05:00:00 Asia/Tokyo" in compared(client, *pair).content.decode()


def test_parameters_of_audits_are_compared_in_words(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    audits = [make_audit(name, parameters={"cold": cold}) for name, cold in (("first", True), ("second", False))]
    facts = compared(client, *audits, page="compare-audits").context["facts"]
    assert ("yes", "no") in [(fact.first, fact.second) for fact in facts if fact.label == "Parameter cold"]


@pytest.mark.parametrize("number", [0, 1])
def test_page_without_two_plans_has_no_form(client: Client, cloud_admin: User, number: int) -> None:
    client.force_login(cloud_admin)
    for _ in range(number):
        make_plan()
    page = client.get(reverse("compare-plans")).content.decode()
    assert "There are no two objects to compare yet." in page
    assert "<select" not in page


def shown(response: Any, facts: str = "facts") -> dict[str, tuple[str, str]]:
    return {str(fact.label): tuple(map(str, fact.texts)) for fact in response.context[facts]}


def test_efficacy_is_compared_in_the_numbers_and_units_of_the_page_of_a_plan(
    client: Client, cloud_admin: User, pair: tuple[ActionPlan, ActionPlan]
) -> None:
    pair[0].global_efficacy = [{"name": "released_nodes_ratio", "value": 80.0, "unit": "%", "description": ""}]
    pair[0].save()
    client.force_login(cloud_admin)
    assert shown(compared(client, *pair), "efficacy") == {"Released nodes ratio": ("80 %", "—")}


def test_properties_of_audits_are_compared_in_the_words_of_their_pages(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    first = make_audit("one", audit_type="CONTINUOUS", interval="3600", auto_trigger=True)
    second = make_audit("two", audit_type="CONTINUOUS", interval="*/5 * * * *", force=True)
    facts = shown(compared(client, first, second, page="compare-audits"))
    assert facts["Interval"] == ("3,600 seconds", "*/5 * * * *")
    assert facts["Starts its plan automatically"] == ("yes", "no")
    assert facts["Runs while a plan is running"] == ("no", "yes")
    assert facts["Scope"] == ("entire cloud", "entire cloud")


def test_handling_of_failures_is_compared_in_the_words_of_the_page_of_a_plan(
    client: Client, cloud_admin: User
) -> None:
    client.force_login(cloud_admin)
    facts = shown(compared(client, make_plan(on_failure="stop"), make_plan()))
    assert facts["On failure"] == ("dependent actions do not run", "dependent actions run")


def labels_of(response: Any) -> list[str]:
    """Return the labels of the cells of the first row, which phones show."""
    return re.findall('<td data-label="([^"]*)"', response.content.decode())[:2]


def test_cells_are_labelled_with_the_names_of_the_compared_objects(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    audits = [make_audit(name) for name in ("one", "two")]
    assert labels_of(compared(client, *audits, page="compare-audits")) == ["one", "two"]


def test_cells_of_plans_with_equal_names_are_labelled_with_their_uuids(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    audit = make_audit("one")
    plans = [make_plan(audit=audit), make_plan(audit=audit)]
    assert labels_of(compared(client, *plans)) == [f"one {str(plan.uuid)[:8]}" for plan in plans]
