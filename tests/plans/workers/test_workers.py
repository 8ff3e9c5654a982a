"""Actions that are executed by workers elsewhere: what is lost, doubled or late does no harm."""

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
    """Make a plan whose one action a worker, which lives, is at work on."""
    plan = make_plan({"a": []}, state="ONGOING", applier=Service.register(Service.APPLIER, "before"))
    plan.actions.update(state="ONGOING", attempt=1, owner=post.worker.register())
    return plan


def be_lost(service: Service) -> None:
    Service.objects.filter(pk=service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))


def test_a_plan_runs_to_its_end(post: Post) -> None:
    plan = chain()
    post.settle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_a_message_that_comes_twice_has_the_action_executed_once(post: Post) -> None:
    plan = chain()
    post.advance()
    post.messages *= 2
    post.settle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_a_message_that_comes_when_all_is_over_changes_nothing(post: Post) -> None:
    plan = chain()
    post.advance()
    late = post.messages[0]
    post.settle()
    post.worker.handle(late)
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_a_message_that_was_lost_is_sent_again(post: Post, settings: Settings) -> None:
    settings.CELERY_RESEND = 0
    chain()
    post.advance()
    post.messages.clear()
    post.advance()
    assert len(post.messages) == 1


def test_a_message_that_waits_is_not_sent_again_before_its_time(post: Post) -> None:
    chain()
    for _ in range(3):
        post.advance()
    assert len(post.messages) == 1


def test_all_that_nobody_began_is_sent_again_once_the_broker_was_lost(post: Post) -> None:
    make_plan({"a": [], "b": []}, state="PENDING")
    post.advance()
    post.messages.clear()
    post.executor.lost.set()
    post.advance()
    assert len(post.messages) == 2


