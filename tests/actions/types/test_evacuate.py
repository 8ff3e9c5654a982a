"""evacuate on the embedded cloud: from a node known to be off, once, to a node with capacity."""

from typing import Any

import pytest

from actions.models import Action, ActionEvent
from actions.types.base import (
    DONE,
    ActionContext,
    ActionFailed,
    ActionSkipException,
    ActionType,
    Answer,
    Recovery,
    make,
)
from cluster.drivers.base import NoValidHost
from cluster.drivers.ownership import acting_for
from cluster.models import ComputeNode, Server
from plans.models import ActionPlan
from plans.preflight import preflight
from tests.builders import make_node, make_plan, make_server
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db
GONE = "4f1b1c8e-5d67-4d3a-9a53-1d0d9f2f8a11"


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


@pytest.fixture
def failed() -> ComputeNode:
    """Return a disabled node that is down and off, in a cloud with another node with capacity."""
    make_node("compute2")
    return make_node("compute1", state="down", power_state="off", status="disabled")


@pytest.fixture
def server(failed: ComputeNode) -> Server:
    return make_server(node=failed)


def evacuate(server: Server | str, context: ActionContext | None = None, **parameters: Any) -> ActionType:
    named = {"resource_id": str(getattr(server, "uuid", server)), "source_node": "compute1", **parameters}
    return make("evacuate", named, context or ActionContext())


def change(**columns: Any) -> None:
    ComputeNode.objects.filter(hostname="compute1").update(**columns)


def reload(server: Server) -> Server:
    return Server.objects.select_related("node").get(pk=server.pk)


def host(server: Server) -> str:
    node = reload(server).node
    assert node
    return str(node.hostname)


def test_server_is_moved_and_the_outputs_contain_the_destination(server: Server) -> None:
    begun = evacuate(server)
    begun.pre_condition()
    assert begun.execute() == DONE
    assert (host(server), begun.context.outputs) == ("compute2", {"destination_node": "compute2"})


@pytest.mark.parametrize("columns", [{"power_state": "on"}, {"power_state": "on", "status": "enabled"}])
def test_evacuation_from_a_node_that_may_be_running_fails(server: Server, columns: dict[str, str]) -> None:
    change(**columns)
    begun = evacuate(server)
    with pytest.raises(ActionFailed, match=r"^Compute node compute1 is (down, but not known to be off|enabled)"):
        begun.pre_condition()
    with pytest.raises(ActionFailed):
        begun.execute()
    assert (host(server), reload(server).task_state) == ("compute1", None)


@pytest.mark.parametrize(("columns", "parameters"), [({"forced_down": True}, {}), ({}, {"fencing": "confirmed"})])
def test_forced_down_node_or_confirmed_fencing_allows_the_evacuation(
    server: Server, columns: dict[str, Any], parameters: dict[str, Any]
) -> None:
    change(power_state="on", **columns)
    begun = evacuate(server, **parameters)
    begun.pre_condition()
    assert begun.execute() == DONE


def test_evacuation_from_a_node_that_is_up_is_skipped(server: Server) -> None:
    change(state="up", forced_down=True)
    words = f"Compute node compute1 is up again: instance {server.uuid} stays there"
    begun = evacuate(server, fencing="confirmed")
    with pytest.raises(ActionSkipException, match=f"^{words}$"):
        begun.pre_condition()
    outcome = begun.execute()
    assert (outcome.answer, outcome.reason, host(server)) == (Answer.CANCEL, words, "compute1")


def test_deleted_server_is_skipped(failed: ComputeNode) -> None:
    with pytest.raises(ActionSkipException, match=f"^Instance {GONE} no longer exists$"):
        evacuate(GONE).pre_condition()
    assert evacuate(GONE).execute().answer is Answer.CANCEL


def test_server_on_another_node_is_skipped(failed: ComputeNode) -> None:
    server = make_server(node=ComputeNode.objects.get(hostname="compute2"))
    with pytest.raises(ActionSkipException, match=r"is no longer on compute node compute1 \(currently on compute2\)$"):
        evacuate(server).pre_condition()


