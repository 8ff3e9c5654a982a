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
from tests.plans.post import Post
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[Post]:
    settings.POLL_INTERVAL = 0
    made = Post(monkeypatch)
    yield made
    made.leave()


def state(plan: ActionPlan) -> str:
    return ActionPlan.objects.get(pk=plan.pk).state


def events(name: str = "execute") -> int:
    return ActionEvent.objects.filter(event=name).count()


def chain(**columns: object) -> ActionPlan:
    return make_plan({"a": [], "b": ["a"], "c": ["b"]}, **{"state": "PENDING", **columns})


def make_plan_at_worker(post: Post) -> ActionPlan:
    """Make a plan whose only action runs in a live worker."""
    plan = make_plan({"a": []}, state="ONGOING", applier=Service.register(Service.APPLIER, "before"))
    plan.actions.update(state="ONGOING", attempt=1, owner=post.worker.register())
    return plan


def expire_lease(service: Service) -> None:
    Service.objects.filter(pk=service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))


def test_plan_runs_to_its_end(post: Post) -> None:
    plan = chain()
    post.settle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_duplicate_message_executes_the_action_once(post: Post) -> None:
    plan = chain()
    post.advance()
    post.messages *= 2
    post.settle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_late_duplicate_message_changes_nothing(post: Post) -> None:
    plan = chain()
    post.advance()
    late = post.messages[0]
    post.settle()
    post.worker.handle(late)
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_lost_message_is_sent_again(post: Post, settings: Settings) -> None:
    settings.CELERY_RESEND = 0
    chain()
    post.advance()
    post.messages.clear()
    post.advance()
    assert len(post.messages) == 1


def test_waiting_message_is_not_sent_again_before_the_resend_time(post: Post) -> None:
    chain()
    for _ in range(3):
        post.advance()
    assert len(post.messages) == 1


def test_unstarted_actions_are_sent_again_after_the_broker_connection_was_lost(post: Post) -> None:
    make_plan({"a": [], "b": []}, state="PENDING")
    post.advance()
    post.messages.clear()
    post.executor.lost.set()
    post.advance()
    assert len(post.messages) == 2