def test_replies_that_are_lost_are_read_in_the_table(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = chain()
    monkeypatch.setattr(post.worker.replies, "send", lambda queue, reply: None)
    post.settle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_what_a_worker_had_in_hand_when_it_was_lost_is_recovered(post: Post) -> None:
    plan = make_plan_at_worker(post)
    ActionPlan.objects.filter(pk=plan.pk).update(applier=post.applier.service)
    post.advance()
    be_lost(post.worker.register())
    post.worker = post.hire("worker-2")
    post.settle()
    assert (state(plan), events("recover"), action(plan, "a").attempt) == ("SUCCEEDED", 1, 2)


def test_an_applier_that_takes_over_leaves_to_a_living_worker_what_it_has_in_hand(post: Post) -> None:
    plan = make_plan_at_worker(post)
    be_lost(plan.applier)
    for _ in range(3):
        post.advance()
    assert (state(plan), post.messages, events("recover")) == ("ONGOING", [], 0)


def test_an_applier_with_threads_leaves_to_a_living_worker_what_it_has_in_hand(post: Post) -> None:
    plan = make_plan_at_worker(post)
    be_lost(plan.applier)
    applier = Applier(InlineExecutor())
    for _ in range(3):
        applier.advance()
        applier.collect(0)
    applier.stop()
    assert (state(plan), events("recover"), action(plan, "a").state) == ("ONGOING", 0, "ONGOING")


def test_an_applier_that_stops_leaves_the_actions_of_workers_and_releases_the_plan(post: Post) -> None:
    plan = make_plan_at_worker(post)
    be_lost(plan.applier)
    post.advance()
    post.applier.stop()
    found = ActionPlan.objects.get(pk=plan.pk)
    assert (found.state, found.applier, action(plan, "a").state) == ("ONGOING", None, "ONGOING")


def test_a_message_of_an_applier_that_lost_the_plan_is_not_followed(post: Post) -> None:
    plan = chain()
    post.advance()
    ActionPlan.objects.filter(pk=plan.pk).update(applier=Service.register(Service.APPLIER, "other"))
    post.deliver()
    assert action(plan, "a").state == "PENDING"


def test_a_worker_goes_on_with_what_it_made_the_way_free_for(post: Post, settings: Settings) -> None:
    settings.POLL_INTERVAL = 60
    plan = chain()
    post.advance()
    post.deliver()
    assert plan.actions.count_states() == {"SUCCEEDED": 3}
    post.settle()
    assert (state(plan), events()) == ("SUCCEEDED", 3)


def test_a_worker_that_is_to_stop_goes_on_with_nothing(post: Post, settings: Settings) -> None:
    settings.POLL_INTERVAL = 60
    plan = chain()
    post.advance()
    post.is_stopping = True
    post.deliver()
    assert plan.actions.count_states() == {"SUCCEEDED": 1, "PENDING": 2}


def test_a_worker_leaves_what_waits_in_other_queues_to_those_who_read_them(post: Post, settings: Settings) -> None:
    settings.POLL_INTERVAL, settings.CELERY_QUEUES = 60, {"sleep": "sleepers"}
    plan = chain()
    plan.actions.filter(pk=action(plan, "b").pk).update(action_type="sleep", input_parameters={"duration": 0})
    post.advance()
    post.deliver()
    assert plan.actions.count_states() == {"SUCCEEDED": 1, "PENDING": 2}
    post.advance()
    assert [message.queue for message in post.messages] == ["sleepers"]


def test_an_action_is_reverted_once_though_the_message_comes_twice(post: Post, settings: Settings) -> None:
    settings.ROLLBACK = True
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    plan.actions.filter(pk=action(plan, "b").pk).update(input_parameters={"message": "b", "fail_execute": True})
    while not (post.messages and post.messages[0].work == "revert"):
        post.deliver()
        post.advance()
    post.messages *= 2
    post.settle()
    assert (state(plan), events("revert")) == ("FAILED", 1)


def test_an_action_is_recovered_once_though_two_workers_get_the_message(post: Post) -> None:
    plan = make_plan_at_worker(post)
    be_lost(plan.applier)
    be_lost(post.worker.register())
    post.advance()
    (message,) = post.messages
    for host in ("worker-2", "worker-3"):
        post.hire(host).handle(message)
    assert (message.work, events("recover")) == ("recover", 1)


def test_a_worker_whose_database_is_away_has_the_action_wait(
    post: Post, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    def be_away(*_: object) -> None:
        raise OperationalError("gone")

    plan = chain()
    post.advance()
    with monkeypatch.context() as away:
        away.setattr(post.worker, "find", be_away)
        post.deliver()
    settings.POLL_INTERVAL = 60
    post.advance()
    assert (action(plan, "a").state, post.applier.jobs) == ("PENDING", 0)
    post.applier.runs[plan.pk].paused_until = -inf
    post.settle()
    assert state(plan) == "SUCCEEDED"


def test_an_applier_whose_database_is_away_keeps_what_it_waits_for(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_away(*_: object) -> None:
        raise OperationalError("gone")

    plan = chain()
    post.advance()
    post.deliver()
    with monkeypatch.context() as away:
        away.setattr("plans.workers.celery.read_actions", be_away)
        assert post.executor.collect_reports(0) == []
    post.settle()
    assert state(plan) == "SUCCEEDED"


def test_a_worker_that_can_not_go_on_releases_the_action(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object) -> None:
        raise LeaseLost

    plan = chain()
    post.advance()
    monkeypatch.setattr("actions.types.nop.Nop.execute", lose)
    post.deliver()
    assert (action(plan, "a").state, action(plan, "a").owner) == ("ONGOING", None)


def test_a_worker_that_slept_through_its_lease_gets_a_row_of_its_own_again(post: Post, settings: Settings) -> None:
    settings.SERVICE_DOWN_TIME = 60
    before = post.worker.register()
    assert post.worker.heartbeat is not None
    post.worker.heartbeat.seen = -inf
    assert post.worker.register() != before
    assert not Service.objects.present().filter(pk=before.pk).exists()


def lease_of(post: Post, plan: ActionPlan) -> PlanLease:
    return PlanLease(plan.pk, plan.applier_id, "worker-1", post.worker.register().pk)


def test_a_worker_goes_on_when_another_applier_takes_the_plan(post: Post) -> None:
    plan = make_plan_at_worker(post)
    checkpoint = Checkpoint(action(plan, "a"), lease_of(post, plan))
    ActionPlan.objects.filter(pk=plan.pk).update(applier=post.applier.service)
    checkpoint()


def test_a_worker_stops_when_another_has_the_action(post: Post) -> None:
    plan = make_plan_at_worker(post)
    checkpoint = Checkpoint(action(plan, "a"), lease_of(post, plan))
    other = Service.register(Service.WORKER, "worker-2")
    Action.objects.filter(pk=action(plan, "a").pk).update(owner=other)
    with pytest.raises(LeaseLost):
        checkpoint()


def test_what_a_forgotten_plan_had_out_is_reported_as_not_done(post: Post) -> None:
    plan = chain()
    post.advance()
    post.executor.drop_plan(plan.pk)
    (report,) = post.executor.reports
    assert (report.done, post.executor.jobs) == (False, {})


def test_a_message_with_other_values_of_the_guards_is_out_of_date(post: Post) -> None:
    plan = chain()
    post.advance()
    (message,) = post.messages
    post.worker.handle(replace(message, guards=["PENDING", 1, None]))
    assert action(plan, "a").state == "PENDING"


def test_what_an_action_derives_is_executed_by_workers_and_then_the_action_goes_on(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = behave(monkeypatch, a=deriving({"x": [], "y": ["x"], "z": []}))
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    post.settle()
    assert (state(plan), calls[0], calls[-2:]) == ("SUCCEEDED", "a", ["a_goes_on", "b"])
    assert sorted(calls) == ["a", "a_goes_on", "b", "x", "y", "z"]


def test_so_it_is_where_every_reply_is_lost(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}))
    monkeypatch.setattr(post.worker.replies, "send", lambda queue, reply: None)
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    post.settle()
    assert (state(plan), calls) == ("SUCCEEDED", ["a", "x", "y", "a_goes_on", "b"])


def test_a_suspended_action_stays_in_the_hands_of_its_worker_until_that_is_to_stop(post: Post) -> None:
    slot = post.worker.watchdog
    slot.wait(0)
    post.is_stopping = True
    with pytest.raises(LeaseLost):
        slot.wait(0)


def test_what_is_suspended_takes_no_place_among_what_an_applier_has_with_the_workers(
    post: Post, settings: Settings
) -> None:
    settings.CELERY_JOBS = 1
    plan = make_plan_at_worker(post)
    be_lost(plan.applier)
    other = make_plan({"x": []}, state="PENDING")
    post.advance()
    assert post.messages == []
    plan.actions.update(state="SUSPENDED")
    post.settle()
    assert (plan.actions.get().state, state(other)) == ("SUSPENDED", "SUCCEEDED")
    plan.actions.update(state="ONGOING")
    post.advance()
    assert post.executor.slots_of(settings.CELERY_QUEUE) == 1


def test_what_is_suspended_in_nobody_s_hands_is_not_recovered(post: Post) -> None:
    plan = make_plan_at_worker(post)
    be_lost(plan.applier)
    post.advance()
    plan.actions.update(state="SUSPENDED", owner=None)
    for _ in range(3):
        post.advance()
    assert (state(plan), post.messages, events("recover")) == ("ONGOING", [], 0)
