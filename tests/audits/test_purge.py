"""`manage.py purge` permanently removes deleted objects, and nothing else."""

import gc
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from actions.models import Action, ActionEvent, ActionParent
from audits import purging
from audits.models import Audit, AuditTemplate, Goal, Strategy
from cluster.models import Cluster, Lock, Node, Policy, PolicyBinding, Profile, Stack, StackResource
from plans.models import ActionPlan, EfficacyIndicator
from plans.purging import remove_plans
from tests.builders import action, make_audit, make_cluster, make_plan, make_policy, make_strategy

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def empty() -> None:
    """Begin without the goals and strategies that are installed."""
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
    """Return a deleted plan of two actions that left traces everywhere."""
    plan = make_plan({"a": [], "b": ["a"]}, state="SUCCEEDED", **columns)
    ActionEvent.objects.create(action=action(plan, "a"), event="execute")
    EfficacyIndicator.objects.create(action_plan=plan, name="count", value=1)
    plan.remove()
    return plan


def template(strategy: Strategy) -> AuditTemplate:
    return AuditTemplate.objects.create(name=f"of {strategy}", goal=strategy.goal, strategy=strategy)


def world(name: str) -> Goal:
    """Return a goal with one of everything below it."""
    strategy = make_strategy(name, name)
    template(strategy)
    audit = make_audit(f"for {name}", strategy=strategy, state="SUCCEEDED")
    make_plan({"a": []}, audit=audit, strategy=strategy, state="SUCCEEDED")
    return strategy.goal


def rows() -> list[int]:
    kinds: list[Any] = [Goal, Strategy, AuditTemplate, Audit, ActionPlan, Action]
    return [kind.objects.count() for kind in kinds]


def test_a_deleted_plan_goes_with_all_its_traces() -> None:
    removed_plan()
    text = purge()
    traces: list[Any] = [ActionEvent, ActionParent, EfficacyIndicator]
    assert (counts(text), "3 removed" in text) == ([0, 0, 0, 0, 1, 2, 3], True)
    assert (rows(), [kind.objects.count() for kind in traces]) == ([0] * 6, [0] * 3)


def test_what_was_not_deleted_stays() -> None:
    world("kept")
    assert (counts(purge()), rows()) == ([0] * 7, [1] * 6)


def test_the_table_names_each_kind() -> None:
    names = [line[:16].strip() for line in purge().splitlines()]
    assert names == [
        *("Goals", "Strategies", "Audit Templates", "Audits", "Action Plans", "Actions"),
        *("Nodes", "Clusters", "Policy Bindings", "Policies", "Profiles"),
        *("Stack Resources", "Stacks", "Server Events", "Notifications", "Exclusions", "History", "Total"),
    ]


def test_a_deleted_audit_takes_its_plans_along() -> None:
    audit = make_audit(state="SUCCEEDED")
    make_plan({"a": []}, audit=audit)
    delete(audit)
    assert counts(purge()) == [0, 0, 0, 1, 1, 1, 3]
    assert rows() == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("state", ["PENDING", "ONGOING", "CANCELLING"])
def test_a_plan_that_waits_or_runs_outlives_its_audit(state: str) -> None:
    audit = make_audit(state="SUCCEEDED")
    make_plan({"a": []}, audit=audit, state=state)
    delete(audit)
    purge()
    assert ActionPlan.objects.get().audit is None
    assert rows()[3:] == [0, 1, 1]


def test_a_deleted_template_goes_alone() -> None:
    delete(template(make_strategy()))
    assert (counts(purge()), rows()[:3]) == ([0, 0, 1, 0, 0, 0, 1], [1, 1, 0])


def test_a_deleted_goal_takes_everything_below_it_along() -> None:
    delete(world("gone"))
    world("kept")
    assert counts(purge()) == [1, 1, 1, 1, 1, 1, 6]
    assert (rows(), Goal.objects.get().name) == ([1] * 6, "kept")


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
def test_a_goal_stays_with_an_audit_that_waits_or_runs(state: str) -> None:
    audit = make_audit(state=state)
    delete(audit.goal)
    purge()
    assert rows()[:4] == [1, 1, 0, 1]


def test_a_deleted_strategy_stays_as_long_as_an_audit_tells_of_it() -> None:
    audit = make_audit(state="SUCCEEDED")
    delete(audit.strategy)
    before = counts(purge())
    delete(audit)
    assert (before, counts(purge())) == ([0] * 7, [0, 1, 0, 1, 0, 0, 2])


def test_only_what_was_deleted_long_enough_ago_goes() -> None:
    old, young = removed_plan(), removed_plan()
    delete(old, days=8)
    delete(young, days=6)
    purge("--age-in-days", "7")
    assert ActionPlan.objects.get() == young


def test_an_orphan_goes_unless_it_is_to_be_kept() -> None:
    orphan = make_plan({"a": []}, created_at=timezone.now() - timedelta(days=8))
    before = counts(purge("--exclude-orphans"))
    assert ActionPlan.objects.get() == orphan
    assert (before, counts(purge("-d", "7"))) == ([0] * 7, [0, 0, 0, 0, 1, 1, 2])


