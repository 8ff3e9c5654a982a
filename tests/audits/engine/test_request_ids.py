"""The id of the request that created or triggered an audit, in its runs and in the plans that these start."""

from collections.abc import Mapping
from typing import Any

import pytest
from structlog.contextvars import get_contextvars

from actions.types.base import DONE, Outcome
from actions.types.nop import Nop
from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from audits.strategies.base import Solution
from audits.strategies.dummy import Dummy
from cluster.snapshot import ClusterSnapshot
from plans.models import ActionPlan
from tests.api import Caller
from tests.builders import make_node, make_strategy
from tests.plans.inline import run_waiting
from tests.watcher_site.notifications.outbox import listen
from watcher_site.models import Notification

pytestmark = pytest.mark.django_db
NEW = {"goal": "dummy", "strategy": "dummy"}


@pytest.fixture(autouse=True)
def _strategy() -> None:
    make_node()
    make_strategy()


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The context of log lines during each run of the strategy, and each action."""
    found: list[dict[str, Any]] = []
    solve = Dummy.solve

    def record_run(self: Dummy, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        found.append(get_contextvars())
        return solve(self, cluster, parameters)

    def record_action(self: Nop) -> Outcome:
        found.append(get_contextvars())
        return DONE

    monkeypatch.setattr(Dummy, "solve", record_run)
    monkeypatch.setattr(Nop, "execute", record_action)
    return found


def run_engine() -> None:
    DecisionEngine().run_next_audit()


def test_log_lines_of_a_run_have_the_id_of_the_request_that_created_the_audit(
    api: Caller, contexts: list[dict[str, Any]]
) -> None:
    answer = api.post("/audits", {**NEW, "audit_type": "ONESHOT"})
    run_engine()
    assert [one.get("request_id") for one in contexts] == [answer["x-openstack-request-id"]]


def test_log_lines_of_a_run_have_the_id_of_the_request_that_triggered_the_audit(
    api: Caller, contexts: list[dict[str, Any]]
) -> None:
    created = api.post("/audits", {**NEW, "audit_type": "EVENT"})
    triggered = api.post(f"/webhooks/{created.json()['uuid']}", {})
    run_engine()
    assert [one.get("request_id") for one in contexts] == [triggered["x-openstack-request-id"]]


def test_run_of_an_audit_without_a_request_has_no_request_id(contexts: list[dict[str, Any]]) -> None:
    audit = create_audit(audit_type="ONESHOT", **NEW)
    run_engine()
    assert [(one["audit"], "request_id" in one) for one in contexts] == [(str(audit.uuid), False)]


def test_actions_of_a_plan_that_an_audit_starts_have_the_id_of_its_request(
    api: Caller, contexts: list[dict[str, Any]]
) -> None:
    answer = api.post("/audits", {**NEW, "audit_type": "ONESHOT", "auto_trigger": True})
    run_engine()
    assert ActionPlan.objects.get().request_id == answer["x-openstack-request-id"]
    run_waiting()
    assert {one.get("request_id") for one in contexts if "action" in one} == {answer["x-openstack-request-id"]}


def test_all_notifications_of_an_audit_and_its_plan_have_the_id_of_its_request(api: Caller) -> None:
    listen()
    answer = api.post("/audits", {**NEW, "audit_type": "ONESHOT", "auto_trigger": True})
    run_engine()
    run_waiting()
    assert ActionPlan.objects.get().state == "SUCCEEDED"
    without = Notification.objects.exclude(request_id=answer["x-openstack-request-id"])
    assert list(without.values_list("event_type", "request_id")) == []


def test_answers_of_the_api_do_not_contain_the_request_of_an_audit(api: Caller) -> None:
    answer = api.post("/audits", {**NEW, "audit_type": "ONESHOT"})
    assert Audit.objects.get().request_id == answer["x-openstack-request-id"]
    assert "request_id" not in answer.json()