def test_lost_replies_are_replaced_by_reading_the_table(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = chain()
    monkeypatch.setattr(post.worker.replies, "send", lambda queue, reply: None)
    post.settle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_action_of_a_dead_worker_is_recovered_by_another(post: Post) -> None:
    plan = make_plan_at_worker(post)
    ActionPlan.objects.filter(pk=plan.pk).update(applier=post.applier.service)
    post.advance()
    expire_lease(post.worker.register())
    post.worker = post.start_worker("worker-2")
    post.settle()
    assert (state(plan), events("recover"), action(plan, "a").attempt) == ("SUCCEEDED", 1, 2)


def test_new_applier_does_not_recover_the_action_of_a_live_worker(post: Post) -> None:
    plan = make_plan_at_worker(post)
    expire_lease(plan.applier)
    for _ in range(3):
        post.advance()
    assert (state(plan), post.messages, events("recover")) == ("ONGOING", [], 0)


def test_applier_with_threads_does_not_recover_the_action_of_a_live_worker(post: Post) -> None:
    plan = make_plan_at_worker(post)
    expire_lease(plan.applier)
    applier = Applier(InlineExecutor())
    for _ in range(3):
        applier.advance()
        applier.collect(0)
    applier.stop()
    assert (state(plan), events("recover"), action(plan, "a").state) == ("ONGOING", 0, "ONGOING")


def test_stopping_applier_releases_the_plan_but_not_actions_of_workers(post: Post) -> None:
    plan = make_plan_at_worker(post)
    expire_lease(plan.applier)
    post.advance()
    post.applier.stop()
    found = ActionPlan.objects.get(pk=plan.pk)
    assert (found.state, found.applier, action(plan, "a").state) == ("ONGOING", None, "ONGOING")


def test_message_of_an_applier_that_lost_the_plan_is_ignored(post: Post) -> None:
    plan = chain()
    post.advance()
    ActionPlan.objects.filter(pk=plan.pk).update(applier=Service.register(Service.APPLIER, "other"))
    post.deliver()
    assert action(plan, "a").state == "PENDING"


def test_worker_executes_the_children_of_its_action_without_the_applier(post: Post, settings: Settings) -> None:
    settings.POLL_INTERVAL = 60
    plan = chain()
    post.advance()
    post.deliver()
    assert plan.actions.count_states() == {"SUCCEEDED": 3}
    post.settle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_stopping_worker_executes_no_children(post: Post, settings: Settings) -> None:
    settings.POLL_INTERVAL = 60
    plan = chain()
    post.advance()
    post.is_stopping = True
    post.deliver()
    assert plan.actions.count_states() == {"SUCCEEDED": 1, "PENDING": 2}


def test_worker_does_not_execute_children_of_other_queues(post: Post, settings: Settings) -> None:
    settings.POLL_INTERVAL, settings.CELERY_QUEUES = 60, {"sleep": "sleepers"}
    plan = chain()
    plan.actions.filter(pk=action(plan, "b").pk).update(action_type="sleep", input_parameters={"duration": 0})
    post.advance()
    post.deliver()
    assert plan.actions.count_states() == {"SUCCEEDED": 1, "PENDING": 2}
    post.advance()
    assert [message.queue for message in post.messages] == ["sleepers"]


def test_duplicate_revert_message_reverts_the_action_once(post: Post, settings: Settings) -> None:
    settings.ROLLBACK = True
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    plan.actions.filter(pk=action(plan, "b").pk).update(input_parameters={"message": "b", "fail_execute": True})
    while not (post.messages and post.messages[0].work == "revert"):
        post.deliver()
        post.advance()
    post.messages *= 2
    post.settle()
    assert (state(plan), events("revert")) == ("FAILED", 1)


def test_duplicate_recover_message_recovers_the_action_once(post: Post) -> None:
    plan = make_plan_at_worker(post)
    expire_lease(plan.applier)
    expire_lease(post.worker.register())
    post.advance()
    (message,) = post.messages
    for host in ("worker-2", "worker-3"):
        post.start_worker(host).handle(message)
    assert (message.work, events("recover")) == ("recover", 1)


def test_action_stays_pending_while_the_worker_has_no_database(
    post: Post, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    def raise_connection_error(*_: object) -> None:
        raise OperationalError("gone")

    plan = chain()
    post.advance()
    with monkeypatch.context() as patched:
        patched.setattr(post.worker, "find", raise_connection_error)
        post.deliver()
    settings.POLL_INTERVAL = 60
    post.advance()
    assert (action(plan, "a").state, post.applier.jobs) == ("PENDING", 0)
    post.applier.runs[plan.pk].paused_until = -inf
    post.settle()
    assert state(plan) == "SUCCEEDED"


def test_applier_without_a_database_keeps_its_jobs(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_connection_error(*_: object) -> None:
        raise OperationalError("gone")

    plan = chain()
    post.advance()
    post.deliver()
    with monkeypatch.context() as patched:
        patched.setattr("plans.workers.celery.read_actions", raise_connection_error)
        assert post.executor.collect_reports(0) == []
    post.settle()
    assert state(plan) == "SUCCEEDED"


def test_worker_that_lost_its_lease_releases_the_action(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object) -> None:
        raise LeaseLost

    plan = chain()
    post.advance()
    monkeypatch.setattr("actions.types.nop.Nop.execute", lose)
    post.deliver()
    assert (action(plan, "a").state, action(plan, "a").owner) == ("ONGOING", None)


def test_worker_with_an_expired_lease_registers_again(post: Post, settings: Settings) -> None:
    settings.SERVICE_DOWN_TIME = 60
    before = post.worker.register()
    assert post.worker.heartbeat is not None
    post.worker.heartbeat.seen = -inf
    assert post.worker.register() != before
    assert not Service.objects.present().filter(pk=before.pk).exists()


def lease_of(post: Post, plan: ActionPlan) -> PlanLease:
    return PlanLease(plan.pk, plan.applier_id, "worker-1", post.worker.register().pk)


def test_worker_continues_when_another_applier_takes_over_the_plan(post: Post) -> None:
    plan = make_plan_at_worker(post)
    checkpoint = Checkpoint(action(plan, "a"), lease_of(post, plan))
    ActionPlan.objects.filter(pk=plan.pk).update(applier=post.applier.service)
    checkpoint()


def test_worker_stops_when_another_worker_owns_the_action(post: Post) -> None:
    plan = make_plan_at_worker(post)
    checkpoint = Checkpoint(action(plan, "a"), lease_of(post, plan))
    other = Service.register(Service.WORKER, "worker-2")
    Action.objects.filter(pk=action(plan, "a").pk).update(owner=other)
    with pytest.raises(LeaseLost):
        checkpoint()


def test_jobs_of_a_dropped_plan_are_reported_as_not_done(post: Post) -> None:
    plan = chain()
    post.advance()
    post.executor.drop_plan(plan.pk)
    (report,) = post.executor.reports
    assert (report.done, post.executor.jobs) == (False, {})


def test_message_with_outdated_guards_is_ignored(post: Post) -> None:
    plan = chain()
    post.advance()
    (message,) = post.messages
    post.worker.handle(replace(message, guards=["PENDING", 1, None]))
    assert action(plan, "a").state == "PENDING"


def test_derived_actions_are_executed_by_workers_before_their_origin_continues(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = behave(monkeypatch, a=deriving({"x": [], "y": ["x"], "z": []}))
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    post.settle()
    assert (state(plan), calls[0], calls[-2:]) == ("SUCCEEDED", "a", ["a_goes_on", "b"])
    assert sorted(calls) == ["a", "a_goes_on", "b", "x", "y", "z"]


def test_derived_actions_are_executed_although_replies_are_lost(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}))
    monkeypatch.setattr(post.worker.replies, "send", lambda queue, reply: None)
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    post.settle()
    assert (state(plan), calls) == ("SUCCEEDED", ["a", "x", "y", "a_goes_on", "b"])


def test_suspended_action_is_released_when_its_worker_stops(post: Post) -> None:
    slot = post.worker.watchdog
    slot.wait(0)
    post.is_stopping = True
    with pytest.raises(LeaseLost):
        slot.wait(0)


def test_suspended_actions_do_not_use_slots_of_the_applier(post: Post, settings: Settings) -> None:
    settings.CELERY_JOBS = 1
    plan = make_plan_at_worker(post)
    expire_lease(plan.applier)
    other = make_plan({"x": []}, state="PENDING")
    post.advance()
    assert post.messages == []
    plan.actions.update(state="SUSPENDED")
    post.settle()
    assert (plan.actions.get().state, state(other)) == ("SUSPENDED", "SUCCEEDED")
    plan.actions.update(state="ONGOING")
    post.advance()
    assert post.executor.slots_of(settings.CELERY_QUEUE) == 1


def test_suspended_action_without_an_owner_is_not_recovered(post: Post) -> None:
    plan = make_plan_at_worker(post)
    expire_lease(plan.applier)
    post.advance()
    plan.actions.update(state="SUSPENDED", owner=None)
    for _ in range(3):
        post.advance()
    assert (state(plan), post.messages, events("recover")) == ("ONGOING", [], 0)
