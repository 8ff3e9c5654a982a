"""Decisions on the changes of a stack, made without queries."""

from datetime import UTC, datetime, timedelta
from typing import Any

from cluster.stacks.changes import decide, decide_deletion
from cluster.stacks.current import CurrentResource, CurrentStack
from cluster.stacks.decisions import Change, Decision
from tests.actions.types.stacks.builders import group, server, template, within

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def current_server(name: str, wanted: dict[str, Any] | None = None, *, age: int = 0, **attributes: Any) -> Any:
    known = {
        "uuid": f"id-{name}",
        "type": "server",
        "status": "CREATE_COMPLETE",
        "has_server": True,
        "is_well": True,
        "made_at": NOW - timedelta(hours=age),
        "properties": (wanted or server())["properties"],
    }
    return CurrentResource(name=name, **{**known, **attributes})


def current_group(name: str, wanted: dict[str, Any], *members: Any, **attributes: Any) -> CurrentResource:
    nested = CurrentStack(f"stack-{name}", f"shop-{name}", attributes.pop("stack_status", "CREATE_COMPLETE"), members)
    known = {"uuid": f"id-{name}", "type": wanted["type"], "status": "CREATE_COMPLETE", "nested": nested}
    return CurrentResource(name=name, **{**known, "properties": wanted["properties"], **attributes})


def stack(*resources: CurrentResource, status: str = "CREATE_COMPLETE") -> CurrentStack:
    return CurrentStack("id", "shop", status, resources)


def decided(*current: CurrentResource, **wanted: Any) -> list[tuple[str, str]]:
    return summarize(decide(stack(*current), template(**wanted)).changes)


def summarize(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.kind.value, change.name) for change in changes]


def names(change: Change) -> list[list[str]]:
    """Return the kind and the name of each change, by step."""
    return [[f"{one.kind.value} {one.name}" for one in step] for step in change.steps]


def test_unchanged_resource_has_no_change() -> None:
    assert decided(current_server("web"), web=server()) == []


def test_resource_marked_unhealthy_is_replaced_although_its_server_is_healthy() -> None:
    assert decided(current_server("web", status="CHECK_FAILED"), web=server()) == [("replace", "web")]


def test_resource_with_a_cleared_mark_has_no_change() -> None:
    assert decided(current_server("web", status="CHECK_COMPLETE"), web=server()) == []


def test_failed_resource_is_replaced_if_its_server_is_unhealthy_and_updated_otherwise() -> None:
    assert decided(current_server("web", status="UPDATE_FAILED", is_well=False), web=server()) == [("replace", "web")]
    assert decided(current_server("web", status="UPDATE_FAILED"), web=server()) == [("update", "web")]


def test_resource_without_a_server_is_replaced() -> None:
    assert decided(current_server("web", has_server=False), web=server()) == [("replace", "web")]


def test_resource_not_yet_started_is_created() -> None:
    assert decided(current_server("web", status="INIT_COMPLETE", has_server=False), web=server()) == [
        ("create", "web")
    ]


def test_metadata_and_flavor_or_image_are_updated_in_place_and_other_changes_replace_the_server() -> None:
    found = current_server("web", server(image="old"))
    for wanted, kind in [
        (server("large", image="old"), "update"),
        (server(image="new"), "update"),
        (server("large", image="new"), "replace"),
        (server(), "replace"),
        (server(image="old", metadata={"a": "b"}), "update"),
        (server("large", image="old", metadata={"a": "b"}), "update"),
        (server(image="new", metadata={"a": "b"}), "update"),
        (server(metadata={"a": "b"}), "replace"),
        (server(image="old", availability_zone="east"), "replace"),
    ]:
        assert decided(found, web=wanted) == [(kind, "web")]


def test_resource_with_another_type_is_replaced() -> None:
    (change,) = decide(stack(current_server("web")), template(web=group(2))).changes
    assert (change.kind, [len(step) for step in change.steps], change.generation) == ("replace", [2], 1)


def test_change_waits_for_its_dependencies_also_through_unchanged_resources() -> None:
    wanted = template(
        a=server("large"), b=server(depends_on=["a"]), c=server("large", depends_on=["b"]), d=server(depends_on=["c"])
    )
    current = stack(*(current_server(name) for name in "abcd"))
    changes = {change.name: change for change in decide(current, wanted).changes}
    assert changes.keys() == {"a", "c"}
    assert changes["c"].after == ["id-a"]


