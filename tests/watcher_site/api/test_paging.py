"""Lists page by marker and limit, in an order that the database keeps."""

from typing import Any

import pytest

from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import make_audit, make_plan

pytestmark = pytest.mark.django_db


def walk(api: Caller, path: str) -> list[dict[str, Any]]:
    """Follow the links to the next page as the client does: without scheme and host."""
    rows: list[dict[str, Any]] = []
    while path:
        answer = api.get(path).json()
        rows += answer["action_plans"]
        path = answer.get("next", "").removeprefix("http://testserver/v1")
    return rows


@pytest.fixture
def plans() -> list[str]:
    """Seven plans, of which some were never updated."""
    made = [make_plan() for _ in range(7)]
    for plan in made[2:5]:
        plan.launch()
    return [str(plan.uuid) for plan in made]


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize("key", ["id", "uuid", "state", "created_at", "updated_at", "hostname", "audit_uuid"])
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_join_to_the_whole_list(api: Caller, plans: list[str], key: str, direction: str, limit: int) -> None:
    whole = [row["uuid"] for row in walk(api, f"/action_plans/?sort_key={key}&sort_dir={direction}")]
    paged = [row["uuid"] for row in walk(api, f"/action_plans/?sort_key={key}&sort_dir={direction}&limit={limit}")]
    assert sorted(whole) == sorted(plans)
    assert paged == whole


def test_nulls_are_sorted_first(api: Caller, plans: list[str]) -> None:
    times = [row["updated_at"] for row in walk(api, "/action_plans/?sort_key=updated_at")]
    assert times[:4] == [None] * 4
    assert times[4:] == sorted(times[4:])


def test_rows_are_sorted_by_a_related_field(api: Caller) -> None:
    for name in ("b", "a"):
        make_plan(audit=make_audit(name))
    shown = [row["audit_uuid"] for row in walk(api, "/action_plans/?sort_key=audit_uuid")]
    assert shown == sorted(shown)


def test_link_to_the_next_page_keeps_the_filters(api: Caller) -> None:
    audit = make_audit()
    mine = [make_plan(audit=audit) for _ in range(3)]
    make_plan()
    rows = walk(api, f"/action_plans/?audit_uuid={audit.uuid}&limit=1")
    assert [row["uuid"] for row in rows] == [str(plan.uuid) for plan in mine]


def test_incomplete_page_has_no_link_to_a_next_page(api: Caller, plans: list[str]) -> None:
    assert "next" not in api.get("/action_plans/?limit=8").json()


def test_limit_above_the_maximum_is_reduced(api: Caller, plans: list[str]) -> None:
    assert len(api.get(f"/action_plans/?limit={'9' * 400}").json()["action_plans"]) == 7


@pytest.mark.parametrize("limit", ["0", "-1", "-99999999999999999999", "00"])
def test_limit_must_be_positive(api: Caller, limit: str) -> None:
    answer = api.get(f"/action_plans/?limit={limit}")
    assert answer.status_code == 400
    assert fault(answer) == "Limit must be positive"


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("limit=ten", "limit"),
        ("limit=1.5", "limit"),
        ("limit=", "limit"),
        ("marker=x", "marker"),
        ("sort_key=foo", "foo"),
        ("sort_key=global_efficacy", "global_efficacy"),
        ("sort_dir=up", "up"),
        ("foo=1", "foo"),
        ("limit=1&limit=2", 'more than once: "limit"'),
        ("marker=x&marker=x", 'more than once: "marker"'),
        ("sort_key=state&sort_key=uuid", 'more than once: "sort_key"'),
        ("sort_dir=asc&sort_dir=desc", 'more than once: "sort_dir"'),
        ("strategy=a&strategy=b", 'more than once: "strategy"'),
        ("audit_uuid=x", "audit_uuid"),
        ("strategy=%00", "NUL"),
        ("marker=%00", "NUL"),
    ],
)
def test_invalid_query_argument_is_400_and_named(api: Caller, query: str, named: str) -> None:
    answer = api.get(f"/action_plans/?{query}")
    assert answer.status_code == 400
    assert named in fault(answer)


def test_unknown_marker_is_404(api: Caller) -> None:
    marker = "11111111-1111-4111-8111-111111111111"
    answer = api.get(f"/action_plans/?marker={marker}")
    assert answer.status_code == 404
    assert fault(answer) == f"ActionPlan {marker} could not be found"


def test_deleted_rows_are_not_listed(api: Caller, plans: list[str]) -> None:
    ActionPlan.objects.get(uuid=plans[0]).remove()
    assert plans[0] not in [row["uuid"] for row in walk(api, "/action_plans")]


@pytest.mark.parametrize(("header", "shown"), [("true", True), ("1", True), ("false", False), ("", False)])
def test_deleted_rows_are_listed_on_request(api: Caller, plans: list[str], header: str, shown: bool) -> None:
    ActionPlan.objects.get(uuid=plans[0]).remove()
    rows = api.get("/action_plans", **{"X-Show-Deleted": header}).json()["action_plans"]
    assert (plans[0] in [row["uuid"] for row in rows]) is shown
