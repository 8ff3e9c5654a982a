"""A plan that raises an error in the applier is set aside with the reason, and the other plans continue."""

from collections.abc import Callable, Set
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client
from django.utils import timezone

from actions.models import Action
from plans.applier import applier as appliers
from plans.applier import faults, timeouts
from plans.applier.applier import Applier
from plans.applier.plan_run import PlanRun
from plans.models import ActionPlan
from plans.models.querysets import ActionPlanQuerySet
from plans.models.refusals import PlanOperation, is_plan_allowing
from plans.operations.signals import signal_plan
from tests.builders import action, make_plan
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.models import Service
from watcher_site.state_machine import StatefulModel

pytestmark = pytest.mark.django_db
MESSAGE = "Action plan was set aside: ZeroDivisionError in the applier. The log of "
GRAPH: dict[str, list[str]] = {"a": [], "b": ["a"]}


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def states(plan: ActionPlan) -> list[str]:
    return list(plan.actions.order_by("pk").values_list("state", flat=True))


def break_for(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan, owner: Any, name: str) -> None:
    """Replace a function by one that raises an error for one plan, which its first arguments identify."""
    original = getattr(owner, name)

    def broken(*arguments: Any, **options: Any) -> Any:
        for one in arguments:
            keys = (getattr(one, "plan_pk", None), getattr(one, "action_plan_id", None))
            if plan.pk in keys or (isinstance(one, ActionPlan) and one.pk == plan.pk):
                return 1 / 0
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, broken)


