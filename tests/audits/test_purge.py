"""``manage.py purge`` permanently removes soft-deleted objects, and finished plans and audits of a given age."""

import gc
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from actions.models import Action, ActionEvent, ActionParent
from actions.models.instance_actions import InstanceAction
from audits import purging
from audits.models import Audit, AuditTemplate, Goal, Strategy
from cluster.models import Sample
from plans.models import ActionPlan, EfficacyIndicator
from plans.purging import remove_plans
from tests.builders import (
    action,
    make_audit,
    make_operation,
    make_plan,
    make_server,
    make_strategy,
)
from tests.command_runs import Run, run
from tests.watcher_site.notifications.relaying import notify
from watcher_site.models import Notification, Service

__all__ = ["run"]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def empty() -> None:
    """Delete the rows of the installed goals and strategies."""
    Goal.objects.all().delete()


def purge(*arguments: str) -> str:
    output = StringIO()
    call_command("purge", "--yes", *arguments, stdout=output)
    return output.getvalue()


def counts(text: str) -> list[int]:
    """Return the numbers of the table: goals, strategies, templates, audits, plans, actions, all."""
    numbers = {line.rpartition(" ")[0].strip(): line.split()[-1] for line in text.splitlines() if line}
    names = ("Goals", "Strategies", "Audit Templates", "Audits", "Action Plans", "Actions", "Total")
    return [int(numbers[name]) for name in names]


def delete(*records: Any, days: int = 0) -> None:
    for record in records:
        type(record).objects.filter(pk=record.pk).update(deleted_at=timezone.now() - timedelta(days=days))


def removed_plan(**columns: Any) -> ActionPlan:
    """Return a deleted plan of two actions with rows in all dependent tables."""
    plan = make_plan({"a": [], "b": ["a"]}, state="SUCCEEDED", **columns)
    ActionEvent.objects.create(action=action(plan, "a"), event="execute")
    EfficacyIndicator.objects.create(action_plan=plan, name="count", value=1)
    plan.remove()
    return plan


def template(strategy: Strategy) -> AuditTemplate:
    return AuditTemplate.objects.create(name=f"of {strategy}", goal=strategy.goal, strategy=strategy)


def goal_with_records(name: str) -> Goal:
    """Return a goal with a strategy, a template, an audit, a plan and an action."""
    strategy = make_strategy(name, name)
    template(strategy)
    audit = make_audit(f"for {name}", strategy=strategy, state="SUCCEEDED")
    make_plan({"a": []}, audit=audit, strategy=strategy, state="SUCCEEDED")
    return strategy.goal


def rows() -> list[int]:
    kinds: list[Any] = [Goal, Strategy, AuditTemplate, Audit, ActionPlan, Action]
    return [kind.objects.count() for kind in kinds]


def test_deleted_plan_is_removed_with_all_dependent_rows() -> None:
    removed_plan()
    text = purge()
    traces: list[Any] = [ActionEvent, ActionParent, EfficacyIndicator]
    assert (counts(text), "3 removed" in text) == ([0, 0, 0, 0, 1, 2, 3], True)
    assert (rows(), [kind.objects.count() for kind in traces]) == ([0] * 6, [0] * 3)


def test_objects_that_are_not_deleted_are_kept() -> None:
    goal_with_records("kept")
    assert (counts(purge()), rows()) == ([0] * 7, [1] * 6)


def test_output_lists_every_kind_of_object() -> None:
    names = [line[:16].strip() for line in purge().splitlines()]
    assert names == [
        *("Goals", "Strategies", "Audit Templates", "Audits", "Action Plans", "Actions"),
        *("Attachments", "Servers", "Volumes", "Compute Nodes", "Host Aggregates", "Flavors", "Pools"),
        *("Storage Nodes", "Volume Types", "Nodes", "Policy Bindings", "Clusters", "Policies", "Profiles"),
        *("Stack Resources", "Stacks", "Server Events", "Notifications", "Exclusions", "Services", "Samples"),
        *("History", "Total"),
    ]


def test_plans_of_a_deleted_audit_are_removed() -> None:
    audit = make_audit(state="SUCCEEDED")
    make_plan({"a": []}, audit=audit)
    delete(audit)
    assert counts(purge()) == [0, 0, 0, 1, 1, 1, 3]
    assert rows() == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("state", ["PENDING", "ONGOING", "CANCELLING"])
def test_unfinished_plan_of_a_deleted_audit_is_kept(state: str) -> None:
    audit = make_audit(state="SUCCEEDED")
    make_plan({"a": []}, audit=audit, state=state)
    delete(audit)
    purge()
    assert ActionPlan.objects.get().audit is None
    assert rows()[3:] == [0, 1, 1]