@pytest.mark.parametrize("state", ["paused", "suspended", "rescued", "shelved"])
def test_server_in_a_state_that_nova_refuses_fails_with_advice(failed: ComputeNode, state: str) -> None:
    with pytest.raises(ActionFailed, match=r"can not be evacuated while it is \w+: reset its state to error first$"):
        evacuate(make_server(node=failed, state=state)).pre_condition()


@pytest.mark.parametrize("columns", [{"locked": True}, {"state": "error"}, {"state": "stopped"}])
def test_locked_erroneous_and_stopped_servers_are_evacuated(failed: ComputeNode, columns: dict[str, Any]) -> None:
    server = make_server(node=failed, **columns)
    begun = evacuate(server)
    begun.pre_condition()
    assert begun.execute() == DONE
    assert (reload(server).state, host(server)) == (
        "stopped" if columns.get("state") == "stopped" else "active",
        "compute2",
    )


@pytest.mark.parametrize(
    "wanted", [{"memory": 1024}, {"status": "disabled"}, {"state": "down"}, {"hostname": "another"}]
)
def test_scheduler_chooses_the_host_if_the_destination_is_unsuitable(server: Server, wanted: dict[str, Any]) -> None:
    make_node(**{"hostname": "wanted", **wanted})
    assert evacuate(server, destination_node="wanted").execute() == DONE
    assert host(server) in {"compute2", "another"}


def test_server_stays_if_no_node_has_capacity(failed: ComputeNode) -> None:
    server = make_server(node=failed, memory=100000)
    with pytest.raises(NoValidHost):
        evacuate(server, destination_node="compute2").execute()
    assert host(server) == "compute1"


def interrupted(server: Server) -> dict[str, Any]:
    """Kill a process in the middle of an evacuation, and return the data that it had saved."""
    data: dict[str, Any] = {}
    with acting_for("action", 1), pytest.raises(Killed):
        evacuate(server, ActionContext(checkpoint=die, data=data, keep_data=data.update)).execute()
    assert reload(server).task_state == "rebuilding"
    return data


def test_interrupted_evacuation_is_repeated(server: Server) -> None:
    data = interrupted(server)
    with acting_for("action", 2):
        assert evacuate(server, ActionContext(data=data)).recover() is Recovery.AGAIN
        assert evacuate(server, ActionContext(data=data)).execute() == DONE
    assert (host(server), reload(server).operation_owner) == ("compute2", "")


def test_interrupted_evacuation_is_cancelled_if_the_node_is_up(server: Server) -> None:
    data = interrupted(server)
    change(state="up")
    with acting_for("action", 2):
        evacuate(server, ActionContext(data=data)).recover()
        assert evacuate(server, ActionContext(data=data)).execute().answer is Answer.CANCEL
    assert (host(server), reload(server).task_state) == ("compute1", None)


def test_completed_evacuation_is_not_repeated(server: Server) -> None:
    evacuate(server).execute()
    taken_up = evacuate(server)
    assert taken_up.recover() is Recovery.DONE
    assert taken_up.context.outputs == {"destination_node": "compute2"}


def test_stopped_server_in_error_is_stopped_after_its_evacuation(failed: ComputeNode) -> None:
    server = make_server(node=failed, state="stopped")
    data = interrupted(server)
    Server.objects.filter(pk=server.pk).update(state="error")
    with acting_for("action", 2):
        evacuate(server, ActionContext(data=data)).recover()
        evacuate(server, ActionContext(data=data)).execute()
    assert (host(server), reload(server).state) == ("compute2", "stopped")


def test_abort_ends_the_evacuation_and_the_server_stays(server: Server) -> None:
    interrupted(server)
    with acting_for("action", 1):
        assert evacuate(server).abort() is True
    assert (host(server), reload(server).task_state) == ("compute1", None)


def test_abort_and_recover_of_a_deleted_server_succeed(failed: ComputeNode) -> None:
    assert evacuate(GONE).abort() is True
    assert evacuate(GONE).recover() is Recovery.DONE


def test_completed_evacuation_cannot_be_aborted(server: Server) -> None:
    evacuate(server).execute()
    assert evacuate(server).abort() is False


