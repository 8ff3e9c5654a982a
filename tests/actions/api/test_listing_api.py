"""Filters, sort keys and look-ups of actions at 1.12: repeated filters, several keys, names and UUID prefixes."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from actions.models import Action
from tests.api import Caller, fault
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db

SERVERS = ["3f2504e0-4f89-41d3-9a0c-0305e82c3301", "3f2504e0-4f89-41d3-9a0c-0305e82c3302"]


@pytest.fixture
def newest(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


@pytest.fixture
def actions() -> list[Action]:
    """Return two actions on servers and two without a target; each name belongs to two actions."""
    plan = make_plan(state="ONGOING")
    rows = [("stop", "one", SERVERS[0]), ("resize", "two", SERVERS[1]), ("nop", "two", None), ("sleep", "one", None)]
    return [
        Action.objects.create(
            action_plan=plan, action_type=kind, name=name, input_parameters={"resource_id": target} if target else {}
        )
        for kind, name, target in rows
    ]


def listed(caller: Caller, query: str) -> list[str]:
    """Return the types of the actions of a list."""
    return [row["action_type"] for row in caller.get(f"/actions?{query}").json()["actions"]]


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("name=one", ["stop", "sleep"]),
        ("name=one&name=two", ["stop", "resize", "nop", "sleep"]),
        ("name=One", []),
        (f"target={SERVERS[1]}", ["resize"]),
        (f"target={SERVERS[1]}&target={SERVERS[0]}", ["stop", "resize"]),
        ("action=nop&action=sleep", ["nop", "sleep"]),
        ("status=READY", ["stop", "resize", "nop", "sleep"]),
        ("status=WAITING&status=INIT", []),
        ("action=nop&name=one", []),
        ("action=nop&name=two&status=READY", ["nop"]),
    ],
)
def test_values_of_one_filter_are_alternatives_and_several_filters_must_all_match(
    newest: Caller, actions: list[Action], query: str, types: list[str]
) -> None:
    assert listed(newest, query) == types


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("status=NOPE", "Invalid status: NOPE. It must be one of INIT, READY, WAITING, RUNNING"),
        ("status=READY&status=ready", "Invalid status: ready."),
        ("action=juggle", "Invalid action: juggle. It must be one of nop, sleep"),
        ("sort=colour", "Unsupported sort key 'colour' for 'sort'. It must be one of id, uuid, state"),
        ("sort=name:up", "Unsupported sort dir 'up' for 'sort'."),
        ("sort=name:", "Unsupported sort dir '' for 'sort'."),
        ("sort=", "Missing sort key for 'sort'."),
        ("sort=name,,target", "Missing sort key for 'sort'."),
        ("sort=:asc", "Missing sort key for 'sort'."),
        ("sort=name,name:desc", "Sort key 'name' is given twice for 'sort'."),
        ("sort=name&sort=target", 'Argument given more than once: "sort"'),
        ("sort=name&sort_key=name", "sort and sort_key or sort_dir cannot be given together"),
        ("sort_key=colour", "Invalid sort key: colour"),
    ],
)
def test_invalid_argument_is_400_with_the_reason(newest: Caller, query: str, words: str) -> None:
    answer = newest.get(f"/actions?{query}")
    assert answer.status_code == 400
    assert words in fault(answer)


@pytest.mark.parametrize("query", ["name=x", "target=x", "action=nop", "status=READY", "sort=name"])
def test_new_arguments_are_unknown_before_1_12(cloud_admin: User, query: str) -> None:
    answer = Caller(cloud_admin, "1.11").get(f"/actions?{query}")
    assert (answer.status_code, fault(answer)) == (400, f'Unknown argument: "{query.partition("=")[0]}"')


@pytest.mark.parametrize("key", ["name", "target", "action", "status"])
def test_new_sort_keys_are_unknown_before_1_12(cloud_admin: User, key: str) -> None:
    answer = Caller(cloud_admin, "1.11").get(f"/actions?sort_key={key}")
    assert (answer.status_code, fault(answer)) == (400, f"Invalid sort key: {key}")


@pytest.mark.parametrize(
    ("sort", "types"),
    [
        ("name,action", ["sleep", "stop", "nop", "resize"]),
        ("name:desc,action:asc", ["nop", "resize", "sleep", "stop"]),
        ("target,name:desc", ["nop", "sleep", "stop", "resize"]),
        ("target:desc,id:desc", ["resize", "stop", "sleep", "nop"]),
        ("status,action_type:desc", ["stop", "sleep", "resize", "nop"]),
        ("created_at", ["stop", "resize", "nop", "sleep"]),
    ],
)
def test_a_list_is_sorted_by_several_keys(newest: Caller, actions: list[Action], sort: str, types: list[str]) -> None:
    assert listed(newest, f"sort={sort}") == types


def test_sort_key_accepts_a_new_key(newest: Caller, actions: list[Action]) -> None:
    assert listed(newest, "sort_key=target&sort_dir=desc") == ["resize", "stop", "sleep", "nop"]


def follow_pages(caller: Caller, path: str) -> list[str]:
    """Follow the links to the next page as clients do: without scheme and host."""
    uuids: list[str] = []
    while path:
        answer: dict[str, Any] = caller.get(path).json()
        uuids += [row["uuid"] for row in answer["actions"]]
        path = answer.get("next", "").removeprefix("http://testserver/v1")
    return uuids


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize(
    "sort",
    ["name", "target:desc,name", "target,status,name:desc", "updated_at:desc,target", "status:desc", "uuid,name"],
)
def test_pages_sorted_by_several_keys_join_to_the_whole_list(
    newest: Caller, actions: list[Action], sort: str, limit: int
) -> None:
    make_plan({"a": [], "b": ["a"], "c": ["b"]}, state="ONGOING")
    Action.objects.filter(action_type="stop").update(state="FAILED", updated_at="2026-11-21T12:00:00Z")
    whole = follow_pages(newest, f"/actions?sort={sort}")
    assert follow_pages(newest, f"/actions?sort={sort}&limit={limit}") == whole
    assert len(set(whole)) == 7


def test_the_next_page_keeps_every_value_of_a_filter(newest: Caller, actions: list[Action]) -> None:
    found = follow_pages(newest, "/actions?action=stop&action=nop&limit=1")
    assert found == [str(actions[0].uuid), str(actions[2].uuid)]


def test_list_by_status_takes_one_query_for_any_number_of_actions(
    newest: Caller, django_assert_num_queries: Any
) -> None:
    make_plan({str(number): [str(number - 1)] if number else [] for number in range(60)}, state="ONGOING")
    with django_assert_num_queries(2):  # rights, actions
        assert len(newest.get("/actions/detail?status=WAITING&sort=status,name").json()["actions"]) == 59


@pytest.mark.parametrize("cut", [36, 35, 24, 8])
def test_action_is_found_by_a_uuid_prefix(newest: Caller, cut: int) -> None:
    one = action(make_plan({"a": [], "b": []}), "a")
    Action.objects.filter(pk=one.pk).update(uuid=UUID(SERVERS[0]))
    assert newest.get(f"/actions/{SERVERS[0][:cut]}").json()["uuid"] == SERVERS[0]


def test_action_is_found_by_its_name(newest: Caller, actions: list[Action]) -> None:
    Action.objects.filter(pk=actions[0].pk).update(name="only")
    assert newest.get("/actions/only").json()["uuid"] == str(actions[0].uuid)


def test_name_takes_precedence_over_a_uuid_prefix(newest: Caller, actions: list[Action]) -> None:
    beginning = str(actions[0].uuid)[:8]
    Action.objects.filter(pk=actions[1].pk).update(name=beginning)
    assert newest.get(f"/actions/{beginning}").json()["uuid"] == str(actions[1].uuid)


def test_uuid_takes_precedence_over_a_name_that_looks_like_a_uuid(newest: Caller, actions: list[Action]) -> None:
    Action.objects.filter(pk=actions[1].pk).update(name=str(actions[0].uuid))
    assert newest.get(f"/actions/{actions[0].uuid}").json()["uuid"] == str(actions[0].uuid)
    Action.objects.filter(pk=actions[1].pk).update(name=SERVERS[0])
    assert newest.get(f"/actions/{SERVERS[0]}").json()["uuid"] == str(actions[1].uuid)


def test_ambiguous_name_is_400(newest: Caller, actions: list[Action]) -> None:
    answer = newest.get("/actions/one")
    assert answer.status_code == 400
    assert fault(answer) == "Multiple results found matching the query criteria 'one'. Please be more specific."


def test_ambiguous_uuid_prefix_is_400(newest: Caller, actions: list[Action]) -> None:
    for one, uuid in zip(actions, SERVERS, strict=False):
        Action.objects.filter(pk=one.pk).update(uuid=UUID(uuid))
    assert newest.get("/actions/3f2504e0").status_code == 400


@pytest.mark.parametrize("name", ["nobody", "ffffffff", "-", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"])
def test_unknown_name_or_uuid_is_404(newest: Caller, name: str) -> None:
    answer = newest.get(f"/actions/{name}")
    assert (answer.status_code, fault(answer)) == (404, f"Action {name} could not be found")


def test_name_of_an_action_is_not_accepted_before_1_12(cloud_admin: User, actions: list[Action]) -> None:
    assert Caller(cloud_admin, "1.11").get("/actions/one").status_code == 400


def test_an_action_is_skipped_by_its_name(newest: Caller) -> None:
    one = action(make_plan({"a": []}), "a")
    answer = newest.patch(f"/actions/{one.name}", [{"op": "replace", "path": "/state", "value": "SKIPPED"}])
    assert (answer.status_code, answer.json()["status"]) == (200, "SKIPPED")


def test_a_deleted_action_is_not_found_by_its_name(newest: Caller) -> None:
    plan = make_plan({"a": []})
    name = action(plan, "a").name
    plan.remove()
    assert newest.get(f"/actions/{name}").status_code == 404
    assert newest.get(f"/actions/{name}", **{"X-Show-Deleted": "true"}).status_code == 200
