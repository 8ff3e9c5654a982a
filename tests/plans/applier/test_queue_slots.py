"""Unread and slow queues delay only the actions that are sent to them."""

from collections.abc import Iterator

import pytest
from kombu import Connection
from pytest_django import Settings

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import make_plan
from tests.plans.applier.test_commits import counted
from tests.plans.worker_harness import WorkerHarness

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[WorkerHarness]:
    """Two queues with two slots each, one of them for sleep actions."""
    settings.POLL_INTERVAL, settings.CELERY_JOBS, settings.CELERY_QUEUES = 0, 2, {"sleep": "slow"}
    settings.CELERY_RESEND = 3600
    made = WorkerHarness(monkeypatch)
    yield made
    made.stop()


def plan_of(sleeps: int, nops: int, **columns: object) -> ActionPlan:
    """Make a plan of independent actions: the given numbers of sleep actions and then of nop actions."""
    plan = make_plan({f"{number:03}": [] for number in range(sleeps + nops)}, **{"state": "PENDING", **columns})
    asleep = list(plan.actions.order_by("pk").values_list("pk", flat=True)[:sleeps])
    Action.objects.filter(pk__in=asleep).update(action_type="sleep", input_parameters={"duration": 0})
    return plan


def read(harness: WorkerHarness, *queues: str) -> list[int]:
    """Run all jobs in these queues, and return the keys of their actions."""
    taken = [message for message in harness.messages if message.queue in queues]
    harness.messages = [message for message in harness.messages if message not in taken]
    for message in taken:
        harness.worker.handle(message)
    return [message.action for message in taken]


def run_until_settled(harness: WorkerHarness, *queues: str) -> None:
    for _ in range(12):
        harness.advance()
        read(harness, *queues)


def states(plan: ActionPlan) -> dict[str, int]:
    return plan.actions.count_states()


def test_unread_queue_does_not_block_other_plans(harness: WorkerHarness) -> None:
    unread = plan_of(sleeps=6, nops=0)
    run_until_settled(harness, "watcher")
    other = plan_of(sleeps=0, nops=6)
    run_until_settled(harness, "watcher")
    assert (states(unread), states(other)) == ({"PENDING": 6}, {"SUCCEEDED": 6})


def test_unread_queue_does_not_block_other_actions_of_the_plan(harness: WorkerHarness) -> None:
    plan = plan_of(sleeps=150, nops=6)
    run_until_settled(harness, "watcher")
    assert states(plan) == {"PENDING": 150, "SUCCEEDED": 6}


def test_plans_waiting_for_a_queue_do_not_count_as_running(harness: WorkerHarness, settings: Settings) -> None:
    settings.APPLIER_PLANS = 1
    plan_of(sleeps=1, nops=0)
    plan_of(sleeps=6, nops=0)
    other = plan_of(sleeps=0, nops=1)
    run_until_settled(harness, "watcher")
    assert states(other) == {"SUCCEEDED": 1}


def test_plan_limit_applies_while_every_queue_is_full(harness: WorkerHarness, settings: Settings) -> None:
    settings.APPLIER_PLANS = 1
    plan_of(sleeps=1, nops=1)
    waiting = plan_of(sleeps=0, nops=1)
    run_until_settled(harness)
    assert ActionPlan.objects.get(pk=waiting.pk).state == "PENDING"


def test_actions_without_a_slot_begin_in_order_when_their_queue_is_read(harness: WorkerHarness) -> None:
    plan = plan_of(sleeps=30, nops=2)
    run_until_settled(harness, "watcher")
    begun = []
    for _ in range(20):
        begun += read(harness, "slow")
        harness.advance()
    assert begun == sorted(begun)
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"


def test_skipped_action_without_a_slot_does_not_begin(harness: WorkerHarness) -> None:
    plan = plan_of(sleeps=4, nops=0)
    run_until_settled(harness, "watcher")
    keys = list(plan.actions.order_by("pk").values_list("pk", flat=True))
    Action.objects.filter(pk=keys[2]).update(state="SKIPPED")
    begun = []
    for _ in range(4):
        begun += read(harness, "slow")
        harness.advance()
    assert begun == [keys[0], keys[1], keys[3]]


def test_actions_waiting_for_a_full_queue_are_not_queried_again(harness: WorkerHarness) -> None:
    plan_of(sleeps=20, nops=1)
    run_until_settled(harness, "watcher")
    with counted() as statements:
        harness.applier.submit()
    assert statements == []


def test_plan_whose_actions_all_wait_for_a_full_queue_stays_ongoing(harness: WorkerHarness) -> None:
    plan_of(sleeps=2, nops=0)
    waiting = plan_of(sleeps=1, nops=0)
    run_until_settled(harness, "watcher")
    assert ActionPlan.objects.get(pk=waiting.pk).state == "ONGOING"
    run_until_settled(harness, "watcher", "slow")
    assert ActionPlan.objects.get(pk=waiting.pk).state == "SUCCEEDED"


def test_plan_whose_actions_wait_for_a_full_queue_can_be_cancelled(harness: WorkerHarness) -> None:
    plan = plan_of(sleeps=20, nops=0)
    run_until_settled(harness, "watcher")
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    run_until_settled(harness, "watcher")
    assert (ActionPlan.objects.get(pk=plan.pk).state, states(plan)) == ("CANCELLED", {"CANCELLED": 20})


def test_large_backlog_of_a_full_queue_is_scanned_in_batches(harness: WorkerHarness) -> None:
    plan = plan_of(sleeps=250, nops=1)
    harness.applier.poll()
    waits = []
    for _ in range(4):
        harness.applier.submit()
        waits.append(harness.applier.runs[plan.pk].has_more_to_scan)
    assert waits == [True, True, False, False]
    assert [message.queue for message in harness.messages] == ["slow", "slow", "watcher"]


def test_with_one_queue_no_more_actions_are_read_than_slots(harness: WorkerHarness, settings: Settings) -> None:
    settings.CELERY_QUEUES = {}
    plan = plan_of(sleeps=0, nops=250)
    run_until_settled(harness)
    run = harness.applier.runs[plan.pk]
    assert (len(run.ready), bool(run.backlog)) == (98, False)


def test_broker_is_queried_for_readers_of_queues_with_waiting_actions(
    harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    queried: list[set[str]] = []
    monkeypatch.setattr(harness.executor.unread, "check", lambda connection, queues: queried.append(queues))
    plan_of(sleeps=1, nops=1)
    run_until_settled(harness, "watcher")
    harness.executor.sender.check_queues(Connection())
    assert queried == [{"slow"}]