def make_orphaned(plan: ActionPlan) -> None:
    """Change a plan to one whose applier died while its first action was executed."""
    gone = Service.register(Service.APPLIER, "gone")
    Service.objects.filter(pk=gone.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING", applier=gone)
    Action.objects.filter(pk=action(plan, "a").pk).update(state="ONGOING", attempt=1, owner=gone)


def leave_unchanged(plan: ActionPlan) -> None:
    pass


@pytest.mark.parametrize(
    ("owner", "name", "prepare"),
    [
        (Applier, "begin", leave_unchanged),
        (PlanRun, "__init__", leave_unchanged),
        (PlanRun, "scan_all", leave_unchanged),
        (PlanRun, "choose_job", leave_unchanged),
        (PlanRun, "job", leave_unchanged),
        (PlanRun, "prefetch", leave_unchanged),
        (Applier, "continue_after", leave_unchanged),
        (Applier, "continues", leave_unchanged),
        (Applier, "conclude", leave_unchanged),
        (appliers, "complete_plan", leave_unchanged),
        (Applier, "take_over", make_orphaned),
        (PlanRun, "recover", make_orphaned),
        (PlanRun, "load_deferred", make_orphaned),
    ],
)
def test_plan_that_raises_an_error_in_the_applier_fails_and_another_succeeds(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, prepare: Callable[[ActionPlan], None]
) -> None:
    broken, sound = make_plan(GRAPH, state="PENDING"), make_plan(GRAPH, state="PENDING")
    prepare(broken)
    break_for(monkeypatch, broken, owner, name)
    run_waiting(slots=4)
    assert (again(sound).state, states(sound)) == ("SUCCEEDED", ["SUCCEEDED"] * 2)
    assert again(broken).state == "FAILED"
    assert (again(broken).status_message or "").startswith(MESSAGE)
    assert set(states(broken)) <= Action.FINAL
    assert again(broken).applier is None


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> ActionPlan:
    """A plan of a dead applier that raises an error when another applier takes it over."""
    plan = make_plan(GRAPH, state="PENDING")
    make_orphaned(plan)
    break_for(monkeypatch, plan, PlanRun, "recover")
    return plan


def test_started_actions_fail_and_pending_actions_are_cancelled(faulty: ActionPlan) -> None:
    run_waiting()
    assert states(faulty) == ["FAILED", "CANCELLED"]
    assert action(faulty, "a").status_message == faults.ACTION_MESSAGE


def test_log_names_the_plan_and_the_exception(faulty: ActionPlan, caplog: pytest.LogCaptureFixture) -> None:
    run_waiting()
    logged = [record.msg for record in caplog.records if "plan set aside" in record.getMessage()]
    assert [(entry["plan"], type(entry["exc_info"])) for entry in logged if isinstance(entry, dict)] == [
        (str(faulty.uuid), ZeroDivisionError)
    ]


def test_console_shows_the_reason(faulty: ActionPlan, cloud_admin: User, client: Client) -> None:
    run_waiting()
    client.force_login(cloud_admin)
    assert MESSAGE in client.get(f"/console/plans/{faulty.uuid}/").content.decode()


def test_plan_that_was_set_aside_can_be_continued(faulty: ActionPlan) -> None:
    run_waiting()
    assert is_plan_allowing(PlanOperation.CONTINUE, again(faulty))


def test_lost_database_connection_does_not_fail_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(GRAPH, state="PENDING")
    problems = [OperationalError("the connection was lost")]
    original = PlanRun.choose_job

    def choose(run: PlanRun, free_queues: Set[str]) -> Any:
        if problems:
            raise problems.pop()
        return original(run, free_queues)

    monkeypatch.setattr(PlanRun, "choose_job", choose)
    # The connection is the test's, and so is its transaction.
    monkeypatch.setattr(BaseDatabaseWrapper, "close", lambda connection: None)
    run_waiting()
    assert (problems, again(plan).state) == ([], "SUCCEEDED")


def test_plan_is_set_aside_after_its_running_actions_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    executor = InlineExecutor(slots=2)
    applier = Applier(executor)
    reports, executor.collect_reports = executor.collect_reports, lambda _: []  # type: ignore[method-assign, assignment]
    applier.advance()
    break_for(monkeypatch, plan, PlanRun, "apply_signals")
    signal_plan(again(plan), Action.Signal.SUSPEND, "alice")
    applier.poll_soon()
    applier.advance()
    assert again(plan).state == "ONGOING"
    executor.collect_reports = reports  # type: ignore[method-assign]
    applier.collect(0)
    applier.advance()
    assert (again(plan).state, states(plan)) == ("FAILED", ["SUCCEEDED"] * 2)
    applier.stop()


def test_outcome_that_cannot_be_recorded_sets_the_plan_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    broken, sound = make_plan(GRAPH, state="PENDING"), make_plan(GRAPH, state="PENDING")
    original = StatefulModel.save_state

    def save_state(row: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(row, Action) and row.action_plan_id == broken.pk:
            raise ZeroDivisionError
        original(row, *arguments, **options)

    monkeypatch.setattr(StatefulModel, "save_state", save_state)
    run_waiting()
    assert (again(broken).state, again(sound).state) == ("FAILED", "SUCCEEDED")
    assert states(broken) == ["CANCELLED"] * 2


def test_plan_whose_completion_cannot_be_notified_still_ends(
    monkeypatch: pytest.MonkeyPatch, faulty: ActionPlan
) -> None:
    break_for(monkeypatch, faulty, ActionPlan, "save_state")
    run_waiting()
    assert (again(faulty).state, states(faulty)) == ("FAILED", ["FAILED", "CANCELLED"])


def test_plan_that_cannot_be_failed_stays_ongoing_without_stopping_others(
    monkeypatch: pytest.MonkeyPatch, faulty: ActionPlan
) -> None:
    sound = make_plan(GRAPH, state="PENDING")
    break_for(monkeypatch, faulty, ActionPlan, "save_state")
    monkeypatch.setattr(ActionPlanQuerySet, "fail_silently", lambda *_: 1 / 0)
    run_waiting()
    assert (again(faulty).state, again(sound).state) == ("ONGOING", "SUCCEEDED")


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
@pytest.mark.parametrize("window", ["nonsense", {"opens": "25:00", "closes": "26:00"}, [1], {"opens": "22:00"}])
def test_plan_with_an_invalid_window_is_set_aside(state: str, window: Any) -> None:
    broken, sound = make_plan(GRAPH, state=state), make_plan(GRAPH, state="PENDING")
    past = timezone.now() - timedelta(minutes=1)
    ActionPlan.objects.filter(pk=broken.pk).update(window=window, closes_at=past)
    run_waiting()
    assert again(sound).state == "SUCCEEDED"
    assert (again(broken).state, states(broken)) == ("FAILED", ["CANCELLED"] * 2)
    assert (again(broken).status_message or "").startswith("Action plan was set aside: window")


def test_page_of_a_plan_with_an_invalid_window_is_shown(cloud_admin: User, client: Client) -> None:
    plan = make_plan(GRAPH, state="PENDING", window={"opens": "22:00"})
    client.force_login(cloud_admin)
    assert client.get(f"/console/plans/{plan.uuid}/").status_code == 200


def test_faulty_plan_of_another_applier_is_not_changed() -> None:
    other = Service.register(Service.APPLIER, "other")
    past = timezone.now() - timedelta(minutes=1)
    plan = make_plan(GRAPH, state="ONGOING", applier=other, window="nonsense", closes_at=past)
    run_waiting()
    assert again(plan).state == "ONGOING"


def test_plan_whose_action_cannot_be_timed_out_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    applier = Applier(InlineExecutor())
    past = timezone.now() - timedelta(minutes=1)
    broken = make_plan(GRAPH, state="ONGOING", applier=applier.service)
    broken.actions.update(has_derived=True, waits_until=past, due_time=timezone.now() + timedelta(hours=1))
    sound = make_plan(GRAPH, state="PENDING")
    break_for(monkeypatch, broken, timeouts, "time_out")
    for _ in range(20):
        applier.poll_soon()
        applier.advance()
        applier.collect(0)
    applier.stop()
    assert (again(broken).state, again(sound).state) == ("FAILED", "SUCCEEDED")
