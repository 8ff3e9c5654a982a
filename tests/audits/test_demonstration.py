"""The demonstration: a small cloud, and a recommended plan with an action that is skipped when it runs."""

from collections import Counter
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone
from pytest_django import Settings

from actions.models import Action
from audits import demonstration
from audits.demonstration import RUNNERS
from audits.demonstration_cloud import make_current
from audits.engine.engine import DecisionEngine
from audits.models import Audit, AuditTemplate
from audits.operations.creation import create_audit
from cluster.models import (
    BalancingPool,
    Cluster,
    ComputeNode,
    Flavor,
    HostAggregate,
    Node,
    Policy,
    PolicyBinding,
    Pool,
    Sample,
    Server,
    Stack,
    StackResource,
    StorageNode,
    Volume,
)
from cluster.stacks.trees import load_tree
from plans.models import ActionPlan
from plans.operations.clusters import create_cluster, delete_cluster, scale_out
from plans.operations.stacks import update_stack
from tests.audits.clock import Clock
from tests.builders import make_cluster, make_member, make_node, make_profile, make_server
from tests.plans.inline import run_waiting
from watcher_site import plugins
from watcher_site.models import HistoryEntry, Service
from watcher_site.templatetags.names import short

pytestmark = [pytest.mark.usefixtures("demonstration"), pytest.mark.django_db]


def load(*arguments: str) -> str:
    output = StringIO()
    call_command("load_demonstration", *arguments, stdout=output)
    return output.getvalue()


@pytest.fixture(scope="module", name="demonstration")
def load_for_all_tests(module_transaction: None) -> None:
    with override_settings(DEMO=True):
        load()


def test_demonstration_has_6_nodes_and_40_servers() -> None:
    assert (ComputeNode.objects.count(), Server.objects.present().count()) == (6, 40)


def test_demonstration_has_zones_aggregates_flavors_and_storage() -> None:
    zones = set(ComputeNode.objects.values_list("zone", flat=True))
    assert zones == {"hall-a", "hall-b"}
    counted = [model.objects.count() for model in (HostAggregate, Flavor, StorageNode, Pool, Volume)]
    assert counted == [2, 4, 3, 4, 10]


def test_demonstration_has_a_nearly_full_pool() -> None:
    assert Pool.objects.get(name="storage-01@nvme#one").free_capacity_gb == 130


def test_demonstration_has_a_balancing_pool_of_the_web_servers() -> None:
    load("--again")
    (pool,) = BalancingPool.objects.all()
    members = pool.members.values_list("server__name", flat=True)
    assert (pool.name, list(members)) == ("web-shop", [f"web-{number}" for number in range(1, 7)])


def test_demonstration_recommends_a_plan_with_migrations() -> None:
    plan = ActionPlan.objects.get()
    kinds = list(plan.actions.values_list("action_type", flat=True))
    assert (plan.state, kinds.count("migrate"), kinds.count("change_nova_service_state")) == ("RECOMMENDED", 11, 1)


def test_one_migrated_server_of_the_plan_is_deleted() -> None:
    moved = ActionPlan.objects.get().actions.filter(action_type="migrate")
    gone = Server.objects.exclude(deleted_at=None).values_list("uuid", flat=True)
    assert [
        action.input_parameters["resource_name"]
        for action in moved.filter(input_parameters__resource_id__in=[str(uuid) for uuid in gone])
    ] == ["ci-runner-6"]


def test_demonstration_has_a_succeeded_audit_and_two_templates() -> None:
    assert (Audit.objects.get().state, AuditTemplate.objects.count()) == ("SUCCEEDED", 2)


def test_second_load_changes_no_record_and_one_load_is_in_the_history() -> None:
    assert (load(), ActionPlan.objects.count()) == ("The cloud was filled before: nothing was changed.\n", 1)
    entry = HistoryEntry.objects.get(deed="demonstration.load")
    assert entry.details == {"again": False, "action_plan": str(ActionPlan.objects.get().uuid)}


def test_load_retires_its_service() -> None:
    assert not Service.objects.present().exists()


