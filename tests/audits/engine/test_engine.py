"""The decision engine takes each audit once, and answers it with a plan or with the reason why not."""

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


class Careless(Strategy):
    """A strategy that breaks, and says more than it should."""

    name = "careless"
    display_name = "Careless"
    goal = "dummy"

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        raise RuntimeError("the password is secret")


class DatabaseBreaker(Careless):
    """A strategy whose question takes the database too long."""

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        raise OperationalError("canceling statement due to statement timeout")


class Silent(Careless):
    """A strategy that reports nothing of what its goal asks for."""

    name = "silent"
    goal = "server_consolidation"

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        return Solution()


class Thorough(Silent):
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


def answered(engine: DecisionEngine, audit: Audit) -> Audit:
    while engine.run_next_audit():
        pass
    return Audit.objects.get(pk=audit.pk)


def install(settings: Any, strategy: str) -> None:
    settings.STRATEGIES = [f"tests.audits.engine.test_engine.{strategy}"]


def plan_of(audit: Audit) -> ActionPlan:
    return ActionPlan.objects.get(audit=audit)


def test_an_audit_succeeds_with_a_recommended_plan(engine: DecisionEngine) -> None:
    audit = answered(engine, dummy())
    plan = plan_of(audit)
    assert (audit.state, plan.state, plan.strategy.name) == ("SUCCEEDED", "RECOMMENDED", "dummy")


def test_the_actions_of_a_plan_have_the_parents_that_the_planner_gives(engine: DecisionEngine) -> None:
    plan = plan_of(answered(engine, dummy()))
    parents = [action.parents.count() for action in plan.actions.order_by("pk")]
    assert parents == [0, 1, 1]


def test_an_answered_audit_is_free_of_its_engine_and_remembers_the_host(engine: DecisionEngine, settings: Any) -> None:
    audit = answered(engine, dummy())
    assert (audit.decision_engine, audit.hostname) == (None, settings.HOST)


def test_an_audit_without_strategy_takes_the_first_of_its_goal(engine: DecisionEngine) -> None:
    plan = plan_of(answered(engine, dummy(strategy=None)))
    assert (plan.strategy.name, plan.actions.count()) == ("dummy", 3)


def test_an_audit_of_a_goal_without_strategies_fails_and_says_so(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "Careless")
    audit = answered(engine, dummy(goal="noisy_neighbor", strategy=None))
    text = "No strategy could be found to achieve the 'noisy_neighbor' goal."
    assert (audit.state, audit.status_message) == ("FAILED", text)


def test_an_audit_that_needs_compute_nodes_fails_on_an_empty_cloud_and_says_so() -> None:
    audit = answered(DecisionEngine(), dummy(goal="saving_energy", strategy="saving_energy"))
    assert (audit.state, audit.status_message) == ("FAILED", "The cluster state is not defined")


@pytest.mark.parametrize("strategy", ["dummy", "dummy_with_resize", "dummy_with_scorer"])
def test_an_audit_that_needs_nothing_of_the_cloud_succeeds_on_an_empty_cloud(strategy: str) -> None:
    audit = answered(DecisionEngine(), dummy(strategy=strategy))
    assert (audit.state, audit.status_message, plan_of(audit).state) == ("SUCCEEDED", None, "RECOMMENDED")


def test_the_actuator_needs_nothing_of_the_cloud() -> None:
    engine = DecisionEngine()
    audit = answered(engine, actuate("nop"))
    assert (audit.state, plan_of(audit).actions.get().action_type) == ("SUCCEEDED", "nop")


def test_an_audit_that_needs_nothing_of_the_cloud_succeeds_whatever_its_scope_leaves() -> None:
    audit = dummy()
    Audit.objects.filter(pk=audit.pk).update(scope=[{"compute": [{"availability_zones": [{"name": "az1"}]}]}])
    assert answered(DecisionEngine(), audit).state == "SUCCEEDED"


def test_an_audit_whose_scope_names_nothing_fails_and_says_so(engine: DecisionEngine) -> None:
    audit = dummy(goal="saving_energy", strategy="saving_energy")
    Audit.objects.filter(pk=audit.pk).update(scope=[{"compute": [{"availability_zones": [{"name": "az1"}]}]}])
    audit = answered(engine, audit)
    assert (audit.state, audit.status_message) == ("FAILED", "The scope of the audit leaves no compute node.")


