"""Solutions, and the strategies ``dummy``, ``actuator`` and ``host_maintenance``."""

from typing import Any

import pytest

from audits.strategies.actuator import Actuator
from audits.strategies.base import Solution
from audits.strategies.dummy import Dummy
from audits.strategies.host_maintenance import HostMaintenance
from cluster.snapshot import NodeSnapshot
from tests.audits.clusters import cluster, listed, node, server
from watcher_site.refusals import Invalid


def maintain(*nodes: NodeSnapshot, **parameters: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the actions that empty the first node, by type and parameters."""
    defaults = {"maintenance_node": "compute1", "disable_live_migration": False, "disable_cold_migration": False}
    return listed(HostMaintenance().solve(cluster(*nodes), {**defaults, **parameters}))


def disabling(of: NodeSnapshot) -> tuple[str, dict[str, Any]]:
    return "change_nova_service_state", {
        "resource_id": str(of.uuid),
        "resource_name": of.hostname,
        "state": "disabled",
        "disabled_reason": "watcher_maintaining",
    }


def test_identical_action_is_proposed_once() -> None:
    solution = Solution()
    solution.add("nop", {"message": "hello"})
    solution.add("nop", {"message": "hello"})
    assert len(solution.actions) == 1


def test_resource_id_in_the_input_parameters_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^resource_id: "):
        Solution().add("stop", {"resource_id": "x"})


def test_dummy_proposes_two_nops_and_a_sleep() -> None:
    solution = Dummy().solve(cluster(), {"para1": 1.5, "para2": "bye"})
    assert listed(solution) == [
        ("nop", {"message": "hello World"}),
        ("nop", {"message": "bye"}),
        ("sleep", {"duration": 1.5}),
    ]


def test_actuator_proposes_the_given_actions() -> None:
    actions = [
        {"action_type": "stop", "input_parameters": {}, "resource_id": "x"},
        {"action_type": "nop", "input_parameters": {"message": "m"}},
    ]
    solution = Actuator().solve(cluster(), {"actions": actions})
    assert listed(solution) == [("stop", {"resource_id": "x"}), ("nop", {"message": "m"})]


def test_node_without_servers_is_only_disabled() -> None:
    empty = node("compute1")
    assert maintain(empty) == [disabling(empty)]


def test_servers_migrate_without_destination_if_no_backup_node_is_given() -> None:
    web = server("web-1")
    busy = node("compute1", web)
    assert maintain(busy) == [
        disabling(busy),
        (
            "migrate",
            {
                "resource_id": str(web.uuid),
                "resource_name": "web-1",
                "migration_type": "live",
                "source_node": "compute1",
            },
        ),
    ]


def test_servers_migrate_to_the_backup_node_if_it_has_capacity() -> None:
    plan = maintain(node("compute1", server("web-1")), node("compute2"), backup_node="compute2")
    assert plan[1][1]["destination_node"] == "compute2"


def test_servers_migrate_without_destination_if_the_backup_node_lacks_capacity() -> None:
    servers = server("web-1"), server("web-2")
    plan = maintain(node("compute1", *servers), node("compute2", capacity_vcpus=3), backup_node="compute2")
    assert ["destination_node" in parameters for _, parameters in plan[1:]] == [False, False]


def test_backup_node_that_is_down_is_refused() -> None:
    with pytest.raises(Invalid, match="compute2 is down: it can not be the backup_node"):
        maintain(node("compute1", server("web-1")), node("compute2", state="down"), backup_node="compute2")


@pytest.mark.parametrize("reason", [None, "broken fan"])
def test_backup_node_disabled_by_a_user_is_refused(reason: str | None) -> None:
    backup = node("compute2", status="disabled", disabled_reason=reason)
    with pytest.raises(Invalid, match="compute2 was disabled by a person"):
        maintain(node("compute1", server("web-1")), backup, backup_node="compute2")


def test_backup_node_disabled_by_a_strategy_is_enabled_first() -> None:
    backup = node("compute2", status="disabled", disabled_reason="watcher_disabled")
    plan = maintain(node("compute1", server("web-1")), backup, backup_node="compute2")
    assert [(name, parameters["resource_name"], parameters.get("state")) for name, parameters in plan] == [
        ("change_nova_service_state", "compute2", "enabled"),
        ("change_nova_service_state", "compute1", "disabled"),
        ("migrate", "web-1", None),
    ]


@pytest.mark.parametrize(
    ("state", "parameters", "expected"),
    [
        ("active", {}, ["live"]),
        ("stopped", {}, ["cold"]),
        ("active", {"disable_live_migration": True}, ["cold"]),
        ("active", {"disable_cold_migration": True}, ["live"]),
        ("stopped", {"disable_live_migration": True}, ["cold"]),
        ("stopped", {"disable_cold_migration": True}, []),
        ("active", {"disable_live_migration": True, "disable_cold_migration": True}, ["stop"]),
        ("stopped", {"disable_live_migration": True, "disable_cold_migration": True}, []),
    ],
)
def test_migration_type_depends_on_the_state_and_the_disabled_migrations(
    state: str, parameters: dict[str, bool], expected: list[str]
) -> None:
    plan = maintain(node("compute1", server("web-1", state=state)), **parameters)
    assert [action.get("migration_type", name) for name, action in plan[1:]] == expected


def test_server_excluded_by_the_scope_is_not_migrated() -> None:
    busy = node("compute1", server("web-1", watcher_exclude=True))
    assert maintain(busy) == [disabling(busy)]


@pytest.mark.parametrize("parameter", ["maintenance_node", "backup_node"])
def test_unknown_node_is_refused_with_its_name(parameter: str) -> None:
    with pytest.raises(Invalid, match="The compute node compute9 could not be found"):
        maintain(node("compute1", server("web-1")), **{parameter: "compute9"})


@pytest.mark.parametrize(
    ("wishes", "rule"),
    [
        ({"name": "x" * 256}, "name: must have at most 255 characters"),
        ({"timeout": -1}, "timeout: must be from 0 to"),
        ({"timeout": 2**31}, "timeout: must be from 0 to"),
    ],
)
def test_invalid_name_or_timeout_of_an_action_is_refused(wishes: dict[str, Any], rule: str) -> None:
    with pytest.raises(Invalid, match=rule):
        Solution().add("nop", {}, **wishes)
