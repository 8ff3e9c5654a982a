"""Runs of CONTINUOUS audits: due times, plans of earlier runs, failures, suspension and end."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from audits.strategies.base import Solution, Strategy
from audits.strategies.dummy import Dummy
from cluster.snapshot import ClusterSnapshot
from plans.models import ActionPlan
from tests.audits.clock import NOON, Clock
from tests.builders import make_node, make_plan
from watcher_site.models import Service
from watcher_site.refusals import Invalid

pytestmark = pytest.mark.django_db


class Switchable(Strategy):
    """A strategy that fails while a switch is set."""

    schema = Dummy.schema
    name = "dummy"
    display_name = "Dummy strategy"
    goal = "dummy"
    broken = True

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        if self.broken:
            raise Invalid("the datasource does not answer")
        return Solution()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def engine(clock: Clock) -> DecisionEngine:
    make_node("compute1")
    return DecisionEngine()


@pytest.fixture
def failing_strategy(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    settings.STRATEGIES = ["tests.audits.engine.test_continuous_audits.Switchable"]
    return monkeypatch


def continuous_audit(interval: str = "60", **fields: Any) -> Audit:
    return create_audit(audit_type="CONTINUOUS", goal="dummy", strategy="dummy", interval=interval, **fields)


def run(engine: DecisionEngine) -> int:
    """Run an engine until no audit is due, and return the number of runs."""
    runs = 0
    while engine.run_next_audit():
        runs += 1
    return runs


def again(audit: Audit) -> Audit:
    return Audit.objects.get(pk=audit.pk)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def plans(audit: Audit) -> list[str]:
    return list(ActionPlan.objects.filter(audit=audit).order_by("pk").values_list("state", flat=True))


def test_continuous_audit_is_pending_until_its_start_time(clock: Clock) -> None:
    audit = continuous_audit(start_time=after(90).isoformat())
    assert (audit.state, audit.next_run_time) == ("PENDING", after(90))


def test_continuous_audit_does_not_run_before_its_start_time(engine: DecisionEngine) -> None:
    continuous_audit(start_time=after(90))
    assert run(engine) == 0


def test_continuous_audit_is_ongoing_without_an_engine_between_runs(engine: DecisionEngine) -> None:
    audit = continuous_audit()
    run(engine)
    found = again(audit)
    assert (found.state, found.decision_engine, found.next_run_time) == ("ONGOING", None, after(60))


def test_each_due_time_runs_once(engine: DecisionEngine, clock: Clock) -> None:
    continuous_audit()
    counts = [run(engine)]
    for _ in range(4):
        clock.advance(30)
        counts.append(run(engine))
    assert counts == [1, 0, 1, 0, 1]


def test_missed_due_times_are_merged_into_one_run(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit()
    run(engine)
    clock.advance(605)
    assert (run(engine), again(audit).next_run_time) == (1, after(660))


def test_cron_expression_is_evaluated_in_utc(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit("30 13 * * *")
    before = run(engine)
    clock.now = after(5400)
    assert (before, run(engine)) == (0, 1)
    assert again(audit).next_run_time == after(5400 + 86400)


def test_run_cancels_the_recommended_plan_of_the_previous_run(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit()
    run(engine)
    clock.advance(60)
    run(engine)
    older, newer = ActionPlan.objects.filter(audit=audit).order_by("pk")
    text = f"Action plan was cancelled, as its audit ran again and made action plan {newer.uuid}."
    assert (older.state, older.status_message, newer.state) == ("CANCELLED", text, "RECOMMENDED")


def test_run_cancels_the_actions_of_the_plan_of_the_previous_run(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit()
    run(engine)
    clock.advance(60)
    run(engine)
    older, newer = ActionPlan.objects.filter(audit=audit).order_by("pk")
    text = f"Action was cancelled with its action plan, as its audit ran again and made action plan {newer.uuid}."
    assert set(older.actions.values_list("state", "status_message")) == {("CANCELLED", text)}


def test_run_supersedes_the_plan_of_another_audit_with_equal_parameters(engine: DecisionEngine, clock: Clock) -> None:
    other = create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    run(engine)
    audit = continuous_audit()
    run(engine)
    assert (plans(other), plans(audit)) == (["SUPERSEDED"], ["RECOMMENDED"])


def test_plan_of_a_continuous_audit_is_superseded_by_the_plan_of_another_audit(
    engine: DecisionEngine, clock: Clock
) -> None:
    audit = continuous_audit()
    run(engine)
    create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    run(engine)
    assert plans(audit) == ["SUPERSEDED"]


def test_run_cancels_the_previous_plan_after_a_change_of_parameters(engine: DecisionEngine, clock: Clock) -> None:
    aim = {"goal": "cluster_maintaining", "strategy": "host_maintenance"}
    parameters = {"maintenance_node": "compute1"}
    audit = create_audit(audit_type="CONTINUOUS", interval="60", parameters=parameters, **aim)
    run(engine)
    make_node("compute2")
    Audit.objects.filter(pk=audit.pk).update(parameters={"maintenance_node": "compute2"})
    clock.advance(60)
    run(engine)
    assert plans(audit) == ["CANCELLED", "RECOMMENDED"]


@pytest.mark.parametrize("state", ["PENDING", "SUCCEEDED", "CANCELLED"])
def test_run_keeps_plans_that_are_no_longer_recommended(engine: DecisionEngine, state: str) -> None:
    audit = continuous_audit()
    make_plan(audit=audit, state=state)
    run(engine)
    assert plans(audit) == [state, "RECOMMENDED"]


def test_auto_trigger_launches_the_plan_of_each_run(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit(auto_trigger=True)
    run(engine)
    clock.advance(60)
    run(engine)
    assert plans(audit) == ["PENDING", "PENDING"]


def test_continuous_audit_succeeds_at_its_end_time(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit(end_time=after(90))
    run(engine)
    clock.advance(60)
    run(engine)
    before = again(audit)
    clock.advance(30)
    assert (run(engine), again(audit).state, again(audit).next_run_time) == (0, "SUCCEEDED", None)
    assert (before.state, before.next_run_time) == ("ONGOING", None)


def test_missed_due_time_does_not_run_after_end_time(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit(end_time=after(90))
    clock.advance(1000)
    assert (run(engine), again(audit).state, plans(audit)) == (0, "SUCCEEDED", [])


def test_continuous_audit_succeeds_if_its_cron_expression_has_no_further_match(
    engine: DecisionEngine, clock: Clock
) -> None:
    audit = continuous_audit("0 13 * * * 0 2026", start_time=after(0))
    clock.now = datetime.fromisoformat("2026-12-31T13:00:00+00:00")
    assert (run(engine), again(audit).state) == (1, "SUCCEEDED")


def test_failed_run_keeps_the_audit_ongoing_with_the_error_as_status_message(
    engine: DecisionEngine, failing_strategy: Any
) -> None:
    audit = continuous_audit()
    run(engine)
    found = again(audit)
    text = "The run of 2026-11-21 12:00:00 UTC failed: the datasource does not answer"
    assert (found.state, found.status_message, found.next_run_time) == ("ONGOING", text, after(60))


def test_successful_run_clears_the_error_of_the_previous_run(
    engine: DecisionEngine, failing_strategy: Any, clock: Clock
) -> None:
    audit = continuous_audit()
    run(engine)
    failing_strategy.setattr(Switchable, "broken", False)
    clock.advance(60)
    assert (run(engine), again(audit).status_message) == (1, None)


def test_continuous_audit_fails_if_its_last_run_failed(
    engine: DecisionEngine, failing_strategy: Any, clock: Clock
) -> None:
    audit = continuous_audit("0 13 * * * 0 2026")
    clock.now = datetime.fromisoformat("2026-12-31T13:00:00+00:00")
    run(engine)
    found = again(audit)
    assert (found.state, found.status_message) == ("FAILED", "the datasource does not answer")


def test_invalid_stored_interval_fails_the_audit_and_other_audits_run(engine: DecisionEngine, clock: Clock) -> None:
    broken, sound = continuous_audit(), continuous_audit()
    Audit.objects.filter(pk=broken.pk).update(interval="* * *")
    run(engine)
    found = again(broken)
    assert (found.state, "neither a number of seconds" in (found.status_message or "")) == ("FAILED", True)
    assert (plans(broken), plans(sound)) == ([], ["RECOMMENDED"])


def test_run_during_an_ongoing_plan_is_omitted_with_a_status_message(engine: DecisionEngine) -> None:
    ongoing = make_plan(state="ONGOING")
    audit = continuous_audit()
    run(engine)
    found = again(audit)
    text = (
        f"The run of 2026-11-21 12:00:00 UTC was left out because action plan {ongoing.uuid} is ongoing. "
        "Use force to run it anyway."
    )
    assert (found.state, found.status_message, found.next_run_time) == ("ONGOING", text, after(60))


def test_force_runs_a_continuous_audit_during_an_ongoing_plan(engine: DecisionEngine) -> None:
    make_plan(state="ONGOING")
    audit = continuous_audit(force=True)
    run(engine)
    assert plans(audit) == ["RECOMMENDED"]


def suspend(audit: Audit) -> None:
    found = again(audit)
    found.suspend("Audit was suspended by user")
    found.save_state()


def test_suspended_audit_does_not_run(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit()
    run(engine)
    suspend(audit)
    clock.advance(600)
    assert run(engine) == 0


def test_resumed_audit_keeps_its_due_times(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit()
    run(engine)
    suspend(audit)
    found = again(audit)
    found.resume(clock.advance(605))
    found.save_state()
    found = again(audit)
    assert (found.state, found.next_run_time, found.status_message) == ("ONGOING", after(660), None)


def test_resume_after_end_time_is_refused(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit(end_time=after(90))
    run(engine)
    suspend(audit)
    with pytest.raises(Invalid, match="it has no further run before its end_time"):
        again(audit).resume(clock.advance(600))


def test_suspension_during_a_run_discards_its_plan(engine: DecisionEngine) -> None:
    audit = continuous_audit()
    held = engine.next_audit()
    suspend(audit)
    engine.run_audit(held)
    assert (again(audit).state, plans(audit)) == ("SUSPENDED", [])


def test_cancelled_continuous_audit_does_not_run_again(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit()
    run(engine)
    found = again(audit)
    found.cancel("Audit was canceled by user")
    found.save_state()
    clock.advance(600)
    assert (run(engine), again(audit).next_run_time) == (0, None)


def test_interval_changed_during_a_run_is_kept(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit()
    held = engine.next_audit()
    Audit.objects.filter(pk=audit.pk).update(interval="7200", next_run_time=after(7200))
    engine.run_audit(held)
    assert again(audit).next_run_time == after(7200)


def test_run_of_a_stopped_engine_is_repeated_by_another_engine(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit()
    engine.next_audit()
    clock.advance(40)
    assert (run(DecisionEngine()), plans(audit), again(audit).next_run_time) == (1, ["RECOMMENDED"], after(60))


def test_run_of_a_live_engine_is_not_repeated_by_another_engine(engine: DecisionEngine) -> None:
    continuous_audit()
    engine.next_audit()
    assert run(DecisionEngine()) == 0


def test_engine_with_an_expired_lease_writes_no_plan(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit()
    held = engine.next_audit()
    Service.objects.filter(pk=engine.service.pk).update(last_seen_up=after(-1000))
    run(DecisionEngine())
    engine.run_audit(held)
    assert plans(audit) == ["RECOMMENDED"]


def test_run_that_started_before_end_time_is_completed(engine: DecisionEngine, clock: Clock) -> None:
    audit = continuous_audit(end_time=after(10))
    held = engine.next_audit()
    clock.advance(15)
    run(DecisionEngine())
    engine.run_audit(held)
    run(engine)
    assert (again(audit).state, plans(audit)) == ("SUCCEEDED", ["RECOMMENDED"])


def test_audits_are_claimed_in_the_order_of_their_due_times(engine: DecisionEngine, clock: Clock) -> None:
    late = continuous_audit(start_time=after(20))
    single = create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    Audit.objects.filter(pk=single.pk).update(created_at=clock.now)
    clock.now = after(10)
    early = continuous_audit()
    clock.now = after(20)
    order = [engine.claim(Audit.objects.all()) for _ in range(3)]
    assert order == [single, early, late]