def test_an_action_type_that_cannot_be_planned_fails_the_audit_and_is_named(
    engine: DecisionEngine, settings: Any
) -> None:
    settings.PLANNER_WEIGHTS = {"sleep": 1}
    audit = answered(engine, actuate("nop"))
    assert (audit.state, audit.status_message) == (
        "FAILED",
        "Action type nop has no weight, so that it cannot be planned.",
    )


def test_an_action_type_that_is_gone_when_the_audit_runs_fails_it_and_is_named(
    engine: DecisionEngine, settings: Any
) -> None:
    audit = actuate("nop")
    settings.ACTION_TYPES = ["actions.types.sleep.Sleep"]
    audit = answered(engine, audit)
    assert (audit.state, audit.status_message) == ("FAILED", "actions.0.action_type: there is no action type nop.")


def test_a_failed_audit_leaves_no_plan(engine: DecisionEngine, settings: Any) -> None:
    settings.PLANNER_WEIGHTS = {"sleep": 1}
    answered(engine, actuate("nop"))
    assert not ActionPlan.objects.exists()


def test_an_error_that_is_not_ours_is_reported_by_its_class_only(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "Careless")
    audit = answered(engine, dummy(strategy=None))
    assert (audit.state, audit.status_message) == ("FAILED", "RuntimeError")


def test_a_missing_efficacy_indicator_fails_the_audit(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "Silent")
    audit = answered(engine, dummy(goal="server_consolidation", strategy=None))
    assert audit.status_message == "Efficacy indicator compute_nodes_count: the strategy did not report it."


def test_a_plan_carries_the_efficacy_that_its_strategy_reports(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "Thorough")
    plan = plan_of(answered(engine, dummy(goal="server_consolidation", strategy=None)))
    indicators = dict(plan.efficacy_indicators.values_list("name", "value"))
    assert (indicators["instance_migrations_count"], plan.global_efficacy[0]["value"]) == (2, 25)


def test_a_scope_narrows_what_the_strategy_sees(engine: DecisionEngine) -> None:
    make_server("web-1", make_node("compute2"), project_id="blue")
    audit = dummy(goal="cluster_maintaining", strategy="host_maintenance", parameters={"maintenance_node": "compute2"})
    scope = [{"compute": [{"exclude": [{"projects": [{"uuid": "blue"}]}]}]}]
    Audit.objects.filter(pk=audit.pk).update(scope=scope)
    types = plan_of(answered(engine, audit)).actions.values_list("action_type", flat=True)
    assert list(types) == ["change_nova_service_state"]


def test_an_ongoing_plan_anywhere_cancels_an_audit_that_says_so(engine: DecisionEngine) -> None:
    ongoing = make_plan(state="ONGOING")
    audit = answered(engine, dummy())
    assert (audit.state, audit.status_message) == (
        "CANCELLED",
        f"Audit was cancelled because action plan {ongoing.uuid} is ongoing. Use force to run it anyway.",
    )


def test_force_runs_an_audit_beside_an_ongoing_plan(engine: DecisionEngine) -> None:
    make_plan(state="ONGOING")
    assert answered(engine, dummy(force=True)).state == "SUCCEEDED"


def test_auto_trigger_hands_the_plan_to_the_appliers(engine: DecisionEngine) -> None:
    assert plan_of(answered(engine, dummy(auto_trigger=True))).state == "PENDING"


def test_auto_trigger_never_launches_an_empty_plan(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "Thorough")
    audit = answered(engine, dummy(goal="server_consolidation", strategy=None, auto_trigger=True))
    assert plan_of(audit).state == "SUCCEEDED"


def test_a_newer_plan_supersedes_an_older_one_and_its_actions(engine: DecisionEngine) -> None:
    older = plan_of(answered(engine, dummy()))
    newer = plan_of(answered(engine, dummy()))
    older = ActionPlan.objects.get(pk=older.pk)
    states = set(older.actions.values_list("state", flat=True))
    text = f"Action plan was superseded by the newer action plan {newer.uuid}."
    assert (older.state, older.status_message, states) == ("SUPERSEDED", text, {"CANCELLED"})