def test_one_goal_can_be_purged_alone() -> None:
    gone = world("gone")
    delete(gone, world("other"), removed_plan())
    purge("--goal", "GONE")
    assert [goal.name for goal in Goal.objects.all()] == ["other"]
    assert ActionPlan.objects.count() == 2


@pytest.mark.parametrize("name", ["kept", "nobody", "a\0b"])
def test_a_goal_that_is_not_deleted_is_refused(name: str) -> None:
    world("kept")
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
def test_numbers_that_make_no_sense_are_refused(option: str, value: str, words: str) -> None:
    removed_plan()
    with pytest.raises(CommandError, match=words):
        purge(f"{option}={value}")
    assert ActionPlan.objects.exists()


def test_a_dry_run_removes_nothing() -> None:
    removed_plan()
    assert counts(purge("--dry-run")) == [0, 0, 0, 0, 1, 2, 3]
    assert ActionPlan.objects.count() == 1


@pytest.mark.parametrize(("most", "plans"), [(1, 3), (3, 2), (5, 2), (8, 1), (9, 0), (100, 0)])
def test_no_more_than_the_number_goes_and_of_a_plan_all_or_nothing(most: int, plans: int) -> None:
    for _ in range(3):
        removed_plan()
    purge("--max-number", str(most))
    assert rows()[4:] == [plans, 2 * plans]


def test_what_is_above_stays_until_what_is_below_has_gone() -> None:
    delete(world("gone"))
    purge("--max-number", "3")
    assert rows() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize("most", ["4", "5"])
def test_it_can_be_gone_on_with(most: str) -> None:
    delete(world("gone"))
    purge("--max-number", most)
    purge()
    assert rows() == [0] * 6


@pytest.mark.parametrize(("answer", "left"), [("y", 0), ("YES", 0), ("", 1), ("n", 1), (EOFError, 1)])
def test_it_asks_first(answer: Any, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    removed_plan()
    questions = []

    def reply(question: str) -> str:
        questions.append(question)
        if answer is EOFError:
            raise EOFError
        return str(answer)

    monkeypatch.setattr("builtins.input", reply)
    call_command("purge", "-n", "2000", stdout=StringIO())
    assert (questions, ActionPlan.objects.count()) == (["Remove all 3 rows permanently? [y/N] "], left)


def test_nothing_to_remove_needs_no_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("builtins.input")
    call_command("purge", stdout=StringIO())


def test_more_than_a_batch_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "BATCH", 2)
    for _ in range(5):
        removed_plan()
    purge()
    assert rows()[4:] == [0, 0]


@pytest.mark.parametrize("number", [1, 20])
def test_a_batch_takes_the_same_queries_whatever_its_size(django_assert_num_queries: Any, number: int) -> None:
    keys = [removed_plan().pk for _ in range(number)]
    with django_assert_num_queries(24):
        remove_plans(ActionPlan.objects.all(), keys)


def test_a_plan_that_was_started_in_the_same_moment_stays() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    removable = ActionPlan.objects.filter(state="RECOMMENDED")
    assert (remove_plans(removable, [plan.pk]), rows()[4:]) == (0, [1, 1])


def test_a_plan_that_continued_a_purged_one_stays() -> None:
    plan = removed_plan()
    follower = ActionPlan.objects.create(continues=plan, audit=make_audit())
    purge()
    assert ActionPlan.objects.get().pk == follower.pk
    assert ActionPlan.objects.get().continues is None


def ended(plan: Any, days: int) -> Any:
    """Return a plan or an audit that ended this number of days ago."""
    moment = timezone.now() - timedelta(days=days)
    times = {"end_time": moment} if isinstance(plan, ActionPlan) else {}
    type(plan).objects.filter(pk=plan.pk).update(**times, updated_at=moment)
    return plan


def test_ended_plans_and_audits_stay_unless_an_age_is_set() -> None:
    audit = ended(make_audit(state="SUCCEEDED"), 36500)
    ended(make_plan({"a": []}, audit=audit, state="SUCCEEDED"), 36500)
    assert (counts(purge()), rows()[3:]) == ([0] * 7, [1, 1, 1])


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_a_plan_that_ended_before_its_age_is_removed_with_its_actions(settings: Any, state: str) -> None:
    settings.ACTION_PLAN_AGE = timedelta(days=30)
    ended(make_plan({"a": []}, audit=make_audit(), state=state), 31)
    young = ended(make_plan({"a": []}, audit=make_audit("other"), state=state), 29)
    assert counts(purge()) == [0, 0, 0, 0, 1, 1, 2]
    assert ActionPlan.objects.get() == young


@pytest.mark.parametrize("state", ["RECOMMENDED", "PENDING", "ONGOING", "CANCELLING"])
def test_a_plan_that_has_not_ended_stays_whatever_its_age(settings: Any, state: str) -> None:
    settings.ACTION_PLAN_AGE = timedelta(days=1)
    ended(make_plan({"a": []}, audit=make_audit(), state=state), 100)
    assert (counts(purge()), rows()[4:]) == ([0] * 7, [1, 1])


