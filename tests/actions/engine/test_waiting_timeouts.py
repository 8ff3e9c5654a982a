"""Timeouts of actions that wait for their derived actions."""

from datetime import timedelta

import pytest
from django.utils import timezone

from actions.engine.timeouts import time_out
from actions.models import Action
from actions.operations.signals import signal_action
from actions.types.base import Answer, Outcome
from actions.types.nop import Nop
from cluster.models import Cluster
from plans.applier.applier import Applier
from plans.applier.timeouts import fail_overdue_actions
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.operations.clusters import create_cluster
from plans.operations.signals import signal_plan
from plans.planning.scheduling import renew_hours, schedule
from tests.actions.engine.derived.test_derived_actions import reload, states
from tests.builders import action, make_node, make_plan, make_profile
from tests.plans.deriving import behave, deriving
from tests.plans.inline import InlineExecutor
from watcher_site.state_machine import ConcurrentTransition

pytestmark = pytest.mark.django_db
LATE = "Action failed in waiting: It took longer than 60 seconds"
Signal = Action.Signal


@pytest.fixture
def applier(monkeypatch: pytest.MonkeyPatch) -> Applier:
    monkeypatch.setattr(Nop, "abort", lambda _: True)
    return Applier(InlineExecutor())


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, applier: Applier) -> ActionPlan:
    """Return a plan whose action a, with a timeout of 60 seconds, waits for x, which is ready, and for y."""
    behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}))
    return begin(applier)


def begin(applier: Applier) -> ActionPlan:
    made = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    made.actions.filter(input_parameters__message="a").update(timeout=60)
    applier.advance()
    return made


def advance_time(seconds: float) -> None:
    """Move the deadlines of waiting actions ``seconds`` into the past."""
    for one in Action.objects.exclude(waits_until=None):
        Action.objects.filter(pk=one.pk).update(waits_until=one.waits_until - timedelta(seconds=seconds))


def finish(applier: Applier) -> None:
    for _ in range(10):
        applier.poll_soon()
        applier.advance()
        applier.collect(0)
    applier.stop()


def test_wait_ends_one_timeout_after_the_start(applier: Applier, plan: ActionPlan) -> None:
    a = action(plan, "a")
    assert a.start_time
    assert a.waits_until
    assert a.waits_until - a.start_time == timedelta(seconds=60)


def test_overdue_action_fails_and_its_derived_actions_are_cancelled(applier: Applier, plan: ActionPlan) -> None:
    advance_time(61)
    finish(applier)
    assert states(plan) == {"a": "FAILED", "b": "SUCCEEDED", "x": "CANCELLED", "y": "CANCELLED"}
    assert (reload(plan).state, action(plan, "a").status_message) == ("FAILED", LATE)
    events = action(plan, "a").events.filter(event__in=["timeout", "abort"])
    assert list(events.values_list("event", "result")) == [("timeout", "Error"), ("abort", "Success")]


def test_message_of_a_cancelled_derived_action_names_the_overdue_action(applier: Applier, plan: ActionPlan) -> None:
    advance_time(61)
    fail_overdue_actions(applier.service)
    a = action(plan, "a")
    assert action(plan, "y").status_message == (
        f"Action was cancelled by action {a.uuid}, which took longer than 60 seconds."
    )


def test_action_within_its_timeout_continues_to_wait(applier: Applier, plan: ActionPlan) -> None:
    advance_time(59)
    finish(applier)
    assert set(states(plan).values()) == {"SUCCEEDED"}


def test_timeout_keeps_ended_derived_actions_and_cancels_running_ones(applier: Applier, plan: ActionPlan) -> None:
    x, y = action(plan, "x"), action(plan, "y")
    Action.objects.filter(pk=x.pk).update(state="SUCCEEDED")
    Action.objects.filter(pk=y.pk).update(state="ONGOING")
    advance_time(61)
    assert fail_overdue_actions(applier.service) == 1
    assert (states(plan), action(plan, "y").control) == (
        {"a": "CANCELLING", "b": "PENDING", "x": "SUCCEEDED", "y": "ONGOING"},
        "CANCEL",
    )


def test_overdue_action_fails_if_its_abort_fails(
    applier: Applier, plan: ActionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Nop, "abort")
    advance_time(61)
    finish(applier)
    assert action(plan, "a").status_message == LATE


def test_overdue_action_continues_if_all_its_derived_actions_have_ended(applier: Applier, plan: ActionPlan) -> None:
    plan.actions.filter(input_parameters__message__in="xy").update(state="SUCCEEDED")
    advance_time(61)
    finish(applier)
    assert set(states(plan).values()) == {"SUCCEEDED"}