def test_the_newer_plan_is_not_superseded_by_itself(engine: DecisionEngine) -> None:
    answered(engine, dummy())
    assert plan_of(answered(engine, dummy())).state == "RECOMMENDED"


@pytest.mark.parametrize("state", ["PENDING", "ONGOING", "SUCCEEDED", "CANCELLED"])
def test_only_recommended_plans_are_superseded(engine: DecisionEngine, state: str) -> None:
    older = make_plan(audit=answered(engine, dummy()), state=state)
    answered(engine, dummy(force=True))
    assert ActionPlan.objects.get(pk=older.pk).state == state


def test_a_skipped_action_of_a_superseded_plan_stays_skipped(engine: DecisionEngine) -> None:
    action = plan_of(answered(engine, dummy())).actions.first()
    action.skip("alice")
    action.save_state()
    answered(engine, dummy())
    assert type(action).objects.get(pk=action.pk).state == "SKIPPED"


def test_emptying_one_node_does_not_supersede_the_emptying_of_another(engine: DecisionEngine) -> None:
    make_node("compute2")

    def maintain(node: str) -> Audit:
        aim = {"goal": "cluster_maintaining", "strategy": "host_maintenance"}
        return answered(engine, dummy(**aim, parameters={"maintenance_node": node}))

    first, second, again = maintain("compute1"), maintain("compute2"), maintain("compute1")
    assert [plan_of(audit).state for audit in (first, second, again)] == ["SUPERSEDED", "RECOMMENDED", "RECOMMENDED"]


def test_a_plan_of_another_scope_is_not_superseded(engine: DecisionEngine) -> None:
    older = answered(engine, dummy())
    scoped = dummy()
    Audit.objects.filter(pk=scoped.pk).update(scope=[{"compute": [{"exclude": [{"projects": []}]}]}])
    answered(engine, scoped)
    assert plan_of(older).state == "RECOMMENDED"


def test_a_plan_that_nobody_started_in_time_is_superseded(engine: DecisionEngine) -> None:
    plan = make_plan({"a": []}, created_at=timezone.now() - timedelta(hours=25))
    engine.run_next_audit()
    plan = ActionPlan.objects.get(pk=plan.pk)
    text = "Action plan was superseded, as it was not started within 24 hours."
    assert (plan.state, plan.status_message, plan.actions.get().state) == ("SUPERSEDED", text, "CANCELLED")


@pytest.mark.parametrize(("age", "expiry"), [(23, 24), (1000, 0)])
def test_a_plan_that_still_has_time_stays(engine: DecisionEngine, settings: Any, age: int, expiry: int) -> None:
    settings.ACTION_PLAN_EXPIRY = timedelta(hours=expiry)
    plan = make_plan(created_at=timezone.now() - timedelta(hours=age))
    engine.run_next_audit()
    assert ActionPlan.objects.get(pk=plan.pk).state == "RECOMMENDED"


