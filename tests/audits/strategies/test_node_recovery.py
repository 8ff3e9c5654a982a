"""The actions that node_recovery proposes for compute nodes that are down, and what it refuses to propose."""

from typing import Any

import pytest

from audits.engine.engine import DecisionEngine
from audits.goals import GOALS
from audits.models import Audit
from audits.operations.audit_templates import create_audit_template
from audits.operations.changes import change_audit
from audits.operations.creation import create_audit
from audits.strategies.base import REASONS, Solution
from audits.strategies.node_recovery import REASON
from cluster.models import ComputeNode, Server
from cluster.snapshot import NodeSnapshot, ServerSnapshot
from plans.models import ActionPlan
from tests.audits.clusters import cluster, listed, node, server, solve
from tests.builders import make_node, make_server
from tests.plans.inline import run_waiting
from watcher_site.refusals import Invalid

AIM: dict[str, Any] = {"goal": "node_recovery", "strategy": "node_recovery"}


def down(hostname: str, *servers: ServerSnapshot, **attributes: Any) -> NodeSnapshot:
    """Return a node that is down and switched off."""
    return node(hostname, *servers, **{"state": "down", "power_state": "off", **attributes})


def recover(*nodes: NodeSnapshot, **parameters: Any) -> Solution:
    return solve("node_recovery", cluster(*nodes), **parameters)


def evacuated(solution: Solution) -> list[tuple[str, str | None]]:
    """Return the servers that are evacuated, and where to."""
    return [
        (found["resource_name"], found.get("destination_node"))
        for kind, found in listed(solution)
        if kind == "evacuate"
    ]


def test_a_node_that_is_off_is_disabled_and_then_evacuated() -> None:
    failed, web = down("compute1", server("web")), {"resource_name": "web", "source_node": "compute1"}
    web["resource_id"] = str(failed.servers[0].uuid)
    solution = recover(failed, node("compute2"))
    named = {"resource_id": str(failed.uuid), "resource_name": "compute1"}
    assert listed(solution) == [
        (
            "change_nova_service_state",
            {**named, "state": "disabled", "disabled_reason": "watcher_evacuated", "revertible": False},
        ),
        ("evacuate", {**web, "destination_node": "compute2"}),
    ]
    assert [action.after for action in solution.actions] == [(), [0]]


def test_the_node_stays_disabled_until_a_person_enables_it() -> None:
    assert REASON not in REASONS


def test_a_node_that_is_disabled_already_stays_so() -> None:
    solution = recover(down("compute1", server("web"), status="disabled"), node("compute2"))
    assert [kind for kind, _ in listed(solution)] == ["evacuate"]


@pytest.mark.parametrize("attributes", [{}, {"power_state": "off", "state": "up"}])
def test_nothing_is_done_where_no_node_is_down(attributes: dict[str, Any]) -> None:
    solution = recover(node("compute1", server("web"), **attributes))
    assert (listed(solution), set(solution.indicators.values())) == ([], {0})


# Fencing.


@pytest.mark.parametrize("parameters", [{}, {"failed_node": "compute1"}])
def test_a_node_that_may_run_is_not_evacuated_and_the_reason_says_how_to_confirm(parameters: dict[str, str]) -> None:
    with pytest.raises(Invalid) as caught:
        recover(down("compute1", server("web"), power_state="on"), node("compute2"), **parameters)
    words = str(caught.value)
    assert words.startswith("Compute node compute1 is down, but not known to be off")
    assert "fencing: power_off" in words
    assert "failed_node and fencing: confirmed" in words


def test_the_reason_names_all_nodes_that_may_run() -> None:
    nodes = [down(name, server("web"), power_state="on") for name in ("compute1", "compute2")]
    with pytest.raises(Invalid, match=r"^Compute nodes compute1, compute2 are down, but not known to be off"):
        recover(*nodes, max_nodes=2)


def test_a_node_without_servers_is_disabled_without_fencing() -> None:
    solution = recover(down("compute1", power_state="on"), node("compute2"), failed_node="compute1")
    assert [kind for kind, _ in listed(solution)] == ["change_nova_service_state"]


def test_a_node_whose_service_was_forced_down_is_evacuated() -> None:
    failed = down("compute1", server("web"), power_state="on", forced_down=True)
    assert evacuated(recover(failed, node("compute2"))) == [("web", "compute2")]


def test_a_node_is_switched_off_before_it_is_evacuated_where_that_is_requested() -> None:
    failed = down("compute1", server("web"), power_state="on")
    solution = recover(failed, node("compute2"), fencing="power_off")
    assert [(action.action_type, list(action.after)) for action in solution.actions] == [
        ("change_nova_service_state", []),
        ("change_node_power_state", [0]),
        ("evacuate", [1]),
    ]
    assert solution.actions[1].input_parameters["fence"] is True