def test_deferred_continuation_does_not_extend_the_timeout(applier: Applier, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Outcome(Answer.RETRY, "busy", until=timezone.now() + timedelta(hours=9))
    behave(monkeypatch, a=deriving({"x": []}), a_goes_on=lambda _: busy)
    plan = begin(applier)
    plan.actions.filter(input_parameters__message="x").update(state="SUCCEEDED")
    for _ in range(3):
        applier.advance()
        applier.collect(0)
    plan.actions.exclude(due_time=None).update(due_time=timezone.now() + timedelta(hours=1))
    advance_time(61)
    finish(applier)
    assert action(plan, "a").status_message == LATE


def test_applier_does_not_fail_overdue_actions_of_another_applier(applier: Applier, plan: ActionPlan) -> None:
    advance_time(61)
    other = Applier(InlineExecutor(), host="elsewhere")
    assert fail_overdue_actions(other.service) == 0


@pytest.mark.parametrize("columns", [{"state": "ONGOING"}, {"waits_until": timezone.now() + timedelta(hours=1)}])
def test_time_out_raises_if_the_action_has_continued_or_got_more_time(
    applier: Applier, plan: ActionPlan, columns: dict[str, object]
) -> None:
    a = action(plan, "a")
    Action.objects.filter(pk=a.pk).update(**columns)
    a.action_plan = reload(plan)
    with pytest.raises(ConcurrentTransition):
        time_out(a, PlanLease.of(reload(plan), applier.service))
    assert action(plan, "x").state == "PENDING"


def test_applier_that_adopts_the_plan_completes_the_timeout(applier: Applier, plan: ActionPlan) -> None:
    advance_time(61)
    fail_overdue_actions(applier.service)
    applier.service.retire()
    ActionPlan.objects.update(applier=None)
    finish(Applier(InlineExecutor(), host="elsewhere"))
    assert action(plan, "a").status_message == LATE


def test_overdue_actions_of_all_plans_are_found_in_one_query(
    applier: Applier, plan: ActionPlan, django_assert_num_queries: object
) -> None:
    begin(applier)
    with django_assert_num_queries(1):
        fail_overdue_actions(applier.service)


def test_cluster_timeout_fails_the_action_and_the_cluster_status_follows_its_nodes(applier: Applier) -> None:
    make_node()
    profile = make_profile()
    create_cluster("web", str(profile.uuid), desired_capacity=2, timeout=60)
    applier.advance()
    advance_time(61)
    finish(applier)
    one = Action.objects.get(derived_from=None)
    assert (one.action_type, one.state, one.status_message) == ("CLUSTER_CREATE", "FAILED", LATE)
    assert Cluster.objects.get().status in {"ERROR", "WARNING"}


# Times that do not count for the timeout.


def test_delay_before_derived_actions_extends_the_timeout(applier: Applier, monkeypatch: pytest.MonkeyPatch) -> None:
    derive = deriving({"x": []})

    def delayed(self: Nop) -> Outcome:
        return Outcome(Answer.WAIT, derived=derive(self).derived, delay=100)

    behave(monkeypatch, a=delayed)
    a = action(begin(applier), "a")
    assert a.start_time
    assert a.waits_until
    assert a.waits_until - a.start_time == timedelta(seconds=160)


def test_delay_of_a_derived_action_extends_the_timeout_of_the_deriving_action(
    applier: Applier, monkeypatch: pytest.MonkeyPatch
) -> None:
    derive = deriving({"y": []})

    def delayed(self: Nop) -> Outcome:
        return Outcome(Answer.WAIT, derived=derive(self).derived, delay=100)

    behave(monkeypatch, a=deriving({"x": []}), x=delayed)
    plan = begin(applier)
    before = action(plan, "a").waits_until
    applier.collect(0)
    applier.advance()
    after = action(plan, "a").waits_until
    assert before
    assert after
    assert (action(plan, "x").has_derived, after - before) == (True, timedelta(seconds=100))


def test_suspended_plan_does_not_time_out_and_its_resume_restarts_the_timeout(
    applier: Applier, plan: ActionPlan
) -> None:
    signal_plan(plan, Signal.SUSPEND, "alice")
    advance_time(61)
    assert fail_overdue_actions(applier.service) == 0
    signal_plan(reload(plan), Signal.RESUME, "alice")
    advance_time(59)
    assert fail_overdue_actions(applier.service) == 0
    advance_time(2)
    assert fail_overdue_actions(applier.service) == 1


def test_wait_for_a_suspended_action_does_not_time_out_and_its_resume_restarts_the_timeout(
    applier: Applier, plan: ActionPlan
) -> None:
    x = action(plan, "x")
    Action.objects.filter(pk=x.pk).update(state="SUSPENDED")
    advance_time(61)
    assert fail_overdue_actions(applier.service) == 0
    signal_action(x.uuid, Signal.RESUME, "alice")
    Action.objects.filter(pk=x.pk).update(state="ONGOING")
    advance_time(59)
    assert fail_overdue_actions(applier.service) == 0
    advance_time(2)
    assert fail_overdue_actions(applier.service) == 1


WINDOW = {"opens": "22:00", "closes": "06:00"}


def test_closed_window_does_not_time_out_and_its_renewal_restarts_the_timeout(
    applier: Applier, plan: ActionPlan
) -> None:
    now = timezone.now()
    ActionPlan.objects.filter(pk=plan.pk).update(window=WINDOW, closes_at=now - timedelta(minutes=1))
    advance_time(61)
    assert fail_overdue_actions(applier.service) == 0
    assert renew_hours(ActionPlan.objects.all()) == 1
    a, opens_at = action(plan, "a"), reload(plan).opens_at
    assert a.waits_until
    assert opens_at
    assert a.waits_until - opens_at == timedelta(seconds=60)


def test_new_schedule_of_a_plan_restarts_the_timeout(applier: Applier, plan: ActionPlan) -> None:
    advance_time(61)
    schedule(reload(plan), {"window": None})
    assert fail_overdue_actions(applier.service) == 0


def test_restart_does_not_shorten_a_longer_timeout(applier: Applier, plan: ActionPlan) -> None:
    advance_time(-1000)
    before = action(plan, "a").waits_until
    assert plan.actions.restart_timeouts(timezone.now()) == 0
    assert action(plan, "a").waits_until == before
