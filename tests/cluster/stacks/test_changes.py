"""Decisions on the changes of a stack, made without reading tables."""

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
    """Return by step what is done to whom."""
    return [[f"{one.kind.value} {one.name}" for one in step] for step in change.steps]


def test_what_is_as_it_shall_be_is_left_alone() -> None:
    assert decided(current_server("web"), web=server()) == []


def test_a_mark_has_a_resource_replaced_though_its_server_is_well() -> None:
    assert decided(current_server("web", status="CHECK_FAILED"), web=server()) == [("replace", "web")]


def test_a_cleared_mark_is_none() -> None:
    assert decided(current_server("web", status="CHECK_COMPLETE"), web=server()) == []


def test_what_failed_otherwise_is_replaced_unless_its_server_is_well() -> None:
    assert decided(current_server("web", status="UPDATE_FAILED", is_well=False), web=server()) == [("replace", "web")]
    assert decided(current_server("web", status="UPDATE_FAILED"), web=server()) == [("update", "web")]


def test_what_lost_its_server_is_replaced() -> None:
    assert decided(current_server("web", has_server=False), web=server()) == [("replace", "web")]


def test_what_was_never_begun_is_created() -> None:
    assert decided(current_server("web", status="INIT_COMPLETE", has_server=False), web=server()) == [
        ("create", "web")
    ]


def test_metadata_and_either_a_flavor_or_an_image_are_changed_in_place_and_all_else_takes_another_server() -> None:
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


def test_a_resource_of_another_type_takes_the_place_of_the_former() -> None:
    (change,) = decide(stack(current_server("web")), template(web=group(2))).changes
    assert (change.kind, [len(step) for step in change.steps], change.generation) == ("replace", [2], 1)


def test_a_change_waits_for_what_it_depends_on_also_by_way_of_what_stays() -> None:
    wanted = template(
        a=server("large"), b=server(depends_on=["a"]), c=server("large", depends_on=["b"]), d=server(depends_on=["c"])
    )
    current = stack(*(current_server(name) for name in "abcd"))
    changes = {change.name: change for change in decide(current, wanted).changes}
    assert changes.keys() == {"a", "c"}
    assert changes["c"].after == ["id-a"]


def test_what_goes_waits_for_all_that_depended_on_it() -> None:
    current = stack(
        current_server("base"),
        current_server("middle", depends_on=["base"]),
        current_server("stays", depends_on=["middle"]),
    )
    changes = {change.name: change for change in decide(current, template(stays=server("large"))).changes}
    assert changes["middle"].after == ["id-stays"]
    assert changes["base"].after == ["id-middle"]
    assert {one.name: one.after for one in decide_deletion(current).changes}["base"] == ["id-middle"]


def test_a_group_goes_down_by_failed_ones_then_the_oldest_then_by_name() -> None:
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


def test_a_rolling_update_takes_failed_ones_first_new_ones_with_the_first_and_those_that_go_with_the_last() -> None:
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


def test_a_marked_group_is_made_again_with_other_names_and_the_former_goes() -> None:
    found = current_group("web", group(2), current_server("a"), current_server("b"), status="CHECK_FAILED")
    (change,) = decide(stack(found), template(web=group(2))).changes
    assert (change.kind, change.generation, summarize(change.clearing)) == (
        "replace",
        1,
        [("delete", "a"), ("delete", "b")],
    )
    assert [one.kind for one in change.steps[0]] == ["create", "create"]
    assert not {one.name for one in change.steps[0]}.intersection("ab")


def test_a_marked_stack_within_is_made_again_as_its_resource_would_be() -> None:
    found = current_group("web", group(1), current_server("a"), stack_status="CHECK_FAILED")
    assert decided(found, web=group(1)) == [("replace", "web")]


def test_a_marked_member_has_its_group_updated_and_only_itself_replaced() -> None:
    found = current_group("web", group(2), current_server("a"), current_server("b", status="CHECK_FAILED"))
    (change,) = decide(stack(found), template(web=group(2))).changes
    assert (change.kind, names(change)) == ("update", [["replace b"]])


def test_all_of_a_marked_stack_is_replaced_and_marked_itself_until_then() -> None:
    decision = decide(stack(current_server("web"), status="CHECK_FAILED"), template(web=server(), new=server()))
    assert summarize(decision.changes) == [("replace", "web"), ("create", "new")]
    assert decision.marked == ["id-web"]


def test_what_a_failed_replacement_left_within_is_cleared_away() -> None:
    stray = CurrentStack("stray", "shop-web-stray", "CREATE_FAILED", [current_server("x")])
    found = current_group("web", group(1), current_server("a"), strays=[stray])
    (change,) = decide(stack(found), template(web=group(1))).changes
    assert (change.kind, summarize(change.clearing)) == ("update", [("delete", "x")])


def test_a_decision_is_the_same_when_it_was_kept_as_json() -> None:
    found = current_group("web", group(2), current_server("a"), status="CHECK_FAILED")
    decision = decide(stack(found), template(web=group(2), more=within(one=group(1), two=server(depends_on=["one"]))))
    assert Decision.read(decision.as_data()) == decision


def test_what_was_in_the_place_of_a_server_and_is_left_goes_with_an_update() -> None:
    stray = CurrentStack("stack-old", "shop-web-old", resources=[current_server("member")])
    [change] = decide(stack(current_server("web", strays=[stray])), template(web=server())).changes
    assert (change.kind, summarize(change.clearing)) == ("update", [("delete", "member")])
