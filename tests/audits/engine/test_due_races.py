"""Several engines at the same series, and webhooks that come all at once: each run happens exactly once."""

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


def every_hour(number: int = 1) -> list[Audit]:
    make_node("compute1")
    fields = {"audit_type": "CONTINUOUS", "goal": "dummy", "strategy": "dummy", "interval": "3600"}
    return [create_audit(name=f"audit {order}", **fields) for order in range(number)]


def make_due() -> None:
    Audit.objects.update(next_run_time=timezone.now())


def runs() -> set[int]:
    """Return how many plans the audits have: one number, if all have the same."""
    return {ActionPlan.objects.filter(audit=audit).count() for audit in Audit.objects.all()}


def test_of_several_engines_each_due_run_is_made_once() -> None:
    every_hour(40)
    at_once(*[lambda: drain(DecisionEngine())] * 4)
    make_due()
    at_once(*[lambda: drain(DecisionEngine())] * 4)
    assert runs() == {2}


@pytest.mark.slow
def test_hundreds_of_due_runs_are_made_once_each_and_their_times_move_on() -> None:
    every_hour(50)
    for _ in range(4):
        make_due()
        at_once(*[lambda: drain(DecisionEngine())] * 4)
    waiting = Audit.objects.filter(state="ONGOING", decision_engine=None, next_run_time__gt=timezone.now())
    assert (runs(), waiting.count()) == ({4}, 50)


def test_the_runs_of_an_engine_that_was_killed_are_made_once_each_by_others() -> None:
    every_hour(10)
    dead = DecisionEngine()
    while dead.claim(Audit.objects.all()):
        pass
    before = DecisionEngine().run_next_audit()
    dead.service.retire()
    at_once(*[lambda: drain(DecisionEngine())] * 4)
    assert (before, runs()) == (False, {1})


def test_an_engine_that_comes_late_to_a_run_that_was_made_leaves_it() -> None:
    (audit,) = every_hour()
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
def test_of_hundreds_of_webhooks_at_once_none_that_was_accepted_is_lost(cloud_admin: User) -> None:
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


def test_a_webhook_that_was_accepted_is_followed_by_a_run(cloud_admin: User) -> None:
    make_node("compute1")
    audit = create_audit(audit_type="EVENT", goal="dummy", strategy="dummy")
    engine = DecisionEngine()
    for _ in range(20):
        before = ActionPlan.objects.count()
        (status, _), _ = at_once(lambda: webhook(cloud_admin, audit), engine.run_next_audit)
        drain(engine)
        assert status == 202
        assert ActionPlan.objects.count() == before + 1