def test_deletion_waits_for_the_former_dependents() -> None:
    current = stack(
        current_server("base"),
        current_server("middle", depends_on=["base"]),
        current_server("stays", depends_on=["middle"]),
    )
    changes = {change.name: change for change in decide(current, template(stays=server("large"))).changes}
    assert changes["middle"].after == ["id-stays"]
    assert changes["base"].after == ["id-middle"]
    assert {one.name: one.after for one in decide_deletion(current).changes}["base"] == ["id-middle"]


def test_scale_in_removes_failed_members_then_the_oldest_then_by_name() -> None:
    members = [
        current_server("young", age=1),
        current_server("twin-b", age=5),
        current_server("twin-a", age=5),
        current_server("marked", status="CHECK_FAILED"),
    ]
    found = current_group("web", group(4), *members)
    (change,) = decide(stack(found), template(web=group(2))).changes
    assert names(change) == [["delete marked", "delete twin-a"]]
    assert decide(stack(found), template(web=group(0))).templates["stack-web"]["resources"] == {}


def test_rolling_update_changes_failed_members_first_and_removes_members_in_the_last_batch() -> None:
    members = [current_server(name, age=9 - int(name)) for name in "1234"]
    members[3] = current_server("4", status="CHECK_FAILED")
    found = current_group("web", group(4), *members)
    (change,) = decide(stack(found), template(web=group(4, server("large"), batch=2, pause=60))).changes
    assert names(change) == [["replace 4", "update 1"], ["update 2", "update 3"]]
    assert change.pause == 60
    (change,) = decide(stack(found), template(web=group(5, server("large"), batch=3))).changes
    assert [len(step) for step in change.steps] == [4, 1]
    (change,) = decide(stack(found), template(web=group(3, server("large"), batch=2))).changes
    assert names(change) == [["update 1", "update 2"], ["update 3", "delete 4"]]


def test_marked_group_is_replaced_with_members_of_other_names() -> None:
    found = current_group("web", group(2), current_server("a"), current_server("b"), status="CHECK_FAILED")
    (change,) = decide(stack(found), template(web=group(2))).changes
    assert (change.kind, change.generation, summarize(change.clearing)) == (
        "replace",
        1,
        [("delete", "a"), ("delete", "b")],
    )
    assert [one.kind for one in change.steps[0]] == ["create", "create"]
    assert not {one.name for one in change.steps[0]}.intersection("ab")


def test_group_with_a_marked_stack_is_replaced() -> None:
    found = current_group("web", group(1), current_server("a"), stack_status="CHECK_FAILED")
    assert decided(found, web=group(1)) == [("replace", "web")]


def test_marked_member_is_replaced_by_an_update_of_its_group() -> None:
    found = current_group("web", group(2), current_server("a"), current_server("b", status="CHECK_FAILED"))
    (change,) = decide(stack(found), template(web=group(2))).changes
    assert (change.kind, names(change)) == ("update", [["replace b"]])


def test_resources_of_a_marked_stack_are_replaced_and_marked() -> None:
    decision = decide(stack(current_server("web"), status="CHECK_FAILED"), template(web=server(), new=server()))
    assert summarize(decision.changes) == [("replace", "web"), ("create", "new")]
    assert decision.marked == ["id-web"]


def test_stray_stack_of_a_failed_replacement_is_deleted() -> None:
    stray = CurrentStack("stray", "shop-web-stray", "CREATE_FAILED", [current_server("x")])
    found = current_group("web", group(1), current_server("a"), strays=[stray])
    (change,) = decide(stack(found), template(web=group(1))).changes
    assert (change.kind, summarize(change.clearing)) == ("update", [("delete", "x")])


def test_decision_survives_a_round_trip_through_json() -> None:
    found = current_group("web", group(2), current_server("a"), status="CHECK_FAILED")
    decision = decide(stack(found), template(web=group(2), more=within(one=group(1), two=server(depends_on=["one"]))))
    assert Decision.read(decision.as_data()) == decision


def test_stray_stack_of_a_server_is_deleted_by_an_update() -> None:
    stray = CurrentStack("stack-old", "shop-web-old", resources=[current_server("member")])
    [change] = decide(stack(current_server("web", strays=[stray])), template(web=server())).changes
    assert (change.kind, summarize(change.clearing)) == ("update", [("delete", "member")])