def test_plan_succeeds_and_skips_the_migration_of_the_deleted_server() -> None:
    plan = ActionPlan.objects.get()
    plan.launch()
    run_waiting()
    plan = ActionPlan.objects.get()
    states = Counter(plan.actions.values_list("state", flat=True))
    assert (plan.state, states) == ("SUCCEEDED", {"SUCCEEDED": 11, "SKIPPED": 1})


def test_plan_empties_the_maintained_node() -> None:
    ActionPlan.objects.get().launch()
    run_waiting()
    assert not Server.objects.present().filter(node__hostname=demonstration.MAINTAINED).exists()


def placements() -> set[tuple[str, str]]:
    return set(Server.objects.present().values_list("name", "node__hostname"))


def run_newest_plan() -> ActionPlan:
    ActionPlan.objects.latest("pk").launch()
    run_waiting()
    return ActionPlan.objects.latest("pk")


def test_load_again_restores_the_servers_and_the_node() -> None:
    before = placements()
    run_newest_plan()
    load("--again")
    assert placements() == before
    assert ComputeNode.objects.get(hostname=demonstration.MAINTAINED).status == ComputeNode.Status.ENABLED


def test_plan_of_load_again_succeeds_and_older_plan_is_kept(cloud_admin: User) -> None:
    assert run_newest_plan().state == "SUCCEEDED"
    load("--again")
    assert run_newest_plan().state == "SUCCEEDED"
    assert ActionPlan.objects.count() == 2
    assert User.objects.filter(pk=cloud_admin.pk).exists()


def test_audits_of_repeated_loads_have_unique_names() -> None:
    load("--again")
    load("--again")
    assert list(Audit.objects.order_by("pk").values_list("name", flat=True)) == [
        "Maintenance of compute-03",
        "Maintenance of compute-03, no. 2",
        "Maintenance of compute-03, no. 3",
    ]


def test_load_again_supersedes_a_recommended_plan() -> None:
    load("--again")
    assert list(ActionPlan.objects.order_by("pk").values_list("state", flat=True)) == ["SUPERSEDED", "RECOMMENDED"]


def test_load_again_is_refused_on_a_cloud_with_other_nodes() -> None:
    make_node("compute-of-ours")
    with pytest.raises(CommandError, match="holds compute node compute-of-ours, which is none of the demonstration's"):
        load("--again")
    assert ComputeNode.objects.count() == 7


def test_load_again_ignores_deleted_servers() -> None:
    make_server("ev-1", ComputeNode.objects.first())
    Server.objects.filter(name="ev-1").soft_delete()
    load("--again")
    assert ActionPlan.objects.filter(state="RECOMMENDED").count() == 1


def test_load_again_is_refused_during_a_pending_plan() -> None:
    ActionPlan.objects.get().launch()
    with pytest.raises(CommandError, match="is PENDING: wait for its end, or cancel it"):
        load("--again")


def test_demonstration_has_a_cluster_of_web_servers_with_a_policy() -> None:
    cluster = Cluster.objects.get()
    servers = Server.objects.present().filter(uuid__in=cluster.members().values("physical_id"))
    assert sorted(servers.values_list("name", flat=True)) == ["web-1", "web-2", "web-3", "web-4"]
    assert [binding.policy.name for binding in PolicyBinding.objects.enabled_for(cluster)] == ["oldest first"]


def test_load_again_restores_the_cluster_after_a_scale_out() -> None:
    scale_out(Cluster.objects.get(), count=2)
    run_waiting()
    assert Cluster.objects.get().members().filter(status="ACTIVE").count() == 6
    load("--again")
    assert (Cluster.objects.present().get().members().count(), Server.objects.present().count()) == (4, 40)
    assert Policy.objects.count() == 1


def test_load_again_is_refused_with_other_clusters() -> None:
    ours = make_cluster("shop of ours", size=1)
    with pytest.raises(CommandError, match="holds cluster shop of ours, which is none of the demonstration's"):
        load("--again")
    assert list(Cluster.objects.present().values_list("name", flat=True)) == ["shop of ours", "web"]
    assert ours.members().count() == 1


def test_load_again_is_refused_with_other_nodes_of_clusters() -> None:
    make_member("node of ours")
    with pytest.raises(CommandError, match="holds node node of ours, which is none of the demonstration's"):
        load("--again")
    assert Node.objects.present().count() == 5


