"""The decision engine runs each audit once: it writes a plan, or fails the audit with the reason."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError
from django.utils import timezone

from audits.engine import run
from audits.engine.engine import MOST_INTERRUPTIONS, DecisionEngine
from audits.models import Audit, Goal
from audits.operations.creation import create_audit
from audits.strategies.base import Solution, Strategy
from cluster.snapshot import ClusterSnapshot
from plans.models import ActionPlan
from tests.builders import make_node, make_plan, make_server
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


class FailingWithSecret(Strategy):
    """A strategy that raises an error with a secret in its message."""

    name = "careless"
    display_name = "FailingWithSecret"
    goal = "dummy"

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        raise RuntimeError("the password is secret")


class FailingWithTimeout(FailingWithSecret):
    """A strategy whose query exceeds the statement timeout."""

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        raise OperationalError("canceling statement due to statement timeout")


class WithoutIndicators(FailingWithSecret):
    """A strategy that reports no efficacy indicators."""

    name = "silent"
    goal = "server_consolidation"

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        return Solution()


class WithIndicators(WithoutIndicators):
    name = "thorough"

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        counts = {"compute_nodes_count": 4, "released_compute_nodes_count": 1, "instance_migrations_count": 2}
        return Solution(indicators=counts)


@pytest.fixture
def engine() -> DecisionEngine:
    make_node("compute1")
    return DecisionEngine()


def dummy(**fields: Any) -> Audit:
    return create_audit(**{"audit_type": "ONESHOT", "goal": "dummy", "strategy": "dummy", **fields})


def actuate(*types: str) -> Audit:
    actions = [{"action_type": action_type, "input_parameters": {"message": "m"}} for action_type in types]
    return dummy(goal="unclassified", strategy="actuator", parameters={"actions": actions})


def after_run(engine: DecisionEngine, audit: Audit) -> Audit:
    while engine.run_next_audit():
        pass
    return Audit.objects.get(pk=audit.pk)


def install(settings: Any, strategy: str) -> None:
    settings.STRATEGIES = [f"tests.audits.engine.test_engine.{strategy}"]


def plan_of(audit: Audit) -> ActionPlan:
    return ActionPlan.objects.get(audit=audit)


def test_audit_succeeds_with_a_recommended_plan(engine: DecisionEngine) -> None:
    audit = after_run(engine, dummy())
    plan = plan_of(audit)
    assert (audit.state, plan.state, plan.strategy.name) == ("SUCCEEDED", "RECOMMENDED", "dummy")


def test_actions_of_the_plan_have_the_parents_from_the_planner(engine: DecisionEngine) -> None:
    plan = plan_of(after_run(engine, dummy()))
    parents = [action.parents.count() for action in plan.actions.order_by("pk")]
    assert parents == [0, 1, 1]


def test_finished_audit_has_no_decision_engine_and_keeps_its_hostname(engine: DecisionEngine, settings: Any) -> None:
    audit = after_run(engine, dummy())
    assert (audit.decision_engine, audit.hostname) == (None, settings.HOST)


def test_audit_without_strategy_uses_the_first_strategy_of_its_goal(engine: DecisionEngine) -> None:
    plan = plan_of(after_run(engine, dummy(strategy=None)))
    assert (plan.strategy.name, plan.actions.count()) == ("dummy", 3)


def test_audit_of_a_goal_without_strategies_fails_with_the_reason(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "FailingWithSecret")
    audit = after_run(engine, dummy(goal="noisy_neighbor", strategy=None))
    text = "No strategy could be found to achieve the 'noisy_neighbor' goal."
    assert (audit.state, audit.status_message) == ("FAILED", text)


def test_audit_that_requires_compute_nodes_fails_on_an_empty_cloud() -> None:
    audit = after_run(DecisionEngine(), dummy(goal="saving_energy", strategy="saving_energy"))
    assert (audit.state, audit.status_message) == ("FAILED", "The cluster state is not defined")


@pytest.mark.parametrize("strategy", ["dummy", "dummy_with_resize", "dummy_with_scorer"])
def test_audit_that_requires_no_cluster_model_succeeds_on_an_empty_cloud(strategy: str) -> None:
    audit = after_run(DecisionEngine(), dummy(strategy=strategy))
    assert (audit.state, audit.status_message, plan_of(audit).state) == ("SUCCEEDED", None, "RECOMMENDED")


def test_actuator_audit_succeeds_on_an_empty_cloud() -> None:
    engine = DecisionEngine()
    audit = after_run(engine, actuate("nop"))
    assert (audit.state, plan_of(audit).actions.get().action_type) == ("SUCCEEDED", "nop")


def test_audit_that_requires_no_cluster_model_succeeds_with_an_empty_scope() -> None:
    audit = dummy()
    Audit.objects.filter(pk=audit.pk).update(scope=[{"compute": [{"availability_zones": [{"name": "az1"}]}]}])
    assert after_run(DecisionEngine(), audit).state == "SUCCEEDED"


def test_audit_whose_scope_matches_no_node_fails_with_the_reason(engine: DecisionEngine) -> None:
    audit = dummy(goal="saving_energy", strategy="saving_energy")
    Audit.objects.filter(pk=audit.pk).update(scope=[{"compute": [{"availability_zones": [{"name": "az1"}]}]}])
    audit = after_run(engine, audit)
    assert (audit.state, audit.status_message) == ("FAILED", "The scope of the audit leaves no compute node.")


def test_action_type_without_a_planner_weight_fails_the_audit_with_its_name(
    engine: DecisionEngine, settings: Any
) -> None:
    settings.PLANNER_WEIGHTS = {"sleep": 1}
    audit = after_run(engine, actuate("nop"))
    assert (audit.state, audit.status_message) == (
        "FAILED",
        "Action type nop has no weight, so that it cannot be planned.",
    )


def test_action_type_that_is_no_longer_installed_fails_the_audit_with_its_name(
    engine: DecisionEngine, settings: Any
) -> None:
    audit = actuate("nop")
    settings.ACTION_TYPES = ["actions.types.sleep.Sleep"]
    audit = after_run(engine, audit)
    assert (audit.state, audit.status_message) == ("FAILED", "actions.0.action_type: there is no action type nop.")


def test_failed_audit_has_no_plan(engine: DecisionEngine, settings: Any) -> None:
    settings.PLANNER_WEIGHTS = {"sleep": 1}
    after_run(engine, actuate("nop"))
    assert not ActionPlan.objects.exists()


def test_status_message_of_an_unexpected_error_is_its_class_name(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "FailingWithSecret")
    audit = after_run(engine, dummy(strategy=None))
    assert (audit.state, audit.status_message) == ("FAILED", "RuntimeError")


def test_missing_efficacy_indicator_fails_the_audit(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "WithoutIndicators")
    audit = after_run(engine, dummy(goal="server_consolidation", strategy=None))
    assert audit.status_message == "Efficacy indicator compute_nodes_count: the strategy did not report it."


def test_plan_stores_the_efficacy_reported_by_its_strategy(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "WithIndicators")
    plan = plan_of(after_run(engine, dummy(goal="server_consolidation", strategy=None)))
    indicators = dict(plan.efficacy_indicators.values_list("name", "value"))
    assert (indicators["instance_migrations_count"], plan.global_efficacy[0]["value"]) == (2, 25)


def test_strategy_receives_the_cluster_model_filtered_by_the_scope(engine: DecisionEngine) -> None:
    make_server("web-1", make_node("compute2"), project_id="blue")
    audit = dummy(goal="cluster_maintaining", strategy="host_maintenance", parameters={"maintenance_node": "compute2"})
    scope = [{"compute": [{"exclude": [{"projects": [{"uuid": "blue"}]}]}]}]
    Audit.objects.filter(pk=audit.pk).update(scope=scope)
    types = plan_of(after_run(engine, audit)).actions.values_list("action_type", flat=True)
    assert list(types) == ["change_nova_service_state"]


def test_ongoing_plan_cancels_the_audit_with_the_reason(engine: DecisionEngine) -> None:
    ongoing = make_plan(state="ONGOING")
    audit = after_run(engine, dummy())
    assert (audit.state, audit.status_message) == (
        "CANCELLED",
        f"Audit was cancelled because action plan {ongoing.uuid} is ongoing. Use force to run it anyway.",
    )


def test_force_runs_an_audit_during_an_ongoing_plan(engine: DecisionEngine) -> None:
    make_plan(state="ONGOING")
    assert after_run(engine, dummy(force=True)).state == "SUCCEEDED"


def test_auto_trigger_launches_the_plan(engine: DecisionEngine) -> None:
    assert plan_of(after_run(engine, dummy(auto_trigger=True))).state == "PENDING"


def test_auto_trigger_launches_the_plan_without_an_approval(engine: DecisionEngine, settings: Any) -> None:
    settings.PLAN_APPROVAL = True
    assert plan_of(after_run(engine, dummy(auto_trigger=True))).state == "PENDING"


def test_auto_trigger_does_not_launch_an_empty_plan(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "WithIndicators")
    audit = after_run(engine, dummy(goal="server_consolidation", strategy=None, auto_trigger=True))
    assert plan_of(audit).state == "SUCCEEDED"


def test_newer_plan_supersedes_an_older_plan_and_cancels_its_actions(engine: DecisionEngine) -> None:
    older = plan_of(after_run(engine, dummy()))
    newer = plan_of(after_run(engine, dummy()))
    older = ActionPlan.objects.get(pk=older.pk)
    states = set(older.actions.values_list("state", flat=True))
    text = f"Action plan was superseded by the newer action plan {newer.uuid}."
    assert (older.state, older.status_message, states) == ("SUPERSEDED", text, {"CANCELLED"})


def test_newer_plan_does_not_supersede_itself(engine: DecisionEngine) -> None:
    after_run(engine, dummy())
    assert plan_of(after_run(engine, dummy())).state == "RECOMMENDED"


@pytest.mark.parametrize("state", ["PENDING", "ONGOING", "SUCCEEDED", "CANCELLED"])
def test_only_recommended_plans_are_superseded(engine: DecisionEngine, state: str) -> None:
    older = make_plan(audit=after_run(engine, dummy()), state=state)
    after_run(engine, dummy(force=True))
    assert ActionPlan.objects.get(pk=older.pk).state == state


def test_skipped_action_of_a_superseded_plan_stays_skipped(engine: DecisionEngine) -> None:
    action = plan_of(after_run(engine, dummy())).actions.first()
    action.skip("alice")
    action.save_state()
    after_run(engine, dummy())
    assert type(action).objects.get(pk=action.pk).state == "SKIPPED"


def test_plan_for_one_node_does_not_supersede_the_plan_for_another_node(engine: DecisionEngine) -> None:
    make_node("compute2")

    def maintain(node: str) -> Audit:
        aim = {"goal": "cluster_maintaining", "strategy": "host_maintenance"}
        return after_run(engine, dummy(**aim, parameters={"maintenance_node": node}))

    first, second, again = maintain("compute1"), maintain("compute2"), maintain("compute1")
    assert [plan_of(audit).state for audit in (first, second, again)] == ["SUPERSEDED", "RECOMMENDED", "RECOMMENDED"]


def test_plan_with_another_scope_is_not_superseded(engine: DecisionEngine) -> None:
    older = after_run(engine, dummy())
    scoped = dummy()
    Audit.objects.filter(pk=scoped.pk).update(scope=[{"compute": [{"exclude": [{"projects": []}]}]}])
    after_run(engine, scoped)
    assert plan_of(older).state == "RECOMMENDED"


def test_plan_not_started_before_its_expiry_is_superseded(engine: DecisionEngine) -> None:
    plan = make_plan({"a": []}, created_at=timezone.now() - timedelta(hours=25))
    engine.run_next_audit()
    plan = ActionPlan.objects.get(pk=plan.pk)
    text = "Action plan was superseded, as it was not started within 24 hours."
    assert (plan.state, plan.status_message, plan.actions.get().state) == ("SUPERSEDED", text, "CANCELLED")


@pytest.mark.parametrize(("age", "expiry"), [(23, 24), (1000, 0)])
def test_plan_before_its_expiry_or_without_expiry_stays_recommended(
    engine: DecisionEngine, settings: Any, age: int, expiry: int
) -> None:
    settings.ACTION_PLAN_EXPIRY = timedelta(hours=expiry)
    plan = make_plan(created_at=timezone.now() - timedelta(hours=age))
    engine.run_next_audit()
    assert ActionPlan.objects.get(pk=plan.pk).state == "RECOMMENDED"


def test_audit_of_a_stopped_engine_is_run_again(engine: DecisionEngine) -> None:
    dead = DecisionEngine()
    audit = dummy()
    dead.next_audit()
    Service.objects.filter(pk=dead.service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    assert after_run(engine, audit).state == "SUCCEEDED"


def test_audit_of_a_live_engine_is_not_claimed_by_another_engine(engine: DecisionEngine) -> None:
    dummy()
    DecisionEngine().next_audit()
    assert engine.next_audit() is None


def test_engine_with_an_expired_lease_writes_no_plan(engine: DecisionEngine) -> None:
    dead = DecisionEngine()
    audit = dummy()
    held = dead.next_audit()
    Service.objects.filter(pk=dead.service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    after_run(engine, audit)
    dead.run_audit(held)
    assert ActionPlan.objects.count() == 1


def interrupt_strategy(monkeypatch: pytest.MonkeyPatch, happening: Callable[[], object]) -> None:
    load_cluster = run.load_cluster

    def load_after_interruption(audit: Audit, models: Sequence[str]) -> ClusterSnapshot:
        happening()
        return load_cluster(audit, models)

    monkeypatch.setattr(run, "load_cluster", load_after_interruption)


def cancel(audit: Audit) -> None:
    own = Audit.objects.get(pk=audit.pk)
    own.abandon()


def test_audit_cancelled_during_its_run_has_no_plan(engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = dummy()
    interrupt_strategy(monkeypatch, lambda: cancel(audit))
    found = after_run(engine, audit)
    assert (found.state, found.status_message, ActionPlan.objects.exists()) == (
        "CANCELLED",
        "Audit was canceled by user",
        False,
    )


def test_cancelled_pending_audit_is_not_claimed(engine: DecisionEngine) -> None:
    cancel(dummy())
    assert engine.next_audit() is None


def test_audit_cancelled_before_its_failure_is_written_stays_cancelled(
    engine: DecisionEngine, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(settings, "FailingWithSecret")
    audit = dummy(strategy=None)
    interrupt_strategy(monkeypatch, lambda: cancel(audit))
    assert after_run(engine, audit).state == "CANCELLED"


def test_audit_interrupted_by_a_database_error_is_run_again(
    engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def lose_the_database() -> None:
        monkeypatch.undo()
        raise OperationalError("gone")

    audit = dummy()
    interrupt_strategy(monkeypatch, lose_the_database)
    with pytest.raises(OperationalError):
        engine.run_next_audit()
    assert after_run(engine, audit).state == "SUCCEEDED"


def test_deleted_ongoing_plan_does_not_cancel_an_audit(engine: DecisionEngine) -> None:
    plan = make_plan(state="ONGOING")
    ActionPlan.objects.filter(pk=plan.pk).soft_delete()
    assert after_run(engine, dummy()).state == "SUCCEEDED"


def test_engine_synchronizes_plugins_when_it_starts() -> None:
    Goal.objects.all().delete()
    call_command("run_decision_engine", "--once")
    assert Goal.objects.filter(name="dummy").exists()


def test_command_with_once_runs_all_pending_audits_and_exits() -> None:
    make_node("compute1")
    audits = [dummy(), dummy()]
    call_command("run_decision_engine", "--once")
    assert {Audit.objects.get(pk=audit.pk).state for audit in audits} == {"SUCCEEDED"}


def test_command_retires_its_service_when_it_ends() -> None:
    call_command("run_decision_engine", "--once")
    assert not Service.objects.present().filter(name=Service.DECISION_ENGINE).exists()


def test_audit_fails_after_the_maximum_number_of_database_errors(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "FailingWithTimeout")
    audit = dummy(strategy=None)
    for _ in range(MOST_INTERRUPTIONS - 1):
        with pytest.raises(OperationalError):
            engine.run_next_audit()
    engine.run_next_audit()
    failed = Audit.objects.get(pk=audit.pk)
    assert failed.state == Audit.State.FAILED
    assert failed.status_message == f"Its run lost the database connection {MOST_INTERRUPTIONS} times."
    assert not engine.run_next_audit()


def test_audit_whose_failure_handling_raises_an_error_fails_and_other_audits_run(
    engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sound = dummy(name="broken"), dummy(name="sound")
    original = run.lock_run

    def lock_run(audit: Audit) -> Audit:
        if audit.pk == broken.pk:
            raise ZeroDivisionError
        return original(audit)

    monkeypatch.setattr(run, "lock_run", lock_run)
    assert after_run(engine, sound).state == "SUCCEEDED"
    failed = Audit.objects.get(pk=broken.pk)
    assert (failed.state, failed.status_message) == ("FAILED", "ZeroDivisionError")


@pytest.mark.parametrize("task", ["supersede_expired_plans", "synchronize", "search_capacity", "end_series"])
def test_failed_periodic_task_of_the_engine_does_not_stop_audits(
    engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    audit = dummy()

    def fail() -> None:
        raise ZeroDivisionError

    fail.__name__ = task
    monkeypatch.setattr(engine, task, fail)
    assert after_run(engine, audit).state == "SUCCEEDED"
