"""Synchronization of goals, strategies and scoring engines with the installed plug-ins."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audits import plugins
from audits.goals import GoalDefinition
from audits.models import Audit, AuditTemplate, Goal, ScoringEngine, Strategy
from audits.plugins import synchronize
from audits.strategies.dummy import Dummy
from plans.models import ActionPlan
from tests.builders import make_audit, make_plan
from tests.watcher_site.notifications.relaying import subscribe_to

pytestmark = pytest.mark.django_db


class ChangedDummy(Dummy):
    display_name = "Another dummy"


class RedescribedDummy(Dummy):
    schema = {**Dummy.schema, "title": "Parameters"}


class TitledDummy(Dummy):
    schema = {**Dummy.schema, "properties": {**Dummy.schema["properties"], "title": {"type": "string"}}}


class UnknownGoal(Dummy):
    goal = "nowhere"


def dummy() -> Strategy:
    return Strategy.objects.present().get(name="dummy")


def change_strategy(settings: Any) -> None:
    settings.STRATEGIES = ["tests.audits.test_plugins.ChangedDummy"]
    synchronize()


def remove_strategies(settings: Any) -> None:
    settings.STRATEGIES = []
    synchronize()


def change_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    goals = {**plugins.GOALS, "dummy": GoalDefinition("dummy", "Another dummy goal")}
    monkeypatch.setattr(plugins, "GOALS", goals)
    synchronize()


def state(row: Any) -> str:
    return type(row).objects.get(pk=row.pk).state


def test_migrated_database_contains_all_goals() -> None:
    assert list(Goal.objects.present().order_by("name").values_list("name", flat=True)) == [
        "airflow_optimization",
        "capacity",
        "cluster_health",
        "cluster_maintaining",
        "dummy",
        "hardware_maintenance",
        "node_recovery",
        "noisy_neighbor",
        "saving_energy",
        "server_consolidation",
        "stack_health",
        "thermal_optimization",
        "unclassified",
        "workload_balancing",
    ]


def test_migrated_database_contains_the_installed_strategies_with_their_goals() -> None:
    goals: dict[str, set[str]] = {}
    for name, goal in Strategy.objects.present().values_list("name", "goal__name"):
        goals.setdefault(goal, set()).add(name)
    assert goals == {
        "airflow_optimization": {"uniform_airflow"},
        "capacity": {"make_room"},
        "cluster_health": {"cluster_recovery"},
        "stack_health": {"replace_unhealthy"},
        "cluster_maintaining": {"host_maintenance"},
        "dummy": {"dummy", "dummy_with_resize", "dummy_with_scorer"},
        "hardware_maintenance": {"zone_migration"},
        "node_recovery": {"node_recovery"},
        "noisy_neighbor": {"noisy_neighbor"},
        "saving_energy": {"saving_energy"},
        "server_consolidation": {"basic", "node_resource_consolidation", "vm_workload_consolidation"},
        "thermal_optimization": {"outlet_temperature"},
        "unclassified": {"actuator"},
        "workload_balancing": {"storage_capacity_balance", "workload_balance", "workload_stabilization"},
    }


def test_migrated_database_contains_the_scoring_engines() -> None:
    assert set(ScoringEngine.objects.values_list("name", flat=True)) == {
        "dummy_scorer",
        "dummy_min_scorer",
        "dummy_max_scorer",
        "dummy_avg_scorer",
    }


def test_indicator_schema_is_stored_as_text() -> None:
    indicators = Goal.objects.get(name="server_consolidation").efficacy_specification
    assert indicators[0]["schema"] == '{"type": "integer", "minimum": 0}'


def test_second_synchronization_changes_no_row() -> None:
    before = list(Strategy.objects.values()), list(Goal.objects.values()), list(ScoringEngine.objects.values())
    synchronize()
    assert before == (
        list(Strategy.objects.values()),
        list(Goal.objects.values()),
        list(ScoringEngine.objects.values()),
    )


def test_synchronization_of_unchanged_plugins_writes_no_row() -> None:
    with CaptureQueriesContext(connection) as queries:
        synchronize()
    assert not [query for query in queries if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]


def test_changed_strategy_gets_a_new_row(settings: Any) -> None:
    old = dummy()
    change_strategy(settings)
    assert (dummy().uuid == old.uuid, dummy().display_name) == (False, "Another dummy")


def test_strategy_with_changed_descriptions_keeps_its_row(settings: Any) -> None:
    old = dummy()
    settings.STRATEGIES = ["tests.audits.test_plugins.RedescribedDummy"]
    synchronize()
    assert (dummy().uuid, dummy().parameters_spec) == (old.uuid, RedescribedDummy.schema)


def test_parameter_named_like_a_descriptive_keyword_changes_the_strategy(settings: Any) -> None:
    old = dummy()
    settings.STRATEGIES = ["tests.audits.test_plugins.TitledDummy"]
    synchronize()
    assert (dummy().uuid == old.uuid, dummy().parameters_spec) == (False, TitledDummy.schema)


def test_old_row_of_a_changed_strategy_is_soft_deleted(settings: Any) -> None:
    old = dummy()
    change_strategy(settings)
    assert Strategy.objects.get(pk=old.pk).deleted_at is not None


def test_references_to_a_changed_strategy_move_to_its_new_row(settings: Any) -> None:
    audit = make_audit(strategy=dummy())
    plan = make_plan(audit=audit, strategy=dummy())
    template = AuditTemplate.objects.create(name="t", goal=dummy().goal, strategy=dummy())
    change_strategy(settings)
    strategies = {type(row).objects.get(pk=row.pk).strategy for row in (audit, plan, template)}
    assert strategies == {dummy()}


@pytest.mark.parametrize("found", ["PENDING", "ONGOING", "SUSPENDED", "SUCCEEDED"])
def test_audits_of_a_changed_strategy_continue(settings: Any, found: str) -> None:
    audit = make_audit(strategy=dummy(), state=found)
    change_strategy(settings)
    assert state(audit) == found


@pytest.mark.parametrize("found", ["PENDING", "ONGOING", "SUSPENDED"])
def test_unfinished_audits_of_a_removed_strategy_are_cancelled(settings: Any, found: str) -> None:
    audit = make_audit(strategy=dummy(), state=found)
    remove_strategies(settings)
    assert state(audit) == "CANCELLED"


@pytest.mark.parametrize("found", ["SUCCEEDED", "FAILED"])
def test_finished_audits_of_a_removed_strategy_keep_their_state(settings: Any, found: str) -> None:
    audit = make_audit(strategy=dummy(), state=found)
    remove_strategies(settings)
    assert state(audit) == found


@pytest.mark.parametrize(
    ("found", "then"),
    [
        ("RECOMMENDED", "CANCELLED"),
        ("PENDING", "CANCELLED"),
        ("ONGOING", "CANCELLING"),
        ("SUCCEEDED", "SUCCEEDED"),
        ("SUPERSEDED", "SUPERSEDED"),
    ],
)
def test_plans_of_a_removed_strategy_are_cancelled_unless_finished(settings: Any, found: str, then: str) -> None:
    plan = make_plan(strategy=dummy(), state=found)
    remove_strategies(settings)
    assert state(plan) == then


@pytest.mark.parametrize("found", ["RECOMMENDED", "PENDING", "ONGOING"])
def test_plans_of_a_changed_strategy_continue(settings: Any, found: str) -> None:
    plan = make_plan(strategy=dummy(), state=found)
    change_strategy(settings)
    assert state(plan) == found


def test_plans_of_a_removed_strategy_are_cancelled_with_a_notification_subscription(settings: Any) -> None:
    subscribe_to("https://example.org/events")
    plan = make_plan(audit=make_audit(strategy=dummy()))
    remove_strategies(settings)
    assert state(plan) == "CANCELLED"


def test_actions_of_plans_of_a_removed_strategy_are_cancelled(settings: Any) -> None:
    plan = make_plan({"a": []}, strategy=dummy())
    remove_strategies(settings)
    assert plan.actions.get().state == "CANCELLED"


def test_removed_strategy_is_cleared_from_templates(settings: Any) -> None:
    template = AuditTemplate.objects.create(name="t", goal=dummy().goal, strategy=dummy())
    remove_strategies(settings)
    assert AuditTemplate.objects.get(pk=template.pk).strategy is None


def test_status_message_of_audits_of_a_removed_strategy_is_the_reason(settings: Any) -> None:
    audit = make_audit(strategy=dummy())
    remove_strategies(settings)
    assert Audit.objects.get(pk=audit.pk).status_message == "Its strategy was removed."


def test_changed_goal_keeps_its_strategies_and_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    audit = make_audit(strategy=dummy())
    change_goal(monkeypatch)
    goal = Goal.objects.present().get(name="dummy")
    assert (goal.display_name, dummy().goal, Audit.objects.get(pk=audit.pk).goal) == ("Another dummy goal", goal, goal)


def test_unfinished_plans_of_audits_of_a_changed_goal_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(audit=make_audit(strategy=dummy()), state="ONGOING")
    change_goal(monkeypatch)
    assert state(plan) == ActionPlan.State.ONGOING


def test_unfinished_audits_of_a_removed_goal_are_cancelled(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    audit = make_audit(strategy=dummy())
    settings.STRATEGIES = []
    monkeypatch.setattr(plugins, "GOALS", {})
    synchronize()
    assert state(audit) == Audit.State.CANCELLED


def test_strategy_with_an_unknown_goal_is_refused_with_its_name(settings: Any) -> None:
    settings.STRATEGIES = ["tests.audits.test_plugins.UnknownGoal"]
    with pytest.raises(ImproperlyConfigured, match="Strategy dummy: there is no goal nowhere"):
        synchronize()


def synchronize_in_a_thread(_: int) -> None:
    try:
        synchronize()
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_concurrent_synchronizations_create_each_row_once() -> None:
    Goal.objects.all().delete()
    ScoringEngine.objects.all().delete()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(synchronize_in_a_thread, range(8)))
    assert (Goal.objects.count(), Strategy.objects.count(), ScoringEngine.objects.count()) == (14, 20, 4)
