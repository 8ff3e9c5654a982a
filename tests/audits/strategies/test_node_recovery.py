"""The strategy ``node_recovery``: actions for compute nodes that are down, fencing and refusals."""

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
    """Return the servers that are evacuated, with their destinations."""
    return [
        (found["resource_name"], found.get("destination_node"))
        for kind, found in listed(solution)
        if kind == "evacuate"
    ]


def test_node_that_is_off_is_disabled_and_then_evacuated() -> None:
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


def test_strategies_do_not_enable_an_evacuated_node() -> None:
    assert REASON not in REASONS


def test_disabled_node_is_not_disabled_again() -> None:
    solution = recover(down("compute1", server("web"), status="disabled"), node("compute2"))
    assert [kind for kind, _ in listed(solution)] == ["evacuate"]


@pytest.mark.parametrize("attributes", [{}, {"power_state": "off", "state": "up"}])
def test_no_action_is_proposed_if_no_node_is_down(attributes: dict[str, Any]) -> None:
    solution = recover(node("compute1", server("web"), **attributes))
    assert (listed(solution), set(solution.indicators.values())) == ([], {0})


# Fencing.


@pytest.mark.parametrize("parameters", [{}, {"failed_node": "compute1"}])
def test_node_not_known_to_be_off_is_refused_with_instructions(parameters: dict[str, str]) -> None:
    with pytest.raises(Invalid) as caught:
        recover(down("compute1", server("web"), power_state="on"), node("compute2"), **parameters)
    words = str(caught.value)
    assert words.startswith("Compute node compute1 is down, but not known to be off")
    assert "fencing: power_off" in words
    assert "failed_node and fencing: confirmed" in words


def test_refusal_names_all_nodes_not_known_to_be_off() -> None:
    nodes = [down(name, server("web"), power_state="on") for name in ("compute1", "compute2")]
    with pytest.raises(Invalid, match=r"^Compute nodes compute1, compute2 are down, but not known to be off"):
        recover(*nodes, max_nodes=2)


def test_node_without_servers_is_disabled_without_fencing() -> None:
    solution = recover(down("compute1", power_state="on"), node("compute2"), failed_node="compute1")
    assert [kind for kind, _ in listed(solution)] == ["change_nova_service_state"]


def test_node_with_a_forced_down_service_is_evacuated() -> None:
    failed = down("compute1", server("web"), power_state="on", forced_down=True)
    assert evacuated(recover(failed, node("compute2"))) == [("web", "compute2")]


def test_fencing_power_off_switches_the_node_off_before_evacuation() -> None:
    failed = down("compute1", server("web"), power_state="on")
    solution = recover(failed, node("compute2"), fencing="power_off")
    assert [(action.action_type, list(action.after)) for action in solution.actions] == [
        ("change_nova_service_state", []),
        ("change_node_power_state", [0]),
        ("evacuate", [1]),
    ]
    assert solution.actions[1].input_parameters["fence"] is True


def test_fencing_power_off_ignores_a_node_that_is_off() -> None:
    solution = recover(down("compute1", server("web")), node("compute2"), fencing="power_off")
    assert [kind for kind, _ in listed(solution)] == ["change_nova_service_state", "evacuate"]


def test_evacuations_record_confirmed_fencing() -> None:
    failed = down("compute1", server("web"), power_state="on")
    solution = recover(failed, node("compute2"), failed_node="compute1", fencing="confirmed")
    assert [found["fencing"] for kind, found in listed(solution) if kind == "evacuate"] == ["confirmed"]


def test_only_the_nodes_known_to_be_off_are_evacuated() -> None:
    off, on = down("compute1", server("web")), down("compute2", server("db"), power_state="on")
    solution = recover(off, on, node("compute3"), max_nodes=2)
    assert evacuated(solution) == [("web", "compute3")]
    assert (solution.indicators["failed_nodes_count"], solution.indicators["unfenced_nodes_count"]) == (2, 1)


# Selection of nodes and servers.


def test_more_failed_nodes_than_max_nodes_are_refused() -> None:
    failed = [down(name, server("web")) for name in ("compute1", "compute2")]
    with pytest.raises(Invalid, match=r"^2 compute nodes are down \(compute1, compute2\), more than max_nodes: 1\."):
        recover(*failed, node("compute3"))
    assert len(evacuated(recover(*failed, node("compute3"), max_nodes=2))) == 2
    assert len(evacuated(recover(*failed, node("compute3"), failed_node="compute2"))) == 1


def test_evacuated_node_does_not_count_for_max_nodes() -> None:
    solution = recover(down("compute1"), down("compute2", server("web")), node("compute3"))
    assert evacuated(solution) == [("web", "compute3")]


def test_node_without_active_servers_is_evacuated_only_as_failed_node() -> None:
    resting = down("compute1", server("web", state="stopped"), server("db", state="error"))
    assert listed(recover(resting, node("compute2"))) == []
    assert evacuated(recover(resting, node("compute2"), failed_node="compute1")) == [
        ("web", "compute2"),
        ("db", "compute2"),
    ]