def test_goal_and_strategy_of_a_deleted_template_are_kept() -> None:
    delete(template(make_strategy()))
    assert (counts(purge()), rows()[:3]) == ([0, 0, 1, 0, 0, 0, 1], [1, 1, 0])


def test_deleted_goal_is_removed_with_all_objects_of_the_goal() -> None:
    delete(goal_with_records("gone"))
    goal_with_records("kept")
    assert counts(purge()) == [1, 1, 1, 1, 1, 1, 6]
    assert (rows(), Goal.objects.get().name) == ([1] * 6, "kept")


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
def test_deleted_goal_of_an_unfinished_audit_is_kept(state: str) -> None:
    audit = make_audit(state=state)
    delete(audit.goal)
    purge()
    assert rows()[:4] == [1, 1, 0, 1]


def test_deleted_strategy_is_kept_while_an_audit_refers_to_it() -> None:
    audit = make_audit(state="SUCCEEDED")
    delete(audit.strategy)
    before = counts(purge())
    delete(audit)
    assert (before, counts(purge())) == ([0] * 7, [0, 1, 0, 1, 0, 0, 2])


def test_age_in_days_keeps_recently_deleted_objects() -> None:
    old, young = removed_plan(), removed_plan()
    delete(old, days=8)
    delete(young, days=6)
    purge("--age-in-days", "7")
    assert ActionPlan.objects.get() == young


def test_orphaned_plan_is_removed_unless_orphans_are_excluded() -> None:
    orphan = make_plan({"a": []}, created_at=timezone.now() - timedelta(days=8))
    before = counts(purge("--exclude-orphans"))
    assert ActionPlan.objects.get() == orphan
    assert (before, counts(purge("-d", "7"))) == ([0] * 7, [0, 0, 0, 0, 1, 1, 2])


def test_option_goal_limits_the_purge_to_a_goal() -> None:
    gone = goal_with_records("gone")
    delete(gone, goal_with_records("other"), removed_plan())
    purge("--goal", "GONE")
    assert [goal.name for goal in Goal.objects.all()] == ["other"]
    assert ActionPlan.objects.count() == 2


@pytest.mark.parametrize("name", ["kept", "nobody", "a\0b"])
def test_option_goal_with_a_goal_that_is_not_deleted_is_refused(name: str) -> None:
    goal_with_records("kept")
    with pytest.raises(CommandError, match="goal: there is no deleted goal") as refusal:
        purge("--goal", name)
    assert (refusal.value.returncode, rows()) == (2, [1] * 6)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--age-in-days", "-1", "age-in-days: must be from 0 to 36525, not -1."),
        ("--age-in-days", "99999999", "age-in-days: must be from 0"),
        ("--max-number", "0", "max-number: must be at least 1, not 0."),
        ("--max-number", "many", "invalid int value"),
    ],
)
def test_invalid_number_is_refused(option: str, value: str, words: str) -> None:
    removed_plan()
    with pytest.raises(CommandError, match=words):
        purge(f"{option}={value}")
    assert ActionPlan.objects.exists()


def test_dry_run_removes_no_row() -> None:
    removed_plan()
    assert counts(purge("--dry-run")) == [0, 0, 0, 0, 1, 2, 3]
    assert ActionPlan.objects.count() == 1


@pytest.mark.parametrize(("most", "plans"), [(1, 3), (3, 2), (5, 2), (8, 1), (9, 0), (100, 0)])
def test_max_number_limits_removed_rows_and_keeps_plans_whole(most: int, plans: int) -> None:
    for _ in range(3):
        removed_plan()
    purge("--max-number", str(most))
    assert rows()[4:] == [plans, 2 * plans]


def test_parent_rows_are_kept_until_their_children_are_removed() -> None:
    delete(goal_with_records("gone"))
    purge("--max-number", "3")
    assert rows() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("most", ["4", "5"])
