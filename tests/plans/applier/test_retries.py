"""Deferred actions: the applier waits without polling or a worker, and the plan stays ongoing."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import chain, repeat

import pytest
from django.utils import timezone
from pytest_django import Settings

from actions.operations.skipping import skip_action
from actions.types.base import DONE, ActionType, Answer, Outcome
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.inline import InlineExecutor, run_waiting
from tests.races import Race
from watcher_site.models import Service
from watcher_site.refusals import Conflict

BUSY = Outcome(Answer.RETRY, "busy")


def answer(monkeypatch: pytest.MonkeyPatch, name: str, *outcomes: Outcome) -> list[str]:
    """Set the outcomes of an action in order, then OK; return the names of executed actions in order."""
    executed: list[str] = []
    left: Iterator[Outcome] = chain(outcomes, repeat(DONE))

    def execute(self: ActionType) -> Outcome:
        executed.append(str(self.input_parameters["message"]))
        return next(left) if executed[-1] == name else DONE

    monkeypatch.setattr(Nop, "execute", execute)
    return executed


def state_of(plan: ActionPlan) -> str:
    return str(ActionPlan.objects.get(pk=plan.pk).state)


def advance(applier: Applier, times: int = 5) -> None:
    for _ in range(times):
        applier.advance()
        applier.collect(0)


def make_due(plan: ActionPlan, applier: Applier) -> None:
    """Make the deferred actions of a plan due."""
    plan.actions.exclude(due_time=None).update(due_time=timezone.now())
    for run in applier.runs.values():
        run.load_deferred()


@pytest.mark.django_db
def test_deferred_action_is_executed_before_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    executed = answer(monkeypatch, "a", BUSY, BUSY)
    run_waiting()
    assert executed == ["a", "a", "a", "b"]
    assert state_of(plan) == "SUCCEEDED"
    assert action(plan, "a").retries == 2


@pytest.mark.django_db
def test_action_deferred_too_often_fails_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    executed = answer(monkeypatch, "a", *[BUSY] * 9)
    run_waiting()
    assert executed == ["a"] * 4
    assert state_of(plan) == "FAILED"


@pytest.mark.django_db
def test_deferrals_until_a_known_time_do_not_use_retries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    known = Outcome(Answer.RETRY, "busy", until=timezone.now() + timedelta(hours=1))
    executed = answer(monkeypatch, "a", *[known] * 9)
    run_waiting()
    assert executed == ["a"] * 10
    assert (state_of(plan), action(plan, "a").retries) == ("SUCCEEDED", 0)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("timeout", "spared"), [(60, 5), (7200, 12)], ids=["until the first announced time", "until the action timeout"]
)
def test_deferrals_until_ever_later_times_use_no_retries_until_a_limit(
    monkeypatch: pytest.MonkeyPatch, timeout: int, spared: int
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    plan.actions.update(timeout=timeout)
    now = timezone.now()
    executed = []

    def execute(self: ActionType) -> Outcome:
        nonlocal now
        executed.append(now)
        now += timedelta(minutes=10)
        return Outcome(Answer.RETRY, "busy", until=now + timedelta(minutes=50))

    monkeypatch.setattr(Nop, "execute", execute)
    monkeypatch.setattr("actions.models.actions.timezone.now", lambda: now)
    run_waiting()
    assert len(executed) == spared + 4
    assert action(plan, "a").status_message == "Action failed in execute: Exceeded maximum number of retries (3): busy"


@pytest.mark.django_db
def test_deferrals_past_the_announced_time_use_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    executed = answer(monkeypatch, "a", *[Outcome(Answer.RETRY, "busy", until=timezone.now())] * 9)
    run_waiting()
    assert (executed, state_of(plan)) == (["a"] * 4, "FAILED")


@pytest.mark.django_db
@pytest.mark.parametrize(("minutes", "expected"), [(10, 10), (90, 60)])
def test_deferred_action_is_retried_after_the_announced_time_or_the_interval(
    monkeypatch: pytest.MonkeyPatch, patient: Applier, minutes: int, expected: int
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    began = timezone.now()
    answer(monkeypatch, "a", Outcome(Answer.RETRY, "busy", until=began + timedelta(minutes=minutes)))
    advance(patient)
    due = action(plan, "a").due_time
    assert due is not None
    assert timedelta(0) <= due - began - timedelta(minutes=expected) < timedelta(minutes=1)


@pytest.fixture
def patient(settings: Settings) -> Applier:
    """An applier with two slots and a retry interval of an hour."""
    settings.ACTION_RETRY_INTERVAL = 3600
    return Applier(InlineExecutor(slots=2))


@pytest.mark.django_db
def test_plan_with_only_deferred_actions_stays_ongoing_without_worker_or_query(
    patient: Applier, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: object
) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    answer(monkeypatch, "a", BUSY)
    advance(patient)
    patient.next_poll = float("inf")
    with django_assert_num_queries(0):  # type: ignore[operator]
        advance(patient)
    assert (state_of(plan), patient.jobs, patient.is_idle) == ("ONGOING", 0, False)


@pytest.mark.django_db
def test_other_actions_run_while_one_is_deferred(patient: Applier, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": [], "b": [], "c": ["b"]}, state="PENDING")
    executed = answer(monkeypatch, "a", BUSY)
    advance(patient)
    assert executed == ["a", "b", "c"]
    make_due(plan, patient)
    advance(patient)
    assert executed == ["a", "b", "c", "a"]
    assert state_of(plan) == "SUCCEEDED"


@pytest.mark.django_db
def test_new_applier_keeps_the_due_time_of_a_deferred_action(
    patient: Applier, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    executed = answer(monkeypatch, "a", BUSY)
    advance(patient)
    patient.executor.withdraw()
    patient.stop()
    other = Applier(InlineExecutor())
    advance(other)
    assert (executed, state_of(plan), other.is_idle) == (["a"], "ONGOING", False)
    make_due(plan, other)
    advance(other)
    assert (executed, state_of(plan)) == (["a", "a"], "SUCCEEDED")


@pytest.mark.django_db
def test_cancel_ends_a_deferred_action_immediately(patient: Applier, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    answer(monkeypatch, "a", BUSY)
    advance(patient)
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    patient.next_poll = 0
    advance(patient)
    assert (state_of(plan), action(plan, "a").state) == ("CANCELLED", "CANCELLED")


@pytest.mark.django_db
def test_self_cancelled_action_does_not_fail_its_plan_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    answer(monkeypatch, "a", Outcome(Answer.CANCEL, "nobody needs it"))
    run_waiting()
    ended = ActionPlan.objects.get(pk=plan.pk)
    assert ended.state == "SUCCEEDED"
    assert (ended.status_message or "").startswith(f"1 of 2 actions cancelled: {action(plan, 'a').uuid}")
    assert "nobody needs it" in (ended.status_message or "")


@pytest.mark.django_db(transaction=True)
def test_deferral_and_recovery_of_an_action_exclude_each_other() -> None:
    service = Service.register(Service.APPLIER, "here")

    with Race() as race:
        for _ in range(30):
            plan = make_plan({"a": []}, state="ONGOING", applier=service)
            one = plan.actions.get()
            one.begin(service.pk)
            one.save_state()
            mine, theirs = plan.actions.get(), plan.actions.get()
            mine.defer("busy")
            theirs.begin_again(service.pk)
            deferred, recovered = race.run(mine.save_state, theirs.save_state)
            assert deferred != recovered
            left = plan.actions.get()
            assert (left.state, left.attempt) == (("PENDING", 1) if deferred else ("ONGOING", 2))


@pytest.mark.django_db
def test_action_is_not_begun_before_its_due_time() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    plan.actions.update(due_time=timezone.now() + timedelta(hours=1))
    applier = Applier(InlineExecutor())
    advance(applier)
    assert (state_of(plan), action(plan, "a").state) == ("ONGOING", "PENDING")


@pytest.mark.django_db
def test_deferred_action_cannot_be_skipped(patient: Applier, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    answer(monkeypatch, "a", BUSY)
    advance(patient)
    with pytest.raises(Conflict, match="State update not allowed for actionplan state: ONGOING"):
        skip_action(action(plan, "a").uuid, "alice")