@pytest.mark.parametrize("hostname", ["compute2", "nowhere"])
def test_failed_node_that_is_up_or_unknown_is_refused(hostname: str) -> None:
    with pytest.raises(Invalid, match=f"^The compute node {hostname} (is up|could not be found)"):
        recover(down("compute1"), node("compute2"), failed_node=hostname)


def test_servers_in_other_states_and_excluded_servers_are_counted_but_not_evacuated() -> None:
    states = ["active", "error", "stopped", "paused", "suspended", "rescued", "resized", "shelved", "building"]
    servers = [server(state, state=state) for state in states]
    failed = down("compute1", *servers, server("excluded", watcher_exclude=True), server("locked", locked=True))
    solution = recover(failed, node("compute2", vcpus=64))
    assert [name for name, _ in evacuated(solution)] == ["active", "error", "stopped", "locked"]
    assert solution.indicators["failed_servers_count"] == 11
    assert solution.indicators["evacuated_servers_count"] == 4


@pytest.mark.parametrize(("only_marked", "names"), [(False, ["b", "d", "a", "c"]), (True, ["b", "d"])])
def test_marked_servers_are_evacuated_first_or_alone(only_marked: bool, names: list[str]) -> None:
    values = {"a": {}, "b": {"HA_Enabled": "True"}, "c": {"HA_Enabled": "no"}, "d": {"HA_Enabled": True}}
    failed = down("compute1", *(server(name, metadata=metadata) for name, metadata in values.items()))
    assert [name for name, _ in evacuated(recover(failed, node("compute2"), only_marked=only_marked))] == names


def test_metadata_key_selects_the_mark_of_servers() -> None:
    failed = down("compute1", server("a", metadata={"HA_Enabled": "True"}), server("b", metadata={"vital": "yes"}))
    solution = recover(failed, node("compute2"), only_marked=True, metadata_key="vital")
    assert evacuated(solution) == [("b", "compute2")]


# Destinations.


def test_servers_are_spread_by_free_memory_and_unplaceable_servers_have_no_destination() -> None:
    failed = down("compute1", server("a"), server("b"), server("c", vcpus=20))
    others = [node("compute2", capacity_memory=6000), node("compute3", capacity_memory=5000)]
    assert evacuated(recover(failed, *others)) == [("a", "compute2"), ("b", "compute3"), ("c", None)]


@pytest.mark.parametrize("attributes", [{"status": "disabled"}, {"power_state": "off"}, {"zone": "elsewhere"}])
def test_disabled_off_or_wrong_zone_node_is_no_destination(attributes: dict[str, Any]) -> None:
    failed = down("compute1", server("web", pinned_az="nova"))
    assert evacuated(recover(failed, node("compute2", **attributes))) == [("web", None)]


def test_backup_node_is_filled_before_other_nodes() -> None:
    failed = down("compute1", server("a", vcpus=12), server("b", vcpus=12))
    solution = recover(failed, node("compute2"), node("compute3", capacity_memory=4000), backup_node="compute3")
    assert evacuated(solution) == [("a", "compute3"), ("b", "compute2")]


def test_backup_node_disabled_by_a_strategy_is_enabled_once_before_evacuations() -> None:
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
def test_backup_node_that_is_down_or_disabled_by_a_user_is_refused(attributes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Invalid, match=f"^The compute node compute2 {reason}"):
        recover(down("compute1", server("a")), node("compute2", **attributes), backup_node="compute2")


def test_solution_reports_the_indicators_of_its_goal() -> None:
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
def test_invalid_parameters_are_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        create_audit(audit_type="ONESHOT", **AIM, parameters=parameters)


CONFIRMED = {"failed_node": "compute1", "fencing": "confirmed"}


@pytest.mark.django_db
def test_fencing_confirmed_is_accepted_for_oneshot_audits_only() -> None:
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


def run_audit(**fields: Any) -> Audit:
    audit = create_audit(audit_type="ONESHOT", **AIM, **fields)
    DecisionEngine().run_next_audit()
    return Audit.objects.get(pk=audit.pk)


@pytest.mark.django_db
def test_audit_evacuates_a_node_and_the_next_audit_proposes_no_action() -> None:
    failed = make_node("compute1", state="down")
    make_node("compute2")
    for name, state in (("web", "active"), ("db", "stopped"), ("broken", "error")):
        make_server(name, failed, state=state)
    audit = run_audit(auto_trigger=True, parameters={"fencing": "power_off"})
    run_waiting()
    assert ActionPlan.objects.get(audit=audit).state == "SUCCEEDED"
    found = dict(Server.objects.filter(node__hostname="compute2").values_list("name", "state"))
    assert found == {"web": "active", "db": "stopped", "broken": "active"}
    row = ComputeNode.objects.get(hostname="compute1")
    assert (row.status, row.disabled_reason, row.power_state) == ("disabled", "watcher_evacuated", "off")
    assert list(ActionPlan.objects.get(audit=run_audit()).actions.all()) == []


@pytest.mark.django_db
def test_audit_of_a_node_not_known_to_be_off_fails_with_its_name() -> None:
    make_server("web", make_node("compute1", state="down"))
    make_node("compute2")
    audit = run_audit(auto_trigger=True)
    assert (audit.state, ActionPlan.objects.count()) == ("FAILED", 0)
    assert "Compute node compute1 is down, but not known to be off" in (audit.status_message or "")
