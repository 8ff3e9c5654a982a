"""Actions that the strategy ``replace_unhealthy`` proposes for objects that are marked unhealthy."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from audits.goals import GOALS
from audits.strategies.base import Solution
from cluster.snapshot.health import HealthSnapshot, StackHealth, UnhealthyPart
from tests.audits.clusters import cluster, listed, solve
from watcher_site.refusals import Invalid


def part(name: str, status: str = "CHECK_FAILED", *, after: tuple[UUID, ...] = (), **attributes: Any) -> UnhealthyPart:
    return UnhealthyPart(uuid4(), name, status, depends_on=after, **attributes)


def shop(*marked: UnhealthyPart, **attributes: Any) -> StackHealth:
    return StackHealth(uuid4(), "shop", attributes.pop("status", "CREATE_COMPLETE"), marked=list(marked), **attributes)


def decide(*stacks: StackHealth, parameters: Any = None, **others: Any) -> Solution:
    health = HealthSnapshot(stacks, **others)
    return solve("replace_unhealthy", cluster(health=health), **(parameters or {}))


def acted_on(solution: Solution) -> list[tuple[str, str]]:
    return [(kind, inputs["resource_name"]) for kind, inputs in listed(solution)]


def test_marked_resource_is_replaced_with_its_expected_status() -> None:
    web = part("web")
    named = {"resource_id": str(web.uuid), "resource_name": "web", "expected_status": "CHECK_FAILED"}
    assert listed(decide(shop(web))) == [("replace_resource", named)]


def test_resource_is_replaced_after_its_dependencies() -> None:
    db = part("db")
    solution = decide(shop(part("web", after=(db.uuid,)), db))
    assert [(one.input_parameters["resource_name"], one.after) for one in solution.actions] == [
        ("db", []),
        ("web", [0]),
    ]


def test_nested_resource_is_replaced_before_dependents_of_its_outer_resource() -> None:
    group = uuid4()
    member, web = part("member", within=(uuid4(), group)), part("web", after=(group,))
    solution = decide(shop(web, member))
    assert [(one.input_parameters["resource_name"], one.after) for one in solution.actions] == [
        ("member", []),
        ("web", [0]),
    ]


def test_marked_stack_is_updated() -> None:
    assert acted_on(decide(shop(is_marked=True))) == [("update_stack", "shop")]


@pytest.mark.parametrize(("requested", "replaced"), [(False, []), (True, [("replace_resource", "web")])])
def test_failed_resource_is_replaced_only_with_replace_failed(requested: bool, replaced: Any) -> None:
    stack = shop(broken=[part("web", "CREATE_FAILED")])
    assert acted_on(decide(stack, parameters={"replace_failed": requested})) == replaced


def test_marked_servers_are_rebuilt_and_marked_nodes_recovered() -> None:
    solution = decide(servers=[part("lone", "active")], nodes=[part("web-1", "ERROR")])
    assert acted_on(solution) == [("rebuild", "lone"), ("NODE_RECOVER", "web-1")]


def test_server_that_cannot_be_rebuilt_is_counted_but_not_rebuilt() -> None:
    solution = decide(servers=[part("lone", "paused")])
    assert (acted_on(solution), solution.indicators["unhealthy_resources_count"]) == ([], 1)


def test_servers_and_nodes_are_ignored_without_rebuild_servers_and_recover_nodes() -> None:
    off = {"rebuild_servers": False, "recover_nodes": False}
    assert not decide(servers=[part("lone", "active")], nodes=[part("web-1")], parameters=off).actions


@pytest.mark.parametrize(
    "stack",
    [
        shop(is_marked=True, is_occupied=True),
        shop(part("web", is_occupied=True)),
        shop(part("web"), status="UPDATE_IN_PROGRESS"),
    ],
    ids=["stack", "resource", "under way"],
)
def test_stack_or_resource_with_another_operation_is_ignored(stack: StackHealth) -> None:
    assert not decide(stack).actions


@pytest.mark.parametrize("by_uuid", [True, False])
def test_only_given_stacks_are_repaired(by_uuid: bool) -> None:
    stack, other = shop(part("web")), StackHealth(uuid4(), "other", "CREATE_COMPLETE", marked=[part("db")])
    named = {"stacks": [str(stack.uuid) if by_uuid else "shop"]}
    assert acted_on(decide(stack, other, servers=[part("lone", "active")], parameters=named)) == [
        ("replace_resource", "web")
    ]


def test_unknown_stack_is_refused() -> None:
    with pytest.raises(Invalid, match="stacks: there is no stack blog"):
        decide(shop(), parameters={"stacks": ["blog"]})


def test_solution_reports_the_indicators_of_its_goal() -> None:
    solution = decide(shop(part("web"), part("db", is_occupied=True)))
    GOALS["stack_health"].check(solution.indicators)
    assert GOALS["stack_health"].global_efficacy(solution.indicators)[0]["value"] == 50