def test_a_plan_without_an_end_time_ended_when_it_was_last_changed(settings: Any) -> None:
    settings.ACTION_PLAN_AGE = timedelta(days=30)
    plan = ended(make_plan(audit=make_audit(), state="SUPERSEDED"), 31)
    ActionPlan.objects.filter(pk=plan.pk).update(end_time=None)
    assert counts(purge())[4] == 1


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED"])
def test_an_audit_that_ended_before_its_age_is_removed(settings: Any, state: str) -> None:
    settings.AUDIT_AGE = timedelta(days=30)
    ended(make_audit(state=state), 31)
    young = ended(make_audit("young", state=state), 29)
    assert counts(purge()) == [0, 0, 0, 1, 0, 0, 1]
    assert Audit.objects.get() == young


@pytest.mark.parametrize("state", ["PENDING", "ONGOING", "SUSPENDED"])
def test_an_audit_that_has_not_ended_stays_whatever_its_age(settings: Any, state: str) -> None:
    settings.AUDIT_AGE = timedelta(days=1)
    ended(make_audit(state=state), 100)
    assert (counts(purge()), Audit.objects.count()) == ([0] * 7, 1)


def test_an_event_audit_that_can_be_triggered_again_stays(settings: Any) -> None:
    settings.AUDIT_AGE = timedelta(days=1)
    ended(make_audit(state="SUCCEEDED", audit_type=Audit.Type.EVENT), 100)
    assert (counts(purge()), Audit.objects.count()) == ([0] * 7, 1)


def test_an_ended_audit_stays_as_long_as_a_plan_refers_to_it(settings: Any) -> None:
    settings.AUDIT_AGE = timedelta(days=1)
    audit = ended(make_audit(state="SUCCEEDED"), 100)
    ended(make_plan(audit=audit, state="SUCCEEDED"), 100)
    before = counts(purge())
    settings.ACTION_PLAN_AGE = timedelta(days=1)
    assert (before, counts(purge())) == ([0] * 7, [0, 0, 0, 1, 1, 0, 2])
    assert rows()[3:] == [0, 0, 0]


def test_with_a_goal_ended_plans_and_audits_stay(settings: Any) -> None:
    settings.ACTION_PLAN_AGE = settings.AUDIT_AGE = timedelta(days=1)
    ended(make_plan(audit=ended(make_audit(state="SUCCEEDED"), 100), state="SUCCEEDED"), 100)
    ended(make_audit("other", state="SUCCEEDED"), 100)
    delete(make_strategy("gone", "gone").goal)
    purge("--goal", "gone")
    assert rows()[3:5] == [2, 1]


def test_a_plan_that_continues_an_ended_one_stays_without_the_reference(settings: Any) -> None:
    settings.ACTION_PLAN_AGE = timedelta(days=1)
    plan = ended(make_plan({"a": []}, audit=make_audit(), state="FAILED"), 100)
    follower = make_plan({"a": []}, audit=plan.audit, continues=plan, state="ONGOING")
    purge()
    assert ActionPlan.objects.get() == follower
    assert ActionPlan.objects.get().continues is None


def test_clusters_go_with_their_nodes_policies_and_profile() -> None:
    cluster, policy = make_cluster(size=2), make_policy()
    binding = PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=1)
    Lock.objects.create(cluster=cluster, action=uuid4(), is_exclusive=True)
    delete(cluster, policy, cluster.profile, binding, *cluster.nodes.all())
    purge()
    for model in (Node, Cluster, Policy, PolicyBinding, Profile, Lock):
        assert not model.objects.exists()


def test_a_deleted_profile_and_a_deleted_policy_stay_while_a_cluster_does() -> None:
    cluster, policy = make_cluster(size=1), make_policy()
    PolicyBinding.objects.create(cluster=cluster, policy=policy, priority=1)
    delete(policy, cluster.profile)
    purge()
    assert (Policy.objects.count(), Profile.objects.count(), Node.objects.count()) == (1, 1, 1)


def test_a_deleted_cluster_stays_while_a_node_of_it_does() -> None:
    cluster = make_cluster(size=1)
    delete(cluster)
    purge()
    assert Cluster.objects.exists()


def test_deleted_stacks_go_with_all_that_was_in_them_and_others_stay() -> None:
    kept = Stack.objects.create(name="kept")
    StackResource.objects.create(stack=kept, name="web", type="server")
    root = Stack.objects.create(name="shop")
    group = StackResource.objects.create(stack=root, name="web", type="scaling_group")
    nested = Stack.objects.create(name="shop-web", root=root, parent_resource=group)
    member = StackResource.objects.create(stack=nested, name="one", type="server")
    Lock.objects.create(stack=root, action=uuid4(), is_exclusive=True)
    delete(root, group, nested, member)
    assert "1 removed" in purge("--max-number", "1")
    assert (Stack.objects.count(), StackResource.objects.count()) == (3, 2)
    purge()
    assert list(Stack.objects.all()) == [kept]
    assert StackResource.objects.get().stack == kept


def test_no_full_garbage_collection_lengthens_the_transactions_of_a_purge() -> None:
    make_plan().remove()
    try:
        purge()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
