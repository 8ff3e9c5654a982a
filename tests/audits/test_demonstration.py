"""The demonstration: a small cloud, and a recommended plan one action of which will skip itself."""

from collections import Counter
from io import StringIO

import pytest
from django.core.management import call_command

from audits import demonstration
from audits.models import Audit, AuditTemplate
from cluster.models import ComputeNode, Flavor, HostAggregate, Pool, Server, StorageNode, Volume
from plans.models import ActionPlan
from tests.builders import make_node
from tests.plans.inline import run_waiting
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


def load() -> str:
    output = StringIO()
    call_command("load_demonstration", stdout=output)
    return output.getvalue()


def test_there_are_several_nodes_and_some_dozens_of_servers() -> None:
    load()
    assert (ComputeNode.objects.count(), Server.objects.present().count()) == (6, 40)


def test_there_are_zones_aggregates_flavors_and_storage() -> None:
    load()
    zones = set(ComputeNode.objects.values_list("zone", flat=True))
    assert zones == {"hall-a", "hall-b"}
    counted = [model.objects.count() for model in (HostAggregate, Flavor, StorageNode, Pool, Volume)]
    assert counted == [2, 4, 3, 4, 10]


def test_one_pool_is_nearly_full() -> None:
    load()
    assert Pool.objects.get(name="storage-01@nvme#one").free_capacity_gb == 130


def test_a_plan_of_some_size_is_recommended() -> None:
    load()
    plan = ActionPlan.objects.get()
    kinds = list(plan.actions.values_list("action_type", flat=True))
    assert (plan.state, kinds.count("migrate"), kinds.count("change_nova_service_state")) == ("RECOMMENDED", 11, 1)


def test_one_server_that_the_plan_migrates_is_gone() -> None:
    load()
    moved = ActionPlan.objects.get().actions.filter(action_type="migrate")
    gone = Server.objects.exclude(deleted_at=None).values_list("uuid", flat=True)
    assert [
        action.input_parameters["resource_name"]
        for action in moved.filter(input_parameters__resource_id__in=[str(uuid) for uuid in gone])
    ] == ["ci-runner-6"]


def test_the_audit_succeeded_and_templates_stand() -> None:
    load()
    assert (Audit.objects.get().state, AuditTemplate.objects.count()) == ("SUCCEEDED", 2)


def test_it_is_loaded_once_only() -> None:
    load()
    assert (load(), ActionPlan.objects.count()) == ("The cloud was filled before: nothing was changed.\n", 1)


def test_a_cloud_that_was_ever_filled_is_left_alone() -> None:
    make_node()
    ComputeNode.objects.soft_delete()
    load()
    assert not Server.objects.exists()


def test_it_is_loaded_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstration, "MAINTAINED", "compute-99")
    with pytest.raises(ActionPlan.DoesNotExist):
        load()
    assert not ComputeNode.objects.exists()


def test_no_service_stays_behind() -> None:
    load()
    assert not Service.objects.present().exists()


def test_the_plan_succeeds_and_skips_the_migration_of_the_server_that_is_gone() -> None:
    load()
    plan = ActionPlan.objects.get()
    plan.launch()
    run_waiting()
    plan = ActionPlan.objects.get()
    states = Counter(plan.actions.values_list("state", flat=True))
    assert (plan.state, states) == ("SUCCEEDED", {"SUCCEEDED": 11, "SKIPPED": 1})


def test_the_maintained_node_is_empty_when_the_plan_has_run() -> None:
    load()
    ActionPlan.objects.get().launch()
    run_waiting()
    assert not Server.objects.present().filter(node__hostname=demonstration.MAINTAINED).exists()
