"""Concurrent engines and concurrent cancellations of the same audits."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from plans.models import ActionPlan
from tests.builders import make_node
from tests.chaos.start_delays import AdaptiveStartDelay
from tests.races import Race, rounds
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


def dummy() -> Audit:
    return create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Run functions concurrently in threads with their own connections, and return their results."""

    def run(work: Callable[[], Any]) -> Any:
        try:
            return work()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))


def drain(engine: DecisionEngine) -> None:
    while engine.run_next_audit():
        pass


def cancel(audit: Audit) -> bool:
    """Cancel an audit as a request does, and return whether the cancellation succeeded."""
    own = Audit.objects.get(pk=audit.pk)
    try:
        own.abandon()
    except (ConcurrentTransition, TransitionNotAllowed):
        return False
    return True


def test_concurrent_engines_run_each_audit_once() -> None:
    make_node("compute1")
    audits = [dummy() for _ in range(20)]
    at_once(*[lambda: drain(DecisionEngine())] * 4)
    answers = [ActionPlan.objects.filter(audit=audit).count() for audit in audits]
    assert answers == [1] * 20


def test_last_of_concurrent_plans_supersedes_all_others() -> None:
    make_node("compute1")
    for _ in range(20):
        dummy()
    at_once(*[lambda: drain(DecisionEngine())] * 4)
    states = Counter(ActionPlan.objects.values_list("state", flat=True))
    assert states == {"RECOMMENDED": 1, "SUPERSEDED": 19}


def test_concurrent_engines_run_each_orphaned_audit_once() -> None:
    make_node("compute1")
    audits = [dummy() for _ in range(10)]
    dead = DecisionEngine()
    while dead.claim(Audit.objects.all()):
        pass
    dead.service.retire()
    at_once(*[lambda: drain(DecisionEngine())] * 4)
    answers = [ActionPlan.objects.filter(audit=audit).count() for audit in audits]
    assert answers == [1] * 10


@pytest.mark.slow
def test_cancellation_and_run_of_an_audit_exclude_each_other() -> None:
    make_node("compute1")
    engine = DecisionEngine()
    outcomes = set()
    delay = AdaptiveStartDelay()
    with Race() as race:
        for _ in range(rounds(80)):
            audit = dummy()
            cancelled, _ = race.run(*delay.apply(lambda audit=audit: cancel(audit), engine.run_next_audit))
            delay.adapt(cancelled)
            drain(engine)
            state = Audit.objects.get(pk=audit.pk).state
            outcomes.add((cancelled, state, ActionPlan.objects.filter(audit=audit).exists()))
    assert outcomes <= {(True, "CANCELLED", False), (False, "SUCCEEDED", True)}
