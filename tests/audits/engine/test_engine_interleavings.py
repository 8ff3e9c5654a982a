"""Interleaved engines and cancellations of one run: the second is started at the critical point of the first."""

import pytest

from audits.engine.engine import DecisionEngine
from audits.engine.run import run_strategy
from audits.models import Audit
from audits.models.querysets import AuditQuerySet
from audits.operations.changes import change_audit
from audits.operations.creation import create_audit
from audits.plugins import synchronize
from audits.strategies.dummy import Dummy
from plans.models import ActionPlan
from plans.models.querysets import ActionPlanQuerySet
from tests.builders import make_node, make_plan
from tests.interleaving import Rival, interrupt_after, interrupt_before
from watcher_site.refusals import Refused
from watcher_site.state_machine import ConcurrentTransition

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

CANCEL = [{"op": "replace", "path": "/state", "value": "CANCELLED"}]
SERIES = {"audit_type": "CONTINUOUS", "interval": "3600"}
KINDS = pytest.mark.parametrize("fields", [{"audit_type": "ONESHOT"}, SERIES], ids=["oneshot", "continuous"])


@pytest.fixture(autouse=True)
def cloud() -> None:
    synchronize()
    make_node("compute1")


def dummy(**fields: str) -> Audit:
    return create_audit(**{"audit_type": "ONESHOT", "goal": "dummy", "strategy": "dummy", **fields})


def claim(engine: DecisionEngine) -> Audit | None:
    return engine.claim(Audit.objects.all())


def cancel(audit: Audit) -> bool:
    """Cancel an audit as a request does, and return whether the cancellation succeeded."""
    try:
        change_audit(audit, CANCEL)
    except (ConcurrentTransition, Refused):
        return False
    return True


@KINDS
def test_claim_fails_if_another_engine_claims_the_audit_after_its_selection(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    audit, engines = dummy(**fields), [DecisionEngine(), DecisionEngine()]
    other = Rival(lambda: claim(engines[1]))
    interrupt_before(monkeypatch, AuditQuerySet, "claim", other)
    assert claim(engines[0]) is None
    assert other.result() == audit
    assert Audit.objects.get().decision_engine == engines[1].service


@KINDS
def test_claim_during_the_claim_of_another_engine_waits_and_fails(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    audit, engines = dummy(**fields), [DecisionEngine(), DecisionEngine()]
    other = Rival(lambda: claim(engines[1]))
    interrupt_after(monkeypatch, AuditQuerySet, "claim", other)
    assert claim(engines[0]) == audit
    assert other.result() is None
    assert Audit.objects.get().decision_engine == engines[0].service


def test_cancellation_while_the_strategy_runs_discards_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    audit, engine = dummy(), DecisionEngine()
    held = claim(engine)
    person = Rival(lambda: cancel(audit))
    interrupt_before(monkeypatch, Dummy, "solve", person)
    with pytest.raises(ConcurrentTransition):
        run_strategy(held)
    assert person.result()
    assert (Audit.objects.get().state, ActionPlan.objects.count()) == ("CANCELLED", 0)


def test_cancellation_while_the_plan_is_written_waits_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    audit, engine = dummy(), DecisionEngine()
    held = claim(engine)
    person = Rival(lambda: cancel(audit))
    interrupt_before(monkeypatch, Audit, "save_state", person)
    run_strategy(held)
    assert not person.result()
    assert (Audit.objects.get().state, ActionPlan.objects.count()) == ("SUCCEEDED", 1)


def test_slow_engine_writes_no_plan_after_another_engine_adopted_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    dummy()
    slow, other = DecisionEngine(), DecisionEngine()
    held = claim(slow)

    def take_over() -> None:
        slow.service.retire()
        run_strategy(claim(other))

    successor = Rival(take_over)
    interrupt_before(monkeypatch, Dummy, "solve", successor)
    with pytest.raises(ConcurrentTransition):
        run_strategy(held)
    successor.result()
    assert ActionPlan.objects.count() == 1


def test_cancellation_of_an_audit_that_finished_since_it_was_read_is_refused() -> None:
    dummy()
    held, seen = claim(DecisionEngine()), Audit.objects.get()
    run_strategy(held)
    with pytest.raises(ConcurrentTransition):
        seen.abandon()
    assert Audit.objects.get().state == "SUCCEEDED"


def test_cancellation_and_expiry_of_older_plans_do_not_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    other, series = dummy(), dummy(**SERIES)
    Audit.objects.filter(pk=other.pk).update(state=Audit.State.SUCCEEDED)
    # The plan that is cancelled first has the greater key, while an expiry locks plans in the order of their keys.
    others, own = (make_plan({"a": []}, audit=audit, strategy=audit.strategy) for audit in (other, series))
    expiry = Rival(lambda: ActionPlan.objects.filter(pk__in=[others.pk, own.pk]).supersede("Too old.", "Too old."))
    interrupt_after(monkeypatch, ActionPlanQuerySet, "cancel_recommended", expiry)
    run_strategy(claim(DecisionEngine()))
    states = [ActionPlan.objects.get(pk=plan.pk).state for plan in (others, own)]
    assert (expiry.result(), states) == (0, ["SUPERSEDED", "CANCELLED"])
