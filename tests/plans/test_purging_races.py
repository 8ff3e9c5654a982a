"""Purges concurrent with appliers, continuations and other purges."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from actions.models import Action, ActionEvent
from audits.models import Audit
from audits.purging import Purge
from plans import purging
from plans.models import ActionPlan
from plans.planning.continuation import continue_plan
from tests.builders import make_audit, make_plan
from tests.interleaving import Rival, interrupt_after, interrupt_before
from watcher_site.refusals import NotFound
from watcher_site.state_machine import ConcurrentTransition

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
PURGES = 2


@pytest.fixture(autouse=True)
def ages(settings: Any) -> None:
    settings.ACTION_PLAN_AGE = settings.AUDIT_AGE = timedelta(days=30)


def ended_plan(number_of_actions: int = 1, **columns: Any) -> ActionPlan:
    graph = {str(number): [] for number in range(number_of_actions)}
    columns = {"state": "FAILED", "end_time": timezone.now() - timedelta(days=31), **columns}
    plan = make_plan(graph, **columns)
    ActionEvent.objects.bulk_create(ActionEvent(action=one, event="execute") for one in plan.actions.all())
    return plan


def purge() -> int:
    return Purge(timezone.now()).remove()


def test_plan_that_is_being_completed_is_not_purged(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = make_audit(state="SUCCEEDED", deleted_at=timezone.now())
    plan = make_plan({"a": []}, audit=audit, state="ONGOING")
    rival = Rival(purge)
    interrupt_after(monkeypatch, ActionPlan, "save_state", rival)
    plan.succeed("done")
    plan.save_state()
    rival.result()
    assert (ActionPlan.objects.get().state, Action.objects.count()) == ("SUCCEEDED", 1)


def test_completion_of_a_purged_plan_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ended_plan(audit=make_audit())
    late = ActionPlan.objects.get(pk=plan.pk)
    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING")
    running = ActionPlan.objects.get(pk=plan.pk)
    ActionPlan.objects.filter(pk=plan.pk).update(state=late.state)
    running.succeed("done")
    rival = Rival(running.save_state)
    interrupt_before(monkeypatch, purging, "keep_operations", rival)
    purge()
    with pytest.raises(ConcurrentTransition):
        rival.result()
    assert not ActionPlan.objects.exists()


def test_plan_started_while_a_purge_waits_is_not_purged(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = make_audit(state="SUCCEEDED", deleted_at=timezone.now())
    plan = make_plan({"a": []}, audit=audit)
    rival = Rival(purge)
    interrupt_after(monkeypatch, ActionPlan, "save_state", rival)
    plan.start()
    plan.save_state()
    rival.result()
    assert (ActionPlan.objects.get().state, Action.objects.count()) == ("PENDING", 1)


def test_plan_that_is_being_purged_cannot_be_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ended_plan(audit=make_audit())
    plan.actions.update(state="FAILED")
    rival = Rival(lambda: continue_plan(plan))
    interrupt_before(monkeypatch, purging, "keep_operations", rival)
    purge()
    with pytest.raises(NotFound):
        rival.result()
    assert not ActionPlan.objects.exists()


def test_purge_locks_plans_and_their_continuations_in_key_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    audit = make_audit()
    first = ended_plan(audit=audit)
    follower = make_plan(audit=audit, continues=first)
    last = make_plan(audit=make_audit("deleted", state="SUCCEEDED", deleted_at=timezone.now()))
    original = purging.keep_operations
    rival = Rival(lambda: ActionPlan.objects.filter(pk__in=[follower.pk, last.pk]).cancel_recommended("no", "no"))

    def keep_operations(actions: Any) -> None:
        rival.start()
        original(actions)

    monkeypatch.setattr(purging, "keep_operations", keep_operations)
    assert purge() == 4  # Two plans, an action and an audit.
    assert rival.result() == 1
    assert (ActionPlan.objects.get().continues, ActionPlan.objects.get().state) == (None, "CANCELLED")


@pytest.mark.parametrize(("plans", "actions"), [(30, 3), (2, 60)])
def test_concurrent_purges_delete_each_row_once(monkeypatch: pytest.MonkeyPatch, plans: int, actions: int) -> None:
    monkeypatch.setattr(purging, "ROWS", 20)
    monkeypatch.setattr(purging, "ACTIONS", 10)
    for number in range(plans):
        audit = make_audit(f"audit {number}", state="SUCCEEDED", updated_at=timezone.now() - timedelta(days=31))
        ended_plan(actions, audit=audit)
    barrier = Barrier(PURGES)

    def together() -> int:
        try:
            barrier.wait()
            return purge()
        finally:
            connection.close()

    with ThreadPoolExecutor(PURGES) as pool:
        removed = [future.result() for future in [pool.submit(together) for _ in range(PURGES)]]
    assert sum(removed) == plans * (actions + 2)
    assert [model.objects.count() for model in (Audit, ActionPlan, Action, ActionEvent)] == [0, 0, 0, 0]
