"""Webhooks: each call triggers a run of an EVENT audit."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.audits.clock import Clock
from tests.builders import make_audit, make_node, make_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def engine() -> DecisionEngine:
    make_node("compute1")
    return DecisionEngine()


def event_audit(**fields: Any) -> Audit:
    return create_audit(**{"audit_type": "EVENT", "goal": "dummy", "strategy": "dummy", **fields})


def call(api: Caller, audit: Audit) -> int:
    return api.post(f"/webhooks/{audit.uuid}", {}).status_code


def state(audit: Audit) -> str:
    return Audit.objects.get(pk=audit.pk).state


def runs(audit: Audit) -> int:
    return ActionPlan.objects.filter(audit=audit).count()


def test_event_audit_waits_for_its_webhook(engine: DecisionEngine) -> None:
    event_audit()
    assert engine.run_next_audit() is False


def test_webhook_returns_202_and_an_empty_body(api: Caller) -> None:
    answer = api.post(f"/webhooks/{event_audit().uuid}", {"anything": ["at", "all"]})
    assert (answer.status_code, answer.content) == (202, b"")


def test_webhook_triggers_one_run(api: Caller, engine: DecisionEngine) -> None:
    audit = event_audit()
    call(api, audit)
    done = [engine.run_next_audit(), engine.run_next_audit()]
    assert (done, state(audit), runs(audit)) == ([True, False], "SUCCEEDED", 1)


def test_each_webhook_after_a_run_triggers_another_run(api: Caller, engine: DecisionEngine) -> None:
    audit = event_audit()
    for _ in range(3):
        call(api, audit)
        engine.run_next_audit()
    assert (state(audit), runs(audit)) == ("SUCCEEDED", 3)


def test_webhooks_before_the_run_are_merged_into_one_run(api: Caller, engine: DecisionEngine) -> None:
    audit = event_audit()
    statuses = {call(api, audit) for _ in range(3)}
    while engine.run_next_audit():
        pass
    assert (statuses, runs(audit)) == ({202}, 1)


@pytest.mark.parametrize("wrong", ["ONGOING", "FAILED", "CANCELLED", "SUSPENDED"])
def test_webhook_is_refused_in_an_unfit_state(api: Caller, wrong: str) -> None:
    answer = api.post(f"/webhooks/{make_audit(audit_type='EVENT', state=wrong).uuid}", {})
    assert (answer.status_code, fault(answer)) == (400, f"Audit state {wrong} is disallowed.")


def test_webhook_body_that_is_not_json_is_refused(api: Caller) -> None:
    path = f"/v1/webhooks/{event_audit().uuid}"
    assert api.client.generic("POST", path, "no json", content_type="application/json").status_code == 400


def test_webhook_of_a_continuous_audit_is_refused(api: Caller) -> None:
    audit = make_audit(audit_type="CONTINUOUS", interval="60")
    assert fault(api.post(f"/webhooks/{audit.uuid}", {})) == "Audit type CONTINUOUS is disallowed."


def test_reader_cannot_call_a_webhook(reader: User) -> None:
    audit = event_audit()
    assert (call(Caller(reader), audit), Audit.objects.get().next_run_time) == (403, None)


def test_triggered_run_waits_for_an_ongoing_plan(
    api: Caller, engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    ongoing = make_plan(state="ONGOING")
    audit = event_audit()
    call(api, audit)
    done = [engine.run_next_audit(), engine.run_next_audit()]
    waiting = Audit.objects.get(pk=audit.pk)
    ActionPlan.objects.filter(pk=ongoing.pk).soft_delete()
    clock.advance(10)
    engine.run_next_audit()
    assert (done, waiting.state, runs(audit), state(audit)) == ([True, False], "PENDING", 1, "SUCCEEDED")
    assert waiting.status_message == (
        f"Its run waits because action plan {ongoing.uuid} is ongoing. Use force to run it anyway."
    )


def test_run_of_a_stopped_engine_is_repeated_by_another_engine(api: Caller, engine: DecisionEngine) -> None:
    audit = event_audit()
    call(api, audit)
    engine.next_audit()
    engine.service.retire()
    DecisionEngine().run_next_audit()
    assert (state(audit), runs(audit)) == ("SUCCEEDED", 1)


def test_failed_run_fails_the_event_audit_with_the_error_as_status_message(api: Caller) -> None:
    audit = event_audit(goal="saving_energy", strategy="saving_energy")
    call(api, audit)
    DecisionEngine().run_next_audit()
    found = Audit.objects.get(pk=audit.pk)
    assert (found.state, found.status_message) == ("FAILED", "The cluster state is not defined")


def test_webhook_of_a_oneshot_audit_is_refused(api: Caller) -> None:
    answer = api.post(f"/webhooks/{make_audit().uuid}", {})
    assert answer.status_code == 400
    assert fault(answer) == "Audit type ONESHOT is disallowed."


def test_webhook_without_a_body_is_refused(api: Caller) -> None:
    answer = api.post(f"/webhooks/{make_audit().uuid}")
    assert answer.status_code == 400
    assert fault(answer) == 'Missing argument: "body"'


def test_webhook_of_an_unknown_audit_is_404(api: Caller) -> None:
    answer = api.post("/webhooks/abc", {})
    assert answer.status_code == 404
    assert fault(answer) == "Audit abc could not be found"


def test_get_of_a_webhook_is_not_allowed(api: Caller) -> None:
    assert api.get("/webhooks/abc").status_code == 405