def test_a_node_that_is_off_is_not_switched_off_again() -> None:
    solution = recover(down("compute1", server("web")), node("compute2"), fencing="power_off")
    assert [kind for kind, _ in listed(solution)] == ["change_nova_service_state", "evacuate"]


def test_the_actions_tell_that_a_person_confirmed_it() -> None:
    failed = down("compute1", server("web"), power_state="on")
    solution = recover(failed, node("compute2"), failed_node="compute1", fencing="confirmed")
    assert [found["fencing"] for kind, found in listed(solution) if kind == "evacuate"] == ["confirmed"]


def test_of_two_nodes_only_that_which_is_off_is_evacuated() -> None:
    off, on = down("compute1", server("web")), down("compute2", server("db"), power_state="on")
    solution = recover(off, on, node("compute3"), max_nodes=2)
    assert evacuated(solution) == [("web", "compute3")]
    assert (solution.indicators["failed_nodes_count"], solution.indicators["unfenced_nodes_count"]) == (2, 1)


# Which nodes and servers.


def test_more_nodes_than_allowed_are_left_to_a_person() -> None:
    failed = [down(name, server("web")) for name in ("compute1", "compute2")]
    with pytest.raises(Invalid, match=r"^2 compute nodes are down \(compute1, compute2\), more than max_nodes: 1\."):
        recover(*failed, node("compute3"))
    assert len(evacuated(recover(*failed, node("compute3"), max_nodes=2))) == 2
    assert len(evacuated(recover(*failed, node("compute3"), failed_node="compute2"))) == 1


def test_a_node_that_was_evacuated_does_not_count() -> None:
    solution = recover(down("compute1"), down("compute2", server("web")), node("compute3"))
    assert evacuated(solution) == [("web", "compute3")]


def test_a_node_without_an_active_server_is_evacuated_only_on_request() -> None:
    resting = down("compute1", server("web", state="stopped"), server("db", state="error"))
    assert listed(recover(resting, node("compute2"))) == []
    assert evacuated(recover(resting, node("compute2"), failed_node="compute1")) == [
        ("web", "compute2"),
        ("db", "compute2"),
    ]


@pytest.mark.parametrize("hostname", ["compute2", "nowhere"])
def test_a_node_that_is_up_or_unknown_is_refused(hostname: str) -> None:
    with pytest.raises(Invalid, match=f"^The compute node {hostname} (is up|could not be found)"):
        recover(down("compute1"), node("compute2"), failed_node=hostname)


def test_servers_in_other_states_and_excluded_ones_stay_and_are_counted() -> None:
    states = ["active", "error", "stopped", "paused", "suspended", "rescued", "resized", "shelved", "building"]
    servers = [server(state, state=state) for state in states]
    failed = down("compute1", *servers, server("excluded", watcher_exclude=True), server("locked", locked=True))
    solution = recover(failed, node("compute2", vcpus=64))
    assert [name for name, _ in evacuated(solution)] == ["active", "error", "stopped", "locked"]
    assert solution.indicators["failed_servers_count"] == 11
    assert solution.indicators["evacuated_servers_count"] == 4


@pytest.mark.parametrize(("only_marked", "names"), [(False, ["b", "d", "a", "c"]), (True, ["b", "d"])])
def test_servers_that_are_marked_come_first_or_alone(only_marked: bool, names: list[str]) -> None:
    values = {"a": {}, "b": {"HA_Enabled": "True"}, "c": {"HA_Enabled": "no"}, "d": {"HA_Enabled": True}}
    failed = down("compute1", *(server(name, metadata=metadata) for name, metadata in values.items()))
    assert [name for name, _ in evacuated(recover(failed, node("compute2"), only_marked=only_marked))] == names


def test_another_key_may_mark_servers() -> None:
    failed = down("compute1", server("a", metadata={"HA_Enabled": "True"}), server("b", metadata={"vital": "yes"}))
    solution = recover(failed, node("compute2"), only_marked=True, metadata_key="vital")
    assert evacuated(solution) == [("b", "compute2")]


# Destinations.


def test_servers_are_spread_by_free_memory_and_what_fits_nowhere_is_left_to_the_cloud() -> None:
    failed = down("compute1", server("a"), server("b"), server("c", vcpus=20))
    others = [node("compute2", capacity_memory=6000), node("compute3", capacity_memory=5000)]
    assert evacuated(recover(failed, *others)) == [("a", "compute2"), ("b", "compute3"), ("c", None)]


@pytest.mark.parametrize("attributes", [{"status": "disabled"}, {"power_state": "off"}, {"zone": "elsewhere"}])
def test_no_server_goes_where_the_scheduler_would_not_put_it(attributes: dict[str, Any]) -> None:
    failed = down("compute1", server("web", pinned_az="nova"))
    assert evacuated(recover(failed, node("compute2", **attributes))) == [("web", None)]


