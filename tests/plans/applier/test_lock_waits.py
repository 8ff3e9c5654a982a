"""Actions that wait for a lock of another action."""

from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from actions.models import Action
from actions.types.locking import wake_waiting
from cluster.models import Cluster, Lock
from plans.applier.applier import Applier
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import proposed
from tests.builders import make_cluster, make_plan, make_profile, make_stack
from tests.plans.applier.test_commits import counted
from tests.plans.inline import InlineExecutor

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    make_profile()
    return make_cluster(size=1)


@pytest.fixture
def holder(cluster: Cluster) -> Action:
    """An action of another process that holds the lock of the cluster."""
    plan = make_plan({"holder": []}, state="PENDING")
    plan.actions.update(state="SUSPENDED", action_type="CLUSTER_CHECK", target=str(cluster.uuid))
    one = plan.actions.get()
    Lock.objects.create(cluster=cluster, action=one.uuid, is_exclusive=True)
    return one


def advance(applier: Applier, times: int = 1) -> None:
    for _ in range(times):
        applier.next_poll = 0
        applier.advance()
        applier.collect(0)


def state_of(plan: ActionPlan) -> str:
    return ActionPlan.objects.get(pk=plan.pk).state


@pytest.fixture
def applier(settings: object) -> Applier:
    settings.POLL_INTERVAL = 0
    return Applier(InlineExecutor())


@pytest.mark.parametrize("kind", ["CLUSTER_CHECK", "NODE_CHECK"])
def test_waiting_for_a_lock_does_not_use_retries(
    cluster: Cluster, holder: Action, applier: Applier, kind: str
) -> None:
    plan = proposed(kind, cluster if kind == "CLUSTER_CHECK" else cluster.members()[0])
    advance(applier, django_settings.ACTION_RETRIES + 3)
    one = plan.actions.get()
    assert (one.state, one.retries) == ("PENDING", 0)
    assert one.attempt > django_settings.ACTION_RETRIES
    assert one.status_message == (
        f"Action is tried again later: Failed in locking cluster {cluster.uuid}: action {holder.uuid} is at work on it"
    )
    Action.objects.filter(pk=holder.pk).update(state="SUCCEEDED")
    advance(applier, 5)
    assert plan.actions.get(derived_from=None).state == "SUCCEEDED"


def test_action_waits_for_the_lock_of_a_stack(applier: Applier) -> None:
    stack = make_stack()
    other = make_plan({"holder": []}, state="RECOMMENDED").actions.get()
    Lock.objects.create(stack=stack, action=other.uuid, is_exclusive=True)
    plan = proposed("delete_stack", stack)
    advance(applier, django_settings.ACTION_RETRIES + 3)
    one = plan.actions.get()
    assert (one.state, one.retries, one.lock_holder) == ("PENDING", 0, other.uuid)


def test_action_that_waited_for_its_timeout_uses_retries_and_fails(
    cluster: Cluster, holder: Action, applier: Applier
) -> None:
    plan = proposed("CLUSTER_CHECK", cluster)
    advance(applier)
    Action.objects.filter(action_plan=plan).update(waits_until=timezone.now() - timedelta(seconds=1))
    advance(applier, django_settings.ACTION_RETRIES + 2)
    one = plan.actions.get()
    assert one.state == "FAILED"
    assert one.status_message == (
        "Action failed in execute: Exceeded maximum number of retries (3): "
        f"Failed in locking cluster {cluster.uuid}: action {holder.uuid} is at work on it"
    )


def test_wait_for_a_lock_is_limited_by_the_action_timeout(cluster: Cluster, holder: Action, applier: Applier) -> None:
    plan = proposed("CLUSTER_CHECK", cluster)
    plan.actions.update(timeout=100)
    before = timezone.now()
    advance(applier)
    waits_until = plan.actions.get().waits_until
    assert waits_until is not None
    assert before <= waits_until - timedelta(seconds=100) <= timezone.now()


@pytest.mark.parametrize(("attempt", "pause"), [(0, 10), (1, 20), (4, 160), (9, 160)])
def test_retry_interval_doubles_up_to_sixteen_times_the_first(
    cluster: Cluster, holder: Action, applier: Applier, settings: object, attempt: int, pause: int
) -> None:
    settings.ACTION_RETRY_INTERVAL = 10
    plan = proposed("CLUSTER_CHECK", cluster)
    plan.actions.update(attempt=attempt)
    before = timezone.now()
    advance(applier)
    due_time = plan.actions.get().due_time
    assert due_time is not None
    assert before <= due_time - timedelta(seconds=pause) <= timezone.now()


def test_end_of_the_lock_holder_wakes_waiting_actions(cluster: Cluster, applier: Applier, settings: object) -> None:
    settings.ACTION_RETRY_INTERVAL = 3600
    plans = [proposed("CLUSTER_CHECK", cluster) for _ in range(3)]
    advance(applier, 40)
    assert [state_of(plan) for plan in plans] == ["SUCCEEDED"] * 3


def test_action_waiting_for_another_holder_is_not_woken(cluster: Cluster, holder: Action, applier: Applier) -> None:
    plan = proposed("CLUSTER_CHECK", cluster)
    advance(applier)
    later = timezone.now() + timedelta(hours=1)
    plan.actions.update(due_time=later)
    assert wake_waiting(make_plan({"a": []}).actions.get().uuid) == 0
    assert plan.actions.get().due_time == later
    assert wake_waiting(holder.uuid) == 1
    assert plan.actions.get().due_time < later


def test_resumed_action_has_no_lock_holder(cluster: Cluster, holder: Action, applier: Applier) -> None:
    plan = proposed("CLUSTER_CHECK", cluster)
    advance(applier)
    Action.objects.filter(pk=holder.pk).update(state="SUCCEEDED")
    advance(applier, 5)
    assert plan.actions.get(derived_from=None).lock_holder is None


def test_statement_count_does_not_depend_on_the_number_of_woken_actions() -> None:
    costs = []
    for size in (2, 20):
        one = make_plan({"holder": []}).actions.get()
        later = timezone.now() + timedelta(hours=1)
        for _ in range(size):
            make_plan({"a": []}, state="ONGOING").actions.update(lock_holder=one.uuid, due_time=later)
        with counted() as statements:
            assert wake_waiting(one.uuid) == size
        costs.append(len(statements))
    assert costs[0] == costs[1]