def test_second_purge_continues_after_max_number(most: str) -> None:
    delete(goal_with_records("gone"))
    purge("--max-number", most)
    purge()
    assert rows() == [0] * 6


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that sets the answer of a user at a terminal."""

    def reply(answer: str) -> None:
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        monkeypatch.setattr("sys.stdin.readline", lambda: answer, raising=False)

    return reply


@pytest.mark.parametrize("answer", ["y\n", "YES\n"])
def test_confirmed_purge_removes_the_rows(run: Run, terminal: Callable[[str], None], answer: str) -> None:
    removed_plan()
    terminal(answer)
    ended = run("purge", "--max-number", 2000)
    assert (ended.status, ended.errors) == (0, "Remove all 3 rows permanently? [y/N] ")
    assert (ended.output.splitlines()[-1], ActionPlan.objects.count()) == ("3 removed", 0)


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_purge_that_is_not_confirmed_removes_nothing_and_exits_with_status_1(
    run: Run, terminal: Callable[[str], None], answer: str
) -> None:
    removed_plan()
    terminal(answer)
    ended = run("purge")
    assert (ended.status, "removed" in ended.output, ActionPlan.objects.count()) == (1, False, 1)
    assert ended.errors.endswith("CommandError: Not confirmed: nothing was changed.\n")


def test_purge_without_a_terminal_requires_yes(run: Run) -> None:
    removed_plan()
    ended = run("purge")
    assert (ended.status, "removed" in ended.output, ActionPlan.objects.count()) == (2, False, 1)
    assert ended.errors == "CommandError: --yes is required, as there is no terminal to ask for confirmation.\n"


def test_purge_without_removable_rows_requires_no_confirmation(run: Run) -> None:
    assert run("purge").status == 0


def test_several_batches_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "BATCH", 2)
    for _ in range(5):
        removed_plan()
    purge()
    assert rows()[4:] == [0, 0]


@pytest.mark.parametrize("number", [1, 20])
def test_query_count_of_remove_plans_does_not_depend_on_the_batch_size(
    django_assert_num_queries: Any, number: int
) -> None:
    keys = [removed_plan().pk for _ in range(number)]
    with django_assert_num_queries(24):
        sum(remove_plans(ActionPlan.objects.all(), keys))


def test_plan_started_during_the_purge_is_kept() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    removable = ActionPlan.objects.filter(state="RECOMMENDED")
    assert (sum(remove_plans(removable, [plan.pk])), rows()[4:]) == (0, [1, 1])


def test_continuation_of_a_removed_plan_is_kept_without_the_reference() -> None:
    plan = removed_plan()
    follower = ActionPlan.objects.create(continues=plan, audit=make_audit())
    purge()
    assert ActionPlan.objects.get().pk == follower.pk
    assert ActionPlan.objects.get().continues is None


def set_end(plan: Any, days: int) -> Any:
    """Set the end of a plan or an audit to the given number of days ago, and return it."""
    moment = timezone.now() - timedelta(days=days)
    times = {"end_time": moment} if isinstance(plan, ActionPlan) else {}
    type(plan).objects.filter(pk=plan.pk).update(**times, updated_at=moment)
    return plan


def test_finished_plans_and_audits_are_kept_without_an_age() -> None:
    audit = set_end(make_audit(state="SUCCEEDED"), 36500)
    set_end(make_plan({"a": []}, audit=audit, state="SUCCEEDED"), 36500)
    assert (counts(purge()), rows()[3:]) == ([0] * 7, [1, 1, 1])


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_plan_older_than_action_plan_age_is_removed_with_its_actions(settings: Any, state: str) -> None:
    settings.ACTION_PLAN_AGE = timedelta(days=30)
    set_end(make_plan({"a": []}, audit=make_audit(), state=state), 31)
    young = set_end(make_plan({"a": []}, audit=make_audit("other"), state=state), 29)
    assert counts(purge()) == [0, 0, 0, 0, 1, 1, 2]
    assert ActionPlan.objects.get() == young


@pytest.mark.parametrize("state", ["RECOMMENDED", "PENDING", "ONGOING", "CANCELLING"])
def test_unfinished_plan_is_kept_at_any_age(settings: Any, state: str) -> None:
    settings.ACTION_PLAN_AGE = timedelta(days=1)
    set_end(make_plan({"a": []}, audit=make_audit(), state=state), 100)
    assert (counts(purge()), rows()[4:]) == ([0] * 7, [1, 1])


def test_age_of_a_plan_without_end_time_counts_from_its_last_update(settings: Any) -> None:
    settings.ACTION_PLAN_AGE = timedelta(days=30)
    plan = set_end(make_plan(audit=make_audit(), state="SUPERSEDED"), 31)
    ActionPlan.objects.filter(pk=plan.pk).update(end_time=None)
    assert counts(purge())[4] == 1


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED"])
def test_audit_older_than_audit_age_is_removed(settings: Any, state: str) -> None:
    settings.AUDIT_AGE = timedelta(days=30)
    set_end(make_audit(state=state), 31)
    young = set_end(make_audit("young", state=state), 29)
    assert counts(purge()) == [0, 0, 0, 1, 0, 0, 1]
    assert Audit.objects.get() == young


@pytest.mark.parametrize("state", ["PENDING", "ONGOING", "SUSPENDED"])
def test_unfinished_audit_is_kept_at_any_age(settings: Any, state: str) -> None:
    settings.AUDIT_AGE = timedelta(days=1)
    set_end(make_audit(state=state), 100)
    assert (counts(purge()), Audit.objects.count()) == ([0] * 7, 1)


def test_succeeded_event_audit_is_kept_at_any_age(settings: Any) -> None:
    settings.AUDIT_AGE = timedelta(days=1)
    set_end(make_audit(state="SUCCEEDED", audit_type=Audit.Type.EVENT), 100)
    assert (counts(purge()), Audit.objects.count()) == ([0] * 7, 1)


def test_finished_audit_is_kept_while_a_plan_refers_to_it(settings: Any) -> None:
    settings.AUDIT_AGE = timedelta(days=1)
    audit = set_end(make_audit(state="SUCCEEDED"), 100)
    set_end(make_plan(audit=audit, state="SUCCEEDED"), 100)
    before = counts(purge())
    settings.ACTION_PLAN_AGE = timedelta(days=1)
    assert (before, counts(purge())) == ([0] * 7, [0, 0, 0, 1, 1, 0, 2])
    assert rows()[3:] == [0, 0, 0]


def make_ended_service(host: str, **columns: Any) -> Service:
    before = timezone.now() - timedelta(days=2)
    return Service.objects.create(name=Service.APPLIER, host=host, last_seen_up=before, **columns)


def test_rows_of_ended_processes_are_removed() -> None:
    active = Service.register(Service.APPLIER, "one")
    make_ended_service("two", deleted_at=timezone.now())
    purge()
    assert Service.objects.get() == active


def test_row_of_an_ended_process_stays_while_its_work_refers_to_it() -> None:
    service = make_ended_service("two", deleted_at=timezone.now())
    make_plan({"a": []}, state="ONGOING", applier=service)
    purge()
    assert Service.objects.get() == service


def test_row_of_a_process_that_has_just_ended_stays() -> None:
    service = Service.register(Service.APPLIER, "one")
    service.retire()
    purge()
    assert Service.objects.get() == service


def make_sample(days: int) -> Sample:
    time = timezone.now() - timedelta(days=days)
    return Sample.objects.create(metric="host_cpu_usage", resource=uuid4(), time=time, value=1)


@pytest.mark.parametrize(("age", "number"), [(0, 2), (30, 1)])
def test_samples_are_removed_by_age(settings: Any, age: int, number: int) -> None:
    settings.SAMPLE_AGE = timedelta(days=age)
    make_sample(31)
    make_sample(29)
    purge()
    assert Sample.objects.count() == number


@pytest.mark.parametrize(("age", "number"), [(0, 2), (30, 1)])
def test_events_of_present_servers_are_removed_by_age(settings: Any, age: int, number: int) -> None:
    settings.SERVER_EVENT_AGE = timedelta(days=age)
    server = make_server()
    for days in (31, 29):
        make_operation(server, start_time=timezone.now() - timedelta(days=days))
    purge()
    assert InstanceAction.objects.count() == number


def test_delivered_notifications_are_removed_at_the_age_of_undelivered_ones() -> None:
    for days in (31, 29):
        (sent,) = notify()
        created = timezone.now() - timedelta(days=days)
        Notification.objects.filter(pk=sent.pk).update(is_dispatched=True, created_at=created)
    purge("--age-in-days", "90")
    assert Notification.objects.count() == 1


def test_option_goal_keeps_finished_plans_and_audits(settings: Any) -> None:
    settings.ACTION_PLAN_AGE = settings.AUDIT_AGE = timedelta(days=1)
    set_end(make_plan(audit=set_end(make_audit(state="SUCCEEDED"), 100), state="SUCCEEDED"), 100)
    set_end(make_audit("other", state="SUCCEEDED"), 100)
    delete(make_strategy("gone", "gone").goal)
    purge("--goal", "gone")
    assert rows()[3:5] == [2, 1]


def test_continuation_of_an_aged_plan_is_kept_without_the_reference(settings: Any) -> None:
    settings.ACTION_PLAN_AGE = timedelta(days=1)
    plan = set_end(make_plan({"a": []}, audit=make_audit(), state="FAILED"), 100)
    follower = make_plan({"a": []}, audit=plan.audit, continues=plan, state="ONGOING")
    purge()
    assert ActionPlan.objects.get() == follower
    assert ActionPlan.objects.get().continues is None


def test_purge_freezes_objects_for_the_garbage_collector() -> None:
    make_plan().remove()
    try:
        purge()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
