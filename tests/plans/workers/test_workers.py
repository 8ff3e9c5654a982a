"""Actions executed by workers: lost, duplicate and late messages, and dead processes."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from math import inf

import pytest
from django.db import OperationalError
from django.utils import timezone
from pytest_django import Settings

from actions.engine.checkpoints import Checkpoint
from actions.models import Action, ActionEvent
from actions.types.base import LeaseLost
from plans.applier.applier import Applier
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.deriving import behave, deriving
from tests.plans.inline import InlineExecutor
from tests.plans.worker_harness import WorkerHarness
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[WorkerHarness]:
    settings.POLL_INTERVAL = 0
    made = WorkerHarness(monkeypatch)
    yield made
    made.stop()


def state(plan: ActionPlan) -> str:
    return ActionPlan.objects.get(pk=plan.pk).state


def events(name: str = "execute") -> int:
    return ActionEvent.objects.filter(event=name).count()


def chain(**columns: object) -> ActionPlan:
    return make_plan({"a": [], "b": ["a"], "c": ["b"]}, **{"state": "PENDING", **columns})


def make_plan_at_worker(harness: WorkerHarness) -> ActionPlan:
    """Make a plan whose only action runs in a live worker."""
    plan = make_plan({"a": []}, state="ONGOING", applier=Service.register(Service.APPLIER, "before"))
    plan.actions.update(state="ONGOING", attempt=1, owner=harness.worker.register())
    return plan


def expire_lease(service: Service) -> None:
    Service.objects.filter(pk=service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))


def test_plan_runs_to_its_end(harness: WorkerHarness) -> None:
    plan = chain()
    harness.run_until_idle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_duplicate_message_executes_the_action_once(harness: WorkerHarness) -> None:
    plan = chain()
    harness.advance()
    harness.messages *= 2
    harness.run_until_idle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_late_duplicate_message_changes_nothing(harness: WorkerHarness) -> None:
    plan = chain()
    harness.advance()
    late = harness.messages[0]
    harness.run_until_idle()
    harness.worker.handle(late)
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_lost_message_is_sent_again(harness: WorkerHarness, settings: Settings) -> None:
    settings.CELERY_RESEND = 0
    chain()
    harness.advance()
    harness.messages.clear()
    harness.advance()
    assert len(harness.messages) == 1


def test_waiting_message_is_not_sent_again_before_the_resend_time(harness: WorkerHarness) -> None:
    chain()
    for _ in range(3):
        harness.advance()
    assert len(harness.messages) == 1


def test_unstarted_actions_are_sent_again_after_the_broker_connection_was_lost(harness: WorkerHarness) -> None:
    make_plan({"a": [], "b": []}, state="PENDING")
    harness.advance()
    harness.messages.clear()
    harness.executor.lost.set()
    harness.advance()
    assert len(harness.messages) == 2


def test_lost_replies_are_replaced_by_reading_the_table(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = chain()
    monkeypatch.setattr(harness.worker.replies, "send", lambda queue, reply: None)
    harness.run_until_idle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_action_of_a_dead_worker_is_recovered_by_another(harness: WorkerHarness) -> None:
    plan = make_plan_at_worker(harness)
    ActionPlan.objects.filter(pk=plan.pk).update(applier=harness.applier.service)
    harness.advance()
    expire_lease(harness.worker.register())
    harness.worker = harness.start_worker("worker-2")
    harness.run_until_idle()
    assert (state(plan), events("recover"), action(plan, "a").attempt) == ("SUCCEEDED", 1, 2)


def test_new_applier_does_not_recover_the_action_of_a_live_worker(harness: WorkerHarness) -> None:
    plan = make_plan_at_worker(harness)
    expire_lease(plan.applier)
    for _ in range(3):
        harness.advance()
    assert (state(plan), harness.messages, events("recover")) == ("ONGOING", [], 0)


def test_applier_with_threads_does_not_recover_the_action_of_a_live_worker(harness: WorkerHarness) -> None:
    plan = make_plan_at_worker(harness)
    expire_lease(plan.applier)
    applier = Applier(InlineExecutor())
    for _ in range(3):
        applier.advance()
        applier.collect(0)
    applier.stop()
    assert (state(plan), events("recover"), action(plan, "a").state) == ("ONGOING", 0, "ONGOING")


def test_stopping_applier_releases_the_plan_but_not_actions_of_workers(harness: WorkerHarness) -> None:
    plan = make_plan_at_worker(harness)
    expire_lease(plan.applier)
    harness.advance()
    harness.applier.stop()
    found = ActionPlan.objects.get(pk=plan.pk)
    assert (found.state, found.applier, action(plan, "a").state) == ("ONGOING", None, "ONGOING")


def test_message_of_an_applier_that_lost_the_plan_is_ignored(harness: WorkerHarness) -> None:
    plan = chain()
    harness.advance()
    ActionPlan.objects.filter(pk=plan.pk).update(applier=Service.register(Service.APPLIER, "other"))
    harness.deliver()
    assert action(plan, "a").state == "PENDING"


def test_worker_executes_the_children_of_its_action_without_the_applier(
    harness: WorkerHarness, settings: Settings
) -> None:
    settings.POLL_INTERVAL = 60
    plan = chain()
    harness.advance()
    harness.deliver()
    assert plan.actions.count_states() == {"SUCCEEDED": 3}
    harness.run_until_idle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_stopping_worker_executes_no_children(harness: WorkerHarness, settings: Settings) -> None:
    settings.POLL_INTERVAL = 60
    plan = chain()
    harness.advance()
    harness.is_stopping = True
    harness.deliver()
    assert plan.actions.count_states() == {"SUCCEEDED": 1, "PENDING": 2}


def test_worker_does_not_execute_children_of_other_queues(harness: WorkerHarness, settings: Settings) -> None:
    settings.POLL_INTERVAL, settings.CELERY_QUEUES = 60, {"sleep": "sleepers"}
    plan = chain()
    plan.actions.filter(pk=action(plan, "b").pk).update(action_type="sleep", input_parameters={"duration": 0})
    harness.advance()
    harness.deliver()
    assert plan.actions.count_states() == {"SUCCEEDED": 1, "PENDING": 2}
    harness.advance()
    assert [message.queue for message in harness.messages] == ["sleepers"]


def test_duplicate_revert_message_reverts_the_action_once(harness: WorkerHarness, settings: Settings) -> None:
    settings.ROLLBACK = True
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    plan.actions.filter(pk=action(plan, "b").pk).update(input_parameters={"message": "b", "fail_execute": True})
    while not (harness.messages and harness.messages[0].work == "revert"):
        harness.deliver()
        harness.advance()
    harness.messages *= 2
    harness.run_until_idle()
    assert (state(plan), events("revert")) == ("FAILED", 1)


def test_duplicate_recover_message_recovers_the_action_once(harness: WorkerHarness) -> None:
    plan = make_plan_at_worker(harness)
    expire_lease(plan.applier)
    expire_lease(harness.worker.register())
    harness.advance()
    (message,) = harness.messages
    for host in ("worker-2", "worker-3"):
        harness.start_worker(host).handle(message)
    assert (message.work, events("recover")) == ("recover", 1)


def test_action_stays_pending_while_the_worker_has_no_database(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    def raise_connection_error(*_: object) -> None:
        raise OperationalError("gone")

    plan = chain()
    harness.advance()
    with monkeypatch.context() as patched:
        patched.setattr(harness.worker, "find", raise_connection_error)
        harness.deliver()
    settings.POLL_INTERVAL = 60
    harness.advance()
    assert (action(plan, "a").state, harness.applier.jobs) == ("PENDING", 0)
    harness.applier.runs[plan.pk].paused_until = -inf
    harness.run_until_idle()
    assert state(plan) == "SUCCEEDED"


def test_applier_without_a_database_keeps_its_jobs(harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_connection_error(*_: object) -> None:
        raise OperationalError("gone")

    plan = chain()
    harness.advance()
    harness.deliver()
    with monkeypatch.context() as patched:
        patched.setattr("plans.workers.celery.read_actions", raise_connection_error)
        assert harness.executor.collect_reports(0) == []
    harness.run_until_idle()
    assert state(plan) == "SUCCEEDED"


def test_worker_that_lost_its_lease_releases_the_action(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> None:
        raise LeaseLost

    plan = chain()
    harness.advance()
    monkeypatch.setattr("actions.types.nop.Nop.execute", lose)
    harness.deliver()
    assert (action(plan, "a").state, action(plan, "a").owner) == ("ONGOING", None)


def test_worker_with_an_expired_lease_registers_again(harness: WorkerHarness, settings: Settings) -> None:
    settings.SERVICE_DOWN_TIME = 60
    before = harness.worker.register()
    assert harness.worker.heartbeat is not None
    harness.worker.heartbeat.seen = -inf
    assert harness.worker.register() != before
    assert not Service.objects.present().filter(pk=before.pk).exists()


def lease_of(harness: WorkerHarness, plan: ActionPlan) -> PlanLease:
    return PlanLease(plan.pk, plan.applier_id, "worker-1", harness.worker.register().pk)


def test_worker_continues_when_another_applier_takes_over_the_plan(harness: WorkerHarness) -> None:
    plan = make_plan_at_worker(harness)
    checkpoint = Checkpoint(action(plan, "a"), lease_of(harness, plan))
    ActionPlan.objects.filter(pk=plan.pk).update(applier=harness.applier.service)
    checkpoint()


def test_worker_stops_when_another_worker_owns_the_action(harness: WorkerHarness) -> None:
    plan = make_plan_at_worker(harness)
    checkpoint = Checkpoint(action(plan, "a"), lease_of(harness, plan))
    other = Service.register(Service.WORKER, "worker-2")
    Action.objects.filter(pk=action(plan, "a").pk).update(owner=other)
    with pytest.raises(LeaseLost):
        checkpoint()


def test_jobs_of_a_dropped_plan_are_reported_as_not_done(harness: WorkerHarness) -> None:
    plan = chain()
    harness.advance()
    harness.executor.drop_plan(plan.pk)
    (report,) = harness.executor.reports
    assert (report.done, harness.executor.jobs) == (False, {})


def test_message_with_outdated_guards_is_ignored(harness: WorkerHarness) -> None:
    plan = chain()
    harness.advance()
    (message,) = harness.messages
    harness.worker.handle(replace(message, guards=["PENDING", 1, None]))
    assert action(plan, "a").state == "PENDING"


def test_derived_actions_are_executed_by_workers_before_their_origin_continues(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = behave(monkeypatch, a=deriving({"x": [], "y": ["x"], "z": []}))
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    harness.run_until_idle()
    assert (state(plan), calls[0], calls[-2:]) == ("SUCCEEDED", "a", ["a_goes_on", "b"])
    assert sorted(calls) == ["a", "a_goes_on", "b", "x", "y", "z"]


def test_derived_actions_are_executed_although_replies_are_lost(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}))
    monkeypatch.setattr(harness.worker.replies, "send", lambda queue, reply: None)
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    harness.run_until_idle()
    assert (state(plan), calls) == ("SUCCEEDED", ["a", "x", "y", "a_goes_on", "b"])


def test_suspended_action_is_released_when_its_worker_stops(harness: WorkerHarness) -> None:
    slot = harness.worker.watchdog
    slot.wait(0)
    harness.is_stopping = True
    with pytest.raises(LeaseLost):
        slot.wait(0)


def test_suspended_actions_do_not_use_slots_of_the_applier(harness: WorkerHarness, settings: Settings) -> None:
    settings.CELERY_JOBS = 1
    plan = make_plan_at_worker(harness)
    expire_lease(plan.applier)
    other = make_plan({"x": []}, state="PENDING")
    harness.advance()
    assert harness.messages == []
    plan.actions.update(state="SUSPENDED")
    harness.run_until_idle()
    assert (plan.actions.get().state, state(other)) == ("SUSPENDED", "SUCCEEDED")
    plan.actions.update(state="ONGOING")
    harness.advance()
    assert harness.executor.slots_of(settings.CELERY_QUEUE) == 1


def test_suspended_action_without_an_owner_is_not_recovered(harness: WorkerHarness) -> None:
    plan = make_plan_at_worker(harness)
    expire_lease(plan.applier)
    harness.advance()
    plan.actions.update(state="SUSPENDED", owner=None)
    for _ in range(3):
        harness.advance()
    assert (state(plan), harness.messages, events("recover")) == ("ONGOING", [], 0)