def test_the_backup_node_takes_as_many_as_it_can() -> None:
    failed = down("compute1", server("a", vcpus=12), server("b", vcpus=12))
    solution = recover(failed, node("compute2"), node("compute3", capacity_memory=4000), backup_node="compute3")
    assert evacuated(solution) == [("a", "compute3"), ("b", "compute2")]


def test_a_backup_node_that_a_strategy_disabled_is_enabled_once_before() -> None:
    failed = [down("compute1", server("a")), down("compute2", server("b"))]
    backup = node("compute3", status="disabled", disabled_reason="watcher_disabled")
    solution = recover(*failed, backup, backup_node="compute3", max_nodes=2)
    assert evacuated(solution) == [("a", "compute3"), ("b", "compute3")]
    kinds = [(action.action_type, list(action.after)) for action in solution.actions]
    assert kinds == [
        ("change_nova_service_state", []),
        ("change_nova_service_state", []),
        ("evacuate", [0, 1]),
        ("change_nova_service_state", []),
        ("evacuate", [3, 1]),
    ]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [({"state": "down"}, "is down"), ({"status": "disabled", "disabled_reason": "disks"}, "was disabled by a person")],
)
def test_a_backup_node_that_cannot_be_used_is_refused(attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Invalid, match=f"^The compute node compute2 {reason}"):
        recover(down("compute1", server("a")), node("compute2", **attributes), backup_node="compute2")


def test_it_reports_what_its_goal_asks_for() -> None:
    solution = recover(down("compute1", server("a"), server("b", state="paused")), node("compute2"))
    GOALS["node_recovery"].check(solution.indicators)
    [ratio] = GOALS["node_recovery"].global_efficacy(solution.indicators)
    assert (ratio["name"], ratio["value"]) == ("evacuated_servers_ratio", 50)


# Audits.


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"fencing": "confirmed"}, "failed_node: is required with fencing confirmed"),
        ({"failed_node": "compute1", "backup_node": "compute1"}, "backup_node: must not be the failed_node"),
        ({"fencing": "maybe"}, "fencing"),
        ({"max_nodes": 0}, "max_nodes"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        create_audit(audit_type="ONESHOT", **AIM, parameters=parameters)


CONFIRMED = {"failed_node": "compute1", "fencing": "confirmed"}


@pytest.mark.django_db
def test_a_confirmation_holds_for_one_audit_alone() -> None:
    words = "fencing: confirmed says what a person has just seen"
    with pytest.raises(Invalid, match=words):
        create_audit(audit_type="CONTINUOUS", interval="60", **AIM, parameters=CONFIRMED)
    with pytest.raises(Invalid, match=words):
        create_audit(audit_type="EVENT", **AIM, parameters=CONFIRMED)
    with pytest.raises(Invalid, match=words):
        create_audit_template(name="evacuate", **AIM, default_parameters=CONFIRMED)
    series = create_audit(audit_type="CONTINUOUS", interval="60", **AIM)
    with pytest.raises(Invalid, match=words):
        change_audit(series, [{"op": "replace", "path": "/parameters", "value": CONFIRMED}])
    assert create_audit(audit_type="ONESHOT", **AIM, parameters=CONFIRMED).parameters["fencing"] == "confirmed"


def answer(**fields: Any) -> Audit:
    audit = create_audit(audit_type="ONESHOT", **AIM, **fields)
    DecisionEngine().run_next_audit()
    return Audit.objects.get(pk=audit.pk)


@pytest.mark.django_db
def test_an_audit_evacuates_a_node_and_the_next_one_has_nothing_to_do() -> None:
    failed = make_node("compute1", state="down")
    make_node("compute2")
    for name, state in (("web", "active"), ("db", "stopped"), ("broken", "error")):
        make_server(name, failed, state=state)
    audit = answer(auto_trigger=True, parameters={"fencing": "power_off"})
    run_waiting()
    assert ActionPlan.objects.get(audit=audit).state == "SUCCEEDED"
    found = dict(Server.objects.filter(node__hostname="compute2").values_list("name", "state"))
    assert found == {"web": "active", "db": "stopped", "broken": "active"}
    row = ComputeNode.objects.get(hostname="compute1")
    assert (row.status, row.disabled_reason, row.power_state) == ("disabled", "watcher_evacuated", "off")
    assert list(ActionPlan.objects.get(audit=answer()).actions.all()) == []


@pytest.mark.django_db
def test_an_audit_of_a_node_that_may_run_fails_and_names_it() -> None:
    make_server("web", make_node("compute1", state="down"))
    make_node("compute2")
    audit = answer(auto_trigger=True)
    assert (audit.state, ActionPlan.objects.count()) == ("FAILED", 0)
    assert "Compute node compute1 is down, but not known to be off" in (audit.status_message or "")