def test_recover_fails_if_the_server_is_in_error_on_its_new_node(server: Server) -> None:
    evacuate(server).execute()
    Server.objects.filter(pk=server.pk).update(state="error")
    with pytest.raises(ActionFailed, match=r"is ERROR on compute2 after its evacuation from compute1$"):
        evacuate(server).recover()


def test_evacuation_cannot_be_reverted(server: Server) -> None:
    with pytest.raises(ActionFailed, match="Actions of type evacuate can not be reverted"):
        evacuate(server).revert()


@pytest.mark.parametrize("parameters", [{"fencing": "yes"}, {"source_node": ""}, {"destination_node": ""}, {"x": 1}])
def test_invalid_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ActionFailed, match=r"^Invalid input parameters: "):
        evacuate(GONE, **parameters)


# In a plan.


def plan_of(server: Server, failed: ComputeNode, **parameters: Any) -> ActionPlan:
    """Return a plan that disables a node, switches it off and evacuates its server, in this order."""
    node = {"resource_id": str(failed.uuid), "resource_name": "compute1"}
    reason = {"disabled_reason": "watcher_evacuated", "revertible": False}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("change_nova_service_state", {**node, "state": "disabled", **reason}),
        ("change_node_power_state", {**node, "state": "off", "fence": True}),
        ("evacuate", {"resource_id": str(server.uuid), "source_node": "compute1", **parameters}),
    ]
    plan = make_plan()
    before: list[Action] = []
    for kind, given in steps:
        made = Action.objects.create(action_plan=plan, action_type=kind, input_parameters=given)
        made.parents.set(before)
        before = [made]
    return plan


def states(plan: ActionPlan) -> dict[str, str]:
    return dict(Action.objects.filter(action_plan=plan).values_list("action_type", "state"))


def test_plan_fences_and_evacuates_a_node_as_its_preflight_predicts(server: Server, failed: ComputeNode) -> None:
    change(power_state="on", status="enabled")
    plan = plan_of(server, failed)
    assert {found.outcome for found in preflight(plan).prospects} == {"SUCCEEDED"}
    plan.launch()
    run_waiting()
    assert {*states(plan).values()} == {"SUCCEEDED"}
    node = ComputeNode.objects.get(hostname="compute1")
    assert (host(server), node.power_state, node.status, node.disabled_reason) == (
        "compute2",
        "off",
        "disabled",
        "watcher_evacuated",
    )


def test_node_that_is_up_is_neither_fenced_nor_evacuated(server: Server, failed: ComputeNode) -> None:
    change(power_state="on", status="enabled", state="up")
    plan = plan_of(server, failed)
    plan.launch()
    run_waiting()
    assert states(plan)["change_node_power_state"] == states(plan)["evacuate"] == "SKIPPED"
    assert (host(server), ComputeNode.objects.get(hostname="compute1").power_state) == ("compute1", "on")


def test_rollback_keeps_a_fenced_node_disabled_and_off(server: Server, failed: ComputeNode, settings: Any) -> None:
    settings.ROLLBACK = True
    change(power_state="on", status="enabled")
    plan = plan_of(make_server("too-large", failed, memory=100000), failed)
    plan.launch()
    run_waiting()
    assert states(plan)["evacuate"] == "FAILED"
    node = ComputeNode.objects.get(hostname="compute1")
    assert (node.status, node.power_state) == ("disabled", "off")
    details = ActionEvent.objects.filter(action__action_plan=plan, event="revert").values_list("details", flat=True)
    assert {*details} == {
        "nova-compute service compute1 stays disabled until a person changes that",
        "The compute node was fenced: it stays off until a person switches it on",
    }


def test_fence_requires_the_power_state_off(failed: ComputeNode) -> None:
    with pytest.raises(ActionFailed, match=r"^Invalid input parameters: state"):
        make("change_node_power_state", {"resource_id": "x", "state": "on", "fence": True}, ActionContext())


def test_second_of_two_evacuations_of_a_server_is_skipped(server: Server, failed: ComputeNode) -> None:
    plans = [plan_of(server, failed) for _ in range(2)]
    for plan in plans:
        plan.launch()
    run_waiting()
    assert [states(plan)["evacuate"] for plan in plans] == ["SUCCEEDED", "SKIPPED"]