def test_load_again_replaces_a_renamed_cluster_and_nodes_outside_of_it() -> None:
    Cluster.objects.update(name="shop")
    Node.objects.filter(index=1).update(cluster=None, index=-1)
    load("--again")
    assert [cluster.name for cluster in Cluster.objects.present()] == ["web"]
    assert Node.objects.present().count() == 4


@pytest.mark.parametrize("model", [Node, StackResource])
def test_short_uuids_of_nodes_and_resources_are_distinct(model: Any) -> None:
    uuids = model.objects.values_list("uuid", flat=True)
    assert len({short(uuid) for uuid in uuids}) == len(uuids) > 1


def test_load_again_replaces_the_cluster_and_the_stack_of_version_1_0_0() -> None:
    for model in (Cluster, Node, Stack, StackResource):
        for record in model.objects.all():
            record.uuid = UUID(f"d3305bf1{uuid4().hex[8:]}")
            record.save(update_fields=["uuid"])
    load("--again")
    assert (Cluster.objects.present().count(), Node.objects.present().count()) == (1, 4)
    assert Stack.objects.present().roots().count() == 1


def test_load_again_ignores_deleted_clusters() -> None:
    make_profile("ours")
    create_cluster("ours", "ours", desired_capacity=1)
    run_waiting()
    delete_cluster(Cluster.objects.get(name="ours"), force=True)
    run_waiting()
    load("--again")
    assert [cluster.name for cluster in Cluster.objects.present()] == ["web"]


def test_demonstration_has_a_stack_with_a_marked_server() -> None:
    tree = load_tree(Stack.objects.roots().get())
    assert {leaf.server.name for leaf in tree.leaves if leaf.server} == {"registry", "artifacts", *RUNNERS}
    assert [leaf.resource.name for leaf in tree.leaves if not leaf.is_well] == ["ci-runner-4"]


def test_stack_update_replaces_only_the_marked_server_and_load_again_restores_the_mark() -> None:
    stack = Stack.objects.roots().get()
    update_stack(stack)
    run_waiting()
    assert load_tree(stack).number_well == 5
    replaced = Action.objects.filter(action_type="replace_resource").values_list("input_parameters__resource_name")
    assert list(replaced) == [("ci-runner-4",)]
    load("--again")
    tree = load_tree(Stack.objects.present().roots().get())
    assert (tree.number_well, len(tree.leaves), Server.objects.present().count()) == (4, 5, 40)


def test_load_again_is_refused_with_other_stacks() -> None:
    Stack.objects.create(name="stack of ours")
    with pytest.raises(CommandError, match="holds stack stack of ours, which is none of the demonstration's"):
        load("--again")
    assert Stack.objects.present().roots().count() == 2


# Metrics of the demonstration.

MEASURED = [
    *("basic", "vm_workload_consolidation", "workload_balance", "workload_stabilization"),
    *("noisy_neighbor", "outlet_temperature", "uniform_airflow"),
]


@pytest.mark.parametrize("strategy", MEASURED)
def test_strategy_with_samples_succeeds_a_week_after_the_load(
    strategy: str, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.DEMO = True
    later = timezone.now() + timedelta(days=7)
    Clock(monkeypatch).now = later
    goal = plugins.load("STRATEGIES")[strategy].goal
    audit = create_audit(audit_type="ONESHOT", goal=goal, strategy=strategy, name="measured", force=True)
    engine = DecisionEngine()
    engine.run_audit(engine.claim(Audit.objects.filter(pk=audit.pk)))
    audit.refresh_from_db()
    assert (audit.state, audit.status_message) == ("SUCCEEDED", None)


def test_samples_are_created_up_to_now_and_old_samples_are_deleted(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.DEMO = True
    first = Sample.objects.count()
    assert first
    later = timezone.now() + timedelta(hours=4)
    Clock(monkeypatch).now = later
    assert make_current() > 0
    assert make_current() == 0
    assert not Sample.objects.filter(time__lt=later - timedelta(hours=3)).exists()
    assert Sample.objects.count() <= first * 1.1
