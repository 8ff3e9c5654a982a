"""Rollback: the actions of a failed plan are reverted in reverse order, if configured."""

import pytest
from django.db import OperationalError
from django.db.models import F
from django.utils import timezone

from actions.engine.execution import MAX_RECOVERIES
from actions.models import Action, ActionEvent
from actions.types.nop import Nop
from cluster.models import ComputeNode, Server
from plans.models import ActionPlan
from tests.builders import action, make_node, make_plan, make_server
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


def failing_plan() -> ActionPlan:
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"]}, state="PENDING")
    found = action(plan, "c")
    Action.objects.filter(pk=found.pk).update(input_parameters={"message": "c", "fail_execute": True})
    return plan


def plan_that_fails_after(*steps: tuple[str, dict[str, object]]) -> ActionPlan:
    """Make a plan of these actions in sequence and a last action that fails."""
    plan = make_plan(state="PENDING")
    last = None
    for action_type, parameters in (*steps, ("nop", {"message": None, "fail_execute": True})):
        made = Action.objects.create(action_plan=plan, action_type=action_type, input_parameters=parameters)
        made.parents.set([last] if last else [])
        last = made
    return plan


def set_service(node: ComputeNode, state: str) -> tuple[str, dict[str, object]]:
    return "change_nova_service_state", {
        "resource_id": str(node.uuid),
        "resource_name": node.hostname,
        "state": state,
    }


def migrate(server: Server, source: ComputeNode, destination: ComputeNode) -> tuple[str, dict[str, object]]:
    hosts = {"source_node": source.hostname, "destination_node": destination.hostname}
    return "migrate", {"resource_id": str(server.uuid), "migration_type": "live", **hosts}


def reverts(plan: ActionPlan) -> list[tuple[str, str]]:
    """Return the states or types of the reverted actions with the results, in order of execution."""
    events = ActionEvent.objects.filter(action__action_plan=plan, event="revert").order_by("pk")
    return [
        (event.action.input_parameters.get("state") or event.action.action_type, event.result)
        for event in events.select_related("action")
    ]


def reverted(plan: ActionPlan) -> list[str]:
    events = ActionEvent.objects.filter(action__action_plan=plan, event="revert").order_by("pk")
    return list(events.values_list("action__input_parameters__message", flat=True))


def test_failed_plan_is_reverted_in_reverse_order(settings: object) -> None:
    settings.ROLLBACK = True
    plan = failing_plan()
    run_waiting()
    assert reverted(plan) == ["b", "a"]
    assert plan.actions.count_states() == {"SUCCEEDED": 2, "FAILED": 1}
    settled = ActionPlan.objects.get(pk=plan.pk)
    assert settled.state == "FAILED"
    assert (settled.status_message or "").startswith("1 of 3 actions failed: ")
    assert (settled.status_message or "").endswith(" 2 actions reverted.")


def test_message_counts_actions_that_cannot_be_reverted(settings: object, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ROLLBACK = True
    monkeypatch.delattr("actions.types.nop.Nop.revert")
    plan = failing_plan()
    run_waiting()
    message = ActionPlan.objects.get(pk=plan.pk).status_message
    assert (message or "").endswith(" 0 actions reverted, 2 could not be.")


def test_failed_plan_is_not_reverted_by_default() -> None:
    plan = failing_plan()
    run_waiting()
    assert reverted(plan) == []


def test_succeeded_plan_is_not_reverted(settings: object) -> None:
    settings.ROLLBACK = True
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert reverted(plan) == []


def test_interrupted_rollback_continues_with_the_next_action(settings: object) -> None:
    plan = failing_plan()
    run_waiting()
    done = {"event": "revert", "result": "Success", "finish_time": timezone.now()}
    ActionEvent.objects.create(action=action(plan, "b"), **done)
    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING")
    settings.ROLLBACK = True
    run_waiting()
    assert reverted(plan) == ["b", "a"]


def test_revert_that_is_always_interrupted_fails_after_the_maximum(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ROLLBACK = True
    settings.POLL_INTERVAL = 0
    calls = []

    def lose(self: Nop) -> bool:
        calls.append(self.context.action_uuid)
        raise OperationalError("gone")

    monkeypatch.setattr(Nop, "revert", lose)
    plan = failing_plan()
    run_waiting()
    assert len(calls) == 2 * MAX_RECOVERIES
    last = ActionEvent.objects.filter(action=action(plan, "a"), event="revert").last()
    assert (last.result, last.details) == ("Error", "It was interrupted 30 times. It is not tried again.")
    message = ActionPlan.objects.get(pk=plan.pk).status_message
    assert message.endswith("0 actions reverted, 2 could not be.")


def test_revert_is_recorded_although_the_plan_is_cancelled_during_it(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reverted action is executed again if the plan is continued."""
    settings.ROLLBACK = True
    plan = failing_plan()

    def revert(self: Nop) -> bool:
        ActionPlan.objects.get(pk=plan.pk).abandon("alice")
        return True

    monkeypatch.setattr(Nop, "revert", revert)
    run_waiting()
    undone = action(plan, "b")
    assert list(undone.events.filter(event="revert").values_list("result", flat=True)) == ["Success"]
    assert undone.owner is None
    assert undone in plan.actions.not_achieved()


def test_outcome_of_a_revert_is_not_recorded_after_another_attempt_began(
    settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ROLLBACK = True
    plan = failing_plan()

    def revert(self: Nop) -> bool:
        Action.objects.filter(uuid=self.context.action_uuid).update(attempt=F("attempt") + 1)
        ActionPlan.objects.get(pk=plan.pk).abandon("alice")
        return True

    monkeypatch.setattr(Nop, "revert", revert)
    run_waiting()
    assert action(plan, "b").events.get(event="revert").result is None


def test_nodes_are_enabled_before_servers_return_and_disabled_afterwards(
    settings: object,
) -> None:
    settings.ROLLBACK = True
    emptied, backup = make_node("cmp1"), make_node("cmp2", status="disabled")
    server = make_server(node=emptied)
    plan = plan_that_fails_after(
        set_service(backup, "enabled"), set_service(emptied, "disabled"), migrate(server, emptied, backup)
    )
    run_waiting()
    assert reverts(plan) == [("disabled", "Success"), ("migrate", "Success"), ("enabled", "Success")]
    server.refresh_from_db()
    assert (server.node, *ComputeNode.objects.order_by("hostname").values_list("status", flat=True)) == (
        emptied,
        "enabled",
        "disabled",
    )


def test_node_disabled_and_enabled_by_the_plan_is_enabled_before_servers_return(settings: object) -> None:
    settings.ROLLBACK = True
    emptied, other = make_node("cmp1"), make_node("cmp2")
    server = make_server(node=emptied)
    plan = plan_that_fails_after(
        set_service(emptied, "disabled"), migrate(server, emptied, other), set_service(emptied, "enabled")
    )
    run_waiting()
    assert reverts(plan) == [("enabled", "Success"), ("disabled", "Success"), ("migrate", "Success")]
    emptied.refresh_from_db()
    server.refresh_from_db()
    assert (server.node, emptied.status) == (emptied, "enabled")
