"""Plans of which a user cancelled single actions."""

from io import StringIO

import pytest

from actions.models import Action
from actions.operations.signals import signal_action
from actions.types.base import DONE, ActionType, Answer, Outcome
from actions.types.nop import Nop
from cluster.models import Server
from plans.applier.applier import Applier
from plans.applier.foreground import Display, ForegroundApplier
from plans.management.commands import apply_plan
from plans.models import ActionPlan
from plans.planning.continuation import continue_plan
from tests.actions.types.clusters.builders import proposed, statuses
from tests.builders import action, make_cluster, make_flavor, make_node, make_plan, make_profile
from tests.plans.deriving import behave, deriving
from tests.plans.inline import InlineExecutor, run_waiting
from tests.watcher_site.notifications.outbox import listen, written_event_types

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def abort_at_next_checkpoint(monkeypatch: pytest.MonkeyPatch, settings: object) -> None:
    settings.POLL_INTERVAL = 0
    monkeypatch.setattr(Nop, "abort", lambda _: True)


def make_plan_with_cancelled_action(
    monkeypatch: pytest.MonkeyPatch, graph: dict[str, list[str]], **columns: str
) -> ActionPlan:
    """Return an ended plan whose action "a" was cancelled during its execution."""
    plan = make_plan(graph, state="PENDING", **columns)
    behave(monkeypatch, a=cancel_itself)
    run_waiting()
    return again(plan)


def cancel_itself(action_type: ActionType) -> Outcome:
    signal_action(action_type.context.action_uuid, Action.Signal.CANCEL, "alice")
    action_type.context.checkpoint()
    return DONE


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def states(plan: ActionPlan) -> dict[str, str]:
    return dict(plan.actions.values_list("input_parameters__message", "state"))


def test_plan_with_a_cancelled_action_ends_cancelled_and_names_the_action(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan_with_cancelled_action(monkeypatch, {"a": [], "b": []})
    assert (plan.state, states(plan)) == ("CANCELLED", {"a": "CANCELLED", "b": "SUCCEEDED"})
    assert plan.status_message == (
        f"1 of 2 actions cancelled: {action(plan, 'a').uuid} (Action execution cancelled. Requested by alice)."
    )


def test_plan_with_a_cancelled_and_a_failed_action_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    behave(monkeypatch, a=cancel_itself, b=lambda _: Outcome(Answer.ERROR, "It broke."))
    run_waiting()
    assert (again(plan).state, states(plan)) == ("FAILED", {"a": "CANCELLED", "b": "FAILED"})


def test_plan_whose_pending_action_was_cancelled_ends_cancelled() -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    signal_action(action(plan, "a").uuid, Action.Signal.CANCEL, "alice")
    run_waiting()
    assert (again(plan).state, states(plan)) == ("CANCELLED", {"a": "CANCELLED", "b": "SUCCEEDED"})


def test_plan_whose_dependent_actions_stop_with_a_cancelled_action_ends_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan_with_cancelled_action(monkeypatch, {"a": [], "b": ["a"]}, on_failure="stop")
    assert (plan.state, states(plan)) == ("CANCELLED", {"a": "CANCELLED", "b": "CANCELLED"})


def test_plan_with_a_cancelled_derived_action_ends_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"b": []}, state="PENDING")
    behave(monkeypatch, b=deriving({"a": [], "c": []}), a=cancel_itself)
    run_waiting()
    assert (again(plan).state, states(plan)) == (
        "CANCELLED",
        {"a": "CANCELLED", "b": "CANCELLED", "c": "SUCCEEDED"},
    )


def test_plan_with_a_skipped_and_no_cancelled_action_succeeds() -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    skipped = action(plan, "a")
    skipped.skip("alice")
    skipped.save_state()
    run_waiting()
    assert again(plan).state == "SUCCEEDED"


def test_cancelled_action_is_repeated_by_the_continuation(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan_with_cancelled_action(monkeypatch, {"a": [], "b": []})
    successor = continue_plan(plan)
    assert states(successor) == {"a": "PENDING"}


def test_plan_with_a_cancelled_action_is_notified_as_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listen()
    make_plan_with_cancelled_action(monkeypatch, {"a": []})
    assert written_event_types("action_plan") == [
        "action_plan.update",
        "action_plan.execution.start",
        "action_plan.update",
        "action_plan.cancel.end",
    ]


def test_apply_plan_exits_with_4_after_a_cancelled_action(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    behave(monkeypatch, a=cancel_itself)
    applier = ForegroundApplier(plan, InlineExecutor(), Display(StringIO()), by="alice")
    monkeypatch.setattr(applier, "stop_on_signals", lambda: None)
    assert apply_plan.EXIT_STATUSES[apply_plan.run(applier, applier.display)] == 4


def test_continuation_creates_the_nodes_that_a_cancelled_scale_out_did_not_create() -> None:
    make_flavor("small", vcpus=1, memory=1024, disk=1)
    make_node("large", vcpus=10, memory=10240, disk=10)
    make_profile("web")
    cluster = make_cluster(size=1)
    plan = proposed("CLUSTER_SCALE_OUT", cluster, count=2)
    applier = Applier(InlineExecutor())
    applier.advance()
    applier.stop()
    signal_action(plan.actions.get(derived_from=None).uuid, Action.Signal.CANCEL, "alice")
    run_waiting()
    assert (again(plan).state, statuses(cluster)) == ("CANCELLED", ["ACTIVE", "INIT", "INIT"])
    continue_plan(plan).launch()
    run_waiting()
    assert statuses(cluster) == ["ACTIVE", "ACTIVE", "ACTIVE"]
    assert Server.objects.present().count() == 2
