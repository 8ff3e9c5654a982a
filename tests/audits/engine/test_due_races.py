"""Concurrent engines and concurrent webhooks: each due run is executed exactly once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from plans.models import ActionPlan
from tests.api import Caller
from tests.audits.engine.test_engine_races import at_once, drain
from tests.builders import make_node

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

HOUR = timedelta(hours=1)


def hourly_audits(number: int = 1) -> list[Audit]:
    make_node("compute1")
    fields = {"audit_type": "CONTINUOUS", "goal": "dummy", "strategy": "dummy", "interval": "3600"}
    return [create_audit(name=f"audit {order}", **fields) for order in range(number)]


def make_due() -> None:
    Audit.objects.update(next_run_time=timezone.now())


def runs() -> set[int]:
    """Return the numbers of plans of the audits, as a set: one element if all audits have equally many plans."""
    return {ActionPlan.objects.filter(audit=audit).count() for audit in Audit.objects.all()}


def test_concurrent_engines_execute_each_due_run_once() -> None:
    hourly_audits(40)
    at_once(*[lambda: drain(DecisionEngine())] * 4)
    make_due()
    at_once(*[lambda: drain(DecisionEngine())] * 4)
    assert runs() == {2}


@pytest.mark.slow
def test_hundreds_of_due_runs_are_executed_once_each_and_rescheduled() -> None:
    hourly_audits(50)
    for _ in range(4):
        make_due()
        at_once(*[lambda: drain(DecisionEngine())] * 4)
    waiting = Audit.objects.filter(state="ONGOING", decision_engine=None, next_run_time__gt=timezone.now())
    assert (runs(), waiting.count()) == ({4}, 50)


def test_concurrent_engines_repeat_each_run_of_a_killed_engine_once() -> None:
    hourly_audits(10)
    dead = DecisionEngine()
    while dead.claim(Audit.objects.all()):
        pass
    before = DecisionEngine().run_next_audit()
    dead.service.retire()
    at_once(*[lambda: drain(DecisionEngine())] * 4)
    assert (before, runs()) == (False, {1})


def test_claim_of_a_completed_run_is_refused() -> None:
    (audit,) = hourly_audits()
    now, late = timezone.now(), DecisionEngine()
    candidates = Audit.objects.waiting(now)
    assert candidates.count() == 1
    drain(DecisionEngine())
    assert not Audit.objects.filter(pk=audit.pk).claim(late.service, now)


def webhook(user: User, audit: Audit) -> tuple[int, datetime]:
    """Call a webhook, and return the status and a moment before it was called."""
    began = timezone.now()
    try:
        return Caller(user).post(f"/webhooks/{audit.uuid}", {}).status_code, began
    finally:
        connection.close()


def work_until(stop: Event) -> None:
    engine = DecisionEngine()
    while not stop.wait(0.01):
        engine.run_next_audit()
    connection.close()


@pytest.mark.slow
def test_each_of_hundreds_of_concurrent_accepted_webhooks_is_followed_by_a_run(cloud_admin: User) -> None:
    make_node("compute1")
    audit = create_audit(audit_type="EVENT", goal="dummy", strategy="dummy")
    stop = Event()
    with ThreadPoolExecutor(2) as engines, ThreadPoolExecutor(16) as callers:
        for _ in range(2):
            engines.submit(work_until, stop)
        answers = list(callers.map(lambda _: webhook(cloud_admin, audit), range(300)))
        stop.set()
    drain(DecisionEngine())
    accepted = [began for status, began in answers if status == 202]
    plans = ActionPlan.objects.filter(audit=audit)
    assert {status for status, _ in answers} <= {202, 400}
    assert 1 <= plans.count() <= len(accepted)
    assert plans.latest("pk").created_at > max(accepted)
    assert Audit.objects.get(pk=audit.pk).state == "SUCCEEDED"


def test_accepted_webhook_is_followed_by_a_run(cloud_admin: User) -> None:
    make_node("compute1")
    audit = create_audit(audit_type="EVENT", goal="dummy", strategy="dummy")
    engine = DecisionEngine()
    for _ in range(20):
        before = ActionPlan.objects.count()
        (status, _), _ = at_once(lambda: webhook(cloud_admin, audit), engine.run_next_audit)
        drain(engine)
        assert status == 202
        assert ActionPlan.objects.count() == before + 1
