"""Signals to an action in each of its states, and their immediate effect."""

from typing import Any

import pytest

from actions.models import Action
from actions.operations.signals import signal_action
from plans.models import ActionPlan
from tests.builders import action, make_plan
from watcher_site.refusals import Conflict, NotFound

pytestmark = pytest.mark.django_db
Signal = Action.Signal


def make_action(state: str, plan_state: str = "ONGOING", **columns: Any) -> Action:
    plan = make_plan({"a": []}, state=plan_state)
    plan.actions.update(state=state, **columns)
    return plan.actions.get()


def reload(one: Action) -> Action:
    return Action.objects.get(pk=one.pk)


def expected(one: Action, status: str, *statuses: str) -> str:
    return f"Action ({one.uuid}) is in status ({status}) while expected status must be one of ({', '.join(statuses)})."


@pytest.mark.parametrize(
    ("state", "signal"),
    [("ONGOING", "CANCEL"), ("SUSPENDED", "CANCEL"), ("ONGOING", "SUSPEND"), ("SUSPENDED", "RESUME")],
)
def test_signal_to_a_running_action_is_stored_for_its_worker(state: str, signal: str) -> None:
    one = make_action(state)
    signal_action(one.uuid, Signal(signal), "alice")
    assert (reload(one).state, reload(one).control) == (state, signal)


@pytest.mark.parametrize("plan_state", ["RECOMMENDED", "PENDING", "ONGOING"])
def test_pending_action_is_cancelled_at_once(plan_state: str) -> None:
    one = make_action("PENDING", plan_state)
    signal_action(one.uuid, Signal.CANCEL, "alice")
    assert (reload(one).state, reload(one).status_message) == ("CANCELLED", "Action was cancelled by alice.")


@pytest.mark.parametrize(
    ("state", "signal", "status", "statuses"),
    [
        ("PENDING", "SUSPEND", "READY", ["RUNNING"]),
        ("PENDING", "RESUME", "READY", ["SUSPENDED"]),
        ("ONGOING", "RESUME", "RUNNING", ["SUSPENDED"]),
        ("SUSPENDED", "SUSPEND", "SUSPENDED", ["RUNNING"]),
        *(
            (state, "CANCEL", state, ["INIT", "READY", "WAITING", "RUNNING", "SUSPENDED"])
            for state in sorted(Action.FINAL)
        ),
        *((state, "SUSPEND", state, ["RUNNING"]) for state in sorted(Action.FINAL)),
    ],
)
def test_signal_in_a_wrong_status_is_refused_and_changes_nothing(
    state: str, signal: str, status: str, statuses: list[str]
) -> None:
    one = make_action(state)
    with pytest.raises(Conflict) as refusal:
        signal_action(one.uuid, Signal(signal), "alice")
    assert str(refusal.value) == expected(one, status, *statuses)
    assert (reload(one).state, reload(one).control, one.events.count()) == (state, None, 0)


@pytest.mark.parametrize(
    ("state", "signal"),
    [("ONGOING", "SUSPEND"), ("SUSPENDED", "RESUME"), ("ONGOING", "CANCEL"), ("SUSPENDED", "CANCEL")],
)
def test_repeated_signal_is_ignored(state: str, signal: str) -> None:
    one = make_action(state)
    for _ in range(2):
        signal_action(one.uuid, Signal(signal), "alice")
    assert (reload(one).control, one.events.count()) == (signal, 1)


def test_cancel_of_an_action_in_abort_is_ignored() -> None:
    one = make_action("CANCELLING")
    assert signal_action(one.uuid, Signal.CANCEL, "alice").control is None
    assert one.events.count() == 0


@pytest.mark.parametrize(
    ("state", "first", "second"), [("ONGOING", "SUSPEND", "RESUME"), ("SUSPENDED", "RESUME", "SUSPEND")]
)
def test_opposite_signal_clears_an_unhandled_signal(state: str, first: str, second: str) -> None:
    one = make_action(state, control=first)
    signal_action(one.uuid, Signal(second), "alice")
    assert (reload(one).state, reload(one).control) == (state, None)


@pytest.mark.parametrize(("state", "signal"), [("ONGOING", "SUSPEND"), ("SUSPENDED", "RESUME")])
def test_cancel_replaces_an_earlier_signal_and_cannot_be_withdrawn(state: str, signal: str) -> None:
    one = make_action(state, control=signal)
    signal_action(one.uuid, Signal.CANCEL, "alice")
    with pytest.raises(Conflict) as refusal:
        signal_action(one.uuid, Signal(signal), "bob")
    assert str(refusal.value) == f"Action ({one.uuid}) is being cancelled."
    assert reload(one).control == "CANCEL"


@pytest.mark.parametrize("signal", ["SUSPEND", "RESUME"])
def test_suspend_and_resume_are_refused_while_the_plan_is_cancelled(signal: str) -> None:
    one = make_action("ONGOING" if signal == "SUSPEND" else "SUSPENDED", "CANCELLING")
    with pytest.raises(Conflict, match="is being cancelled"):
        signal_action(one.uuid, Signal(signal), "alice")


def test_signal_records_an_event_that_names_the_user() -> None:
    one = make_action("ONGOING", attempt=2)
    signal_action(one.uuid, Signal.SUSPEND, "alice")
    event = one.events.get()
    assert (event.event, event.result, event.details, event.attempt) == (
        "signal_suspend",
        "Success",
        "Requested by alice.",
        2,
    )
    assert event.start_time == event.finish_time


def test_plan_counts_the_signals_to_its_actions() -> None:
    one = make_action("ONGOING")
    signal_action(one.uuid, Signal.SUSPEND, "alice")
    signal_action(one.uuid, Signal.CANCEL, "alice")
    assert ActionPlan.objects.get().signals == 2


@pytest.mark.parametrize(("on_failure", "child"), [("stop", "CANCELLED"), ("continue", "PENDING")])
def test_children_are_cancelled_with_the_action_if_the_plan_stops_on_failure(on_failure: str, child: str) -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"]}, state="ONGOING", on_failure=on_failure)
    signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
    assert [action(plan, name).state for name in "abc"] == ["CANCELLED", child, child]


def test_signal_to_an_unknown_action_raises_not_found() -> None:
    with pytest.raises(NotFound):
        signal_action("7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11", Signal.CANCEL, "alice")


def test_cancel_of_a_waiting_action_cancels_derived_actions_at_any_depth() -> None:
    """The waiting actions are CANCELLING, to be aborted after their derived actions."""
    plan = make_plan({"a": ["b"], "b": ["c"], "c": [], "other": []}, state="ONGOING")
    for child, parent in (("b", "a"), ("c", "b")):
        Action.objects.filter(pk=action(plan, child).pk).update(derived_from=action(plan, parent))
    plan.actions.filter(input_parameters__message__in=["a", "b"]).update(has_derived=True)
    plan.actions.filter(input_parameters__message="c").update(state="ONGOING")
    signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
    found = {one.input_parameters["message"]: (one.state, one.control) for one in plan.actions.all()}
    assert found == {
        "a": ("CANCELLING", None),
        "b": ("CANCELLING", None),
        "c": ("ONGOING", "CANCEL"),
        "other": ("PENDING", None),
    }
