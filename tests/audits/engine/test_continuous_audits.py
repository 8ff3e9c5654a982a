"""A CONTINUOUS audit runs again and again, until its end."""

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


class Moody(Strategy):
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
def moody(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    settings.STRATEGIES = ["tests.audits.engine.test_continuous_audits.Moody"]
    return monkeypatch


def every(interval: str = "60", **fields: Any) -> Audit:
    return create_audit(audit_type="CONTINUOUS", goal="dummy", strategy="dummy", interval=interval, **fields)


def run(engine: DecisionEngine) -> int:
    """Let an engine do all that is to be done now, and return how many runs that were."""
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


def test_it_waits_for_its_first_run_as_pending(clock: Clock) -> None:
    audit = every(start_time=after(90).isoformat())
    assert (audit.state, audit.next_run_time) == ("PENDING", after(90))


def test_it_does_not_run_before_its_start(engine: DecisionEngine) -> None:
    every(start_time=after(90))
    assert run(engine) == 0


def test_it_stays_ongoing_between_its_runs(engine: DecisionEngine) -> None:
    audit = every()
    run(engine)
    found = again(audit)
    assert (found.state, found.decision_engine, found.next_run_time) == ("ONGOING", None, after(60))


def test_each_due_time_is_run_once(engine: DecisionEngine, clock: Clock) -> None:
    every()
    counts = [run(engine)]
    for _ in range(4):
        clock.advance(30)
        counts.append(run(engine))
    assert counts == [1, 0, 1, 0, 1]


def test_times_that_were_missed_are_run_once_and_not_caught_up(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    run(engine)
    clock.advance(605)
    assert (run(engine), again(audit).next_run_time) == (1, after(660))


def test_a_cron_expression_is_matched_in_utc(engine: DecisionEngine, clock: Clock) -> None:
    audit = every("30 13 * * *")
    before = run(engine)
    clock.now = after(5400)
    assert (before, run(engine)) == (0, 1)
    assert again(audit).next_run_time == after(5400 + 86400)


def test_a_run_cancels_the_plan_of_the_run_before(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    run(engine)
    clock.advance(60)
    run(engine)
    older, newer = ActionPlan.objects.filter(audit=audit).order_by("pk")
    text = f"Action plan was cancelled, as its audit ran again and made action plan {newer.uuid}."
    assert (older.state, older.status_message, newer.state) == ("CANCELLED", text, "RECOMMENDED")


def test_the_actions_of_a_plan_that_the_next_run_cancels_are_cancelled(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    run(engine)
    clock.advance(60)
    run(engine)
    older, newer = ActionPlan.objects.filter(audit=audit).order_by("pk")
    text = f"Action was cancelled with its action plan, as its audit ran again and made action plan {newer.uuid}."
    assert set(older.actions.values_list("state", "status_message")) == {("CANCELLED", text)}


def test_a_run_supersedes_the_plan_of_another_audit_with_the_same_parameters(
    engine: DecisionEngine, clock: Clock
) -> None:
    other = create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    run(engine)
    audit = every()
    run(engine)
    assert (plans(other), plans(audit)) == (["SUPERSEDED"], ["RECOMMENDED"])


def test_the_plan_of_a_continuous_audit_is_superseded_by_another_audits(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    run(engine)
    create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    run(engine)
    assert plans(audit) == ["SUPERSEDED"]


def test_a_run_cancels_the_audits_older_plan_although_its_parameters_were_changed(
    engine: DecisionEngine, clock: Clock
) -> None:
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
def test_a_run_leaves_plans_that_somebody_decided_on(engine: DecisionEngine, state: str) -> None:
    audit = every()
    make_plan(audit=audit, state=state)
    run(engine)
    assert plans(audit) == [state, "RECOMMENDED"]


def test_auto_trigger_starts_the_plan_of_each_run(engine: DecisionEngine, clock: Clock) -> None:
    audit = every(auto_trigger=True)
    run(engine)
    clock.advance(60)
    run(engine)
    assert plans(audit) == ["PENDING", "PENDING"]


def test_it_has_succeeded_after_its_end(engine: DecisionEngine, clock: Clock) -> None:
    audit = every(end_time=after(90))
    run(engine)
    clock.advance(60)
    run(engine)
    before = again(audit)
    clock.advance(30)
    assert (run(engine), again(audit).state, again(audit).next_run_time) == (0, "SUCCEEDED", None)
    assert (before.state, before.next_run_time) == ("ONGOING", None)


def test_a_time_that_was_missed_is_not_run_after_the_end(engine: DecisionEngine, clock: Clock) -> None:
    audit = every(end_time=after(90))
    clock.advance(1000)
    assert (run(engine), again(audit).state, plans(audit)) == (0, "SUCCEEDED", [])


def test_a_cron_expression_without_further_match_ends_its_series(engine: DecisionEngine, clock: Clock) -> None:
    audit = every("0 13 * * * 0 2026", start_time=after(0))
    clock.now = datetime.fromisoformat("2026-12-31T13:00:00+00:00")
    assert (run(engine), again(audit).state) == (1, "SUCCEEDED")


def test_a_failing_run_does_not_end_the_series_and_says_when_and_why(engine: DecisionEngine, moody: Any) -> None:
    audit = every()
    run(engine)
    found = again(audit)
    text = "The run of 2026-11-21 12:00:00 UTC failed: the datasource does not answer"
    assert (found.state, found.status_message, found.next_run_time) == ("ONGOING", text, after(60))


def test_the_next_run_that_succeeds_clears_the_message(engine: DecisionEngine, moody: Any, clock: Clock) -> None:
    audit = every()
    run(engine)
    moody.setattr(Moody, "broken", False)
    clock.advance(60)
    assert (run(engine), again(audit).status_message) == (1, None)


def test_it_has_failed_when_its_last_run_did_and_none_can_come(
    engine: DecisionEngine, moody: Any, clock: Clock
) -> None:
    audit = every("0 13 * * * 0 2026")
    clock.now = datetime.fromisoformat("2026-12-31T13:00:00+00:00")
    run(engine)
    found = again(audit)
    assert (found.state, found.status_message) == ("FAILED", "the datasource does not answer")


def test_an_interval_that_can_no_longer_be_read_fails_it_and_the_engine_goes_on(
    engine: DecisionEngine, clock: Clock
) -> None:
    broken, sound = every(), every()
    Audit.objects.filter(pk=broken.pk).update(interval="* * *")
    run(engine)
    found = again(broken)
    assert (found.state, "neither a number of seconds" in (found.status_message or "")) == ("FAILED", True)
    assert (plans(broken), plans(sound)) == ([], ["RECOMMENDED"])


def test_an_ongoing_plan_has_a_run_left_out_with_a_message(engine: DecisionEngine) -> None:
    ongoing = make_plan(state="ONGOING")
    audit = every()
    run(engine)
    found = again(audit)
    text = (
        f"The run of 2026-11-21 12:00:00 UTC was left out because action plan {ongoing.uuid} is ongoing. "
        "Use force to run it anyway."
    )
    assert (found.state, found.status_message, found.next_run_time) == ("ONGOING", text, after(60))


def test_force_runs_it_beside_an_ongoing_plan(engine: DecisionEngine) -> None:
    make_plan(state="ONGOING")
    audit = every(force=True)
    run(engine)
    assert plans(audit) == ["RECOMMENDED"]


def suspend(audit: Audit) -> None:
    found = again(audit)
    found.suspend("Audit was suspended by user")
    found.save_state()


def test_a_suspended_one_does_not_run(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    run(engine)
    suspend(audit)
    clock.advance(600)
    assert run(engine) == 0


def test_one_that_is_resumed_goes_on_in_its_old_rhythm(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    run(engine)
    suspend(audit)
    found = again(audit)
    found.resume(clock.advance(605))
    found.save_state()
    found = again(audit)
    assert (found.state, found.next_run_time, found.status_message) == ("ONGOING", after(660), None)


def test_one_whose_end_passed_cannot_be_resumed(engine: DecisionEngine, clock: Clock) -> None:
    audit = every(end_time=after(90))
    run(engine)
    suspend(audit)
    with pytest.raises(Invalid, match="no run would come before its end_time"):
        again(audit).resume(clock.advance(600))


def test_a_run_that_is_under_way_when_it_is_suspended_comes_to_nothing(engine: DecisionEngine) -> None:
    audit = every()
    held = engine.next_audit()
    suspend(audit)
    engine.answer(held)
    assert (again(audit).state, plans(audit)) == ("SUSPENDED", [])


def test_a_cancelled_one_does_not_run_again(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    run(engine)
    found = again(audit)
    found.cancel("Audit was canceled by user")
    found.save_state()
    clock.advance(600)
    assert (run(engine), again(audit).next_run_time) == (0, None)


def test_another_interval_that_comes_during_a_run_is_kept(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    held = engine.next_audit()
    Audit.objects.filter(pk=audit.pk).update(interval="7200", next_run_time=after(7200))
    engine.answer(held)
    assert again(audit).next_run_time == after(7200)


def test_a_run_whose_engine_died_is_made_by_another(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    engine.next_audit()
    clock.advance(40)
    assert (run(DecisionEngine()), plans(audit), again(audit).next_run_time) == (1, ["RECOMMENDED"], after(60))


def test_a_run_whose_engine_lives_is_left_to_it(engine: DecisionEngine) -> None:
    every()
    engine.next_audit()
    assert run(DecisionEngine()) == 0


def test_an_engine_that_lost_its_run_to_another_writes_no_plan(engine: DecisionEngine, clock: Clock) -> None:
    audit = every()
    held = engine.next_audit()
    Service.objects.filter(pk=engine.service.pk).update(last_seen_up=after(-1000))
    run(DecisionEngine())
    engine.answer(held)
    assert plans(audit) == ["RECOMMENDED"]


def test_a_run_that_is_under_way_at_the_end_is_finished(engine: DecisionEngine, clock: Clock) -> None:
    audit = every(end_time=after(10))
    held = engine.next_audit()
    clock.advance(15)
    run(DecisionEngine())
    engine.answer(held)
    run(engine)
    assert (again(audit).state, plans(audit)) == ("SUCCEEDED", ["RECOMMENDED"])


def test_of_all_that_wait_the_one_that_waited_longest_is_first(engine: DecisionEngine, clock: Clock) -> None:
    late = every(start_time=after(20))
    single = create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    Audit.objects.filter(pk=single.pk).update(created_at=clock.now)
    clock.now = after(10)
    early = every()
    clock.now = after(20)
    order = [engine.claim(Audit.objects.all()) for _ in range(3)]
    assert order == [single, early, late]
