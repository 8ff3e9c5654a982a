"""Of several engines at one run, and of people who cancel it, one wins: let in at the critical moment."""

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
    """Cancel as a person does, and say whether it was not too late."""
    try:
        change_audit(audit, CANCEL)
    except (ConcurrentTransition, Refused):
        return False
    return True


@KINDS
def test_an_engine_that_another_overtakes_between_its_look_and_its_claim_gets_nothing(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    audit, engines = dummy(**fields), [DecisionEngine(), DecisionEngine()]
    other = Rival(lambda: claim(engines[1]))
    interrupt_before(monkeypatch, AuditQuerySet, "claim", other)
    assert claim(engines[0]) is None
    assert other.result() == audit
    assert Audit.objects.get().decision_engine == engines[1].service


@KINDS
def test_an_engine_that_comes_while_another_claims_waits_and_gets_nothing(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    audit, engines = dummy(**fields), [DecisionEngine(), DecisionEngine()]
    other = Rival(lambda: claim(engines[1]))
    interrupt_after(monkeypatch, AuditQuerySet, "claim", other)
    assert claim(engines[0]) == audit
    assert other.result() is None
    assert Audit.objects.get().decision_engine == engines[0].service


def test_an_audit_that_is_cancelled_while_its_strategy_runs_makes_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    audit, engine = dummy(), DecisionEngine()
    held = claim(engine)
    person = Rival(lambda: cancel(audit))
    interrupt_before(monkeypatch, Dummy, "solve", person)
    with pytest.raises(ConcurrentTransition):
        run_strategy(held)
    assert person.result()
    assert (Audit.objects.get().state, ActionPlan.objects.count()) == ("CANCELLED", 0)


def test_a_cancel_that_comes_while_the_plan_is_written_waits_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    audit, engine = dummy(), DecisionEngine()
    held = claim(engine)
    person = Rival(lambda: cancel(audit))
    interrupt_before(monkeypatch, Audit, "save_state", person)
    run_strategy(held)
    assert not person.result()
    assert (Audit.objects.get().state, ActionPlan.objects.count()) == ("SUCCEEDED", 1)


def test_a_slow_engine_writes_nothing_once_another_has_taken_its_run_over(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_person_who_saw_the_audit_before_it_was_answered_cannot_cancel_it() -> None:
    dummy()
    held, seen = claim(DecisionEngine()), Audit.objects.get()
    run_strategy(held)
    with pytest.raises(ConcurrentTransition):
        seen.abandon()
    assert Audit.objects.get().state == "SUCCEEDED"


def test_the_end_of_older_plans_and_their_expiry_do_not_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    other, series = dummy(), dummy(**SERIES)
    Audit.objects.filter(pk=other.pk).update(state=Audit.State.SUCCEEDED)
    # The plan that is cancelled first has the greater key, while an expiry locks plans in the order of their keys.
    others, own = (make_plan({"a": []}, audit=audit, strategy=audit.strategy) for audit in (other, series))
    expiry = Rival(lambda: ActionPlan.objects.filter(pk__in=[others.pk, own.pk]).supersede("Too old.", "Too old."))
    interrupt_after(monkeypatch, ActionPlanQuerySet, "cancel_recommended", expiry)
    run_strategy(claim(DecisionEngine()))
    states = [ActionPlan.objects.get(pk=plan.pk).state for plan in (others, own)]
    assert (expiry.result(), states) == (0, ["SUPERSEDED", "CANCELLED"])