def test_an_audit_that_a_dead_engine_held_is_run_again(engine: DecisionEngine) -> None:
    dead = DecisionEngine()
    audit = dummy()
    dead.next_audit()
    Service.objects.filter(pk=dead.service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    assert answered(engine, audit).state == "SUCCEEDED"


def test_an_audit_that_a_living_engine_holds_is_left_to_it(engine: DecisionEngine) -> None:
    dummy()
    DecisionEngine().next_audit()
    assert engine.next_audit() is None


def test_an_engine_whose_lease_ran_out_writes_no_plan(engine: DecisionEngine) -> None:
    dead = DecisionEngine()
    audit = dummy()
    held = dead.next_audit()
    Service.objects.filter(pk=dead.service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    answered(engine, audit)
    dead.answer(held)
    assert ActionPlan.objects.count() == 1


def during_the_strategy(monkeypatch: pytest.MonkeyPatch, happening: Callable[[], object]) -> None:
    load_cluster = run.load_cluster

    def see_while_it_happens(audit: Audit, models: Sequence[str]) -> ClusterSnapshot:
        happening()
        return load_cluster(audit, models)

    monkeypatch.setattr(run, "load_cluster", see_while_it_happens)


def cancel(audit: Audit) -> None:
    own = Audit.objects.get(pk=audit.pk)
    own.abandon()


def test_an_audit_that_is_cancelled_while_it_runs_gets_no_plan(
    engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = dummy()
    during_the_strategy(monkeypatch, lambda: cancel(audit))
    found = answered(engine, audit)
    assert (found.state, found.status_message, ActionPlan.objects.exists()) == (
        "CANCELLED",
        "Audit was canceled by user",
        False,
    )


def test_an_audit_that_is_cancelled_while_it_waits_is_not_taken(engine: DecisionEngine) -> None:
    cancel(dummy())
    assert engine.next_audit() is None


def test_an_audit_that_is_cancelled_in_the_moment_it_fails_stays_cancelled(
    engine: DecisionEngine, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(settings, "Careless")
    audit = dummy(strategy=None)
    during_the_strategy(monkeypatch, lambda: cancel(audit))
    assert answered(engine, audit).state == "CANCELLED"


def test_an_audit_that_a_lost_database_interrupted_is_taken_again(
    engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def lose_the_database() -> None:
        monkeypatch.undo()
        raise OperationalError("gone")

    audit = dummy()
    during_the_strategy(monkeypatch, lose_the_database)
    with pytest.raises(OperationalError):
        engine.run_next_audit()
    assert answered(engine, audit).state == "SUCCEEDED"


def test_a_plan_that_someone_deleted_does_not_hold_audits_up(engine: DecisionEngine) -> None:
    plan = make_plan(state="ONGOING")
    ActionPlan.objects.filter(pk=plan.pk).soft_delete()
    assert answered(engine, dummy()).state == "SUCCEEDED"


def test_the_engine_synchronizes_the_plug_ins_when_it_starts() -> None:
    Goal.objects.all().delete()
    call_command("run_decision_engine", "--once")
    assert Goal.objects.filter(name="dummy").exists()


def test_the_command_answers_what_waits_and_exits() -> None:
    make_node("compute1")
    audits = [dummy(), dummy()]
    call_command("run_decision_engine", "--once")
    assert {Audit.objects.get(pk=audit.pk).state for audit in audits} == {"SUCCEEDED"}


def test_the_command_retires_its_service_when_it_ends() -> None:
    call_command("run_decision_engine", "--once")
    assert not Service.objects.present().filter(name=Service.DECISION_ENGINE).exists()


def test_an_audit_that_breaks_the_database_again_and_again_is_given_up(engine: DecisionEngine, settings: Any) -> None:
    install(settings, "DatabaseBreaker")
    audit = dummy(strategy=None)
    for _ in range(MOST_INTERRUPTIONS - 1):
        with pytest.raises(OperationalError):
            engine.run_next_audit()
    engine.run_next_audit()
    failed = Audit.objects.get(pk=audit.pk)
    assert failed.state == Audit.State.FAILED
    assert failed.status_message == f"The database broke it off {MOST_INTERRUPTIONS} times."
    assert not engine.run_next_audit()


def test_an_audit_whose_failure_raises_an_error_is_failed_silently(
    engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, sound = dummy(name="broken"), dummy(name="sound")
    original = run.lock_run

    def lock_run(audit: Audit) -> Audit:
        if audit.pk == broken.pk:
            raise ZeroDivisionError
        return original(audit)

    monkeypatch.setattr(run, "lock_run", lock_run)
    assert answered(engine, sound).state == "SUCCEEDED"
    failed = Audit.objects.get(pk=broken.pk)
    assert (failed.state, failed.status_message) == ("FAILED", "ZeroDivisionError")


@pytest.mark.parametrize("task", ["supersede_expired_plans", "synchronize", "search_capacity", "end_series"])
def test_a_failed_task_of_the_engine_stops_no_audit(
    engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    audit = dummy()

    def fail() -> None:
        raise ZeroDivisionError

    fail.__name__ = task
    monkeypatch.setattr(engine, task, fail)
    assert answered(engine, audit).state == "SUCCEEDED"
