"""Operations on nodes with a cancellation during the execution, and concurrent operations."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connections
from pytest_django import Settings

import cluster.drivers.embedded.lifecycle
from actions.models import Action
from cluster.drivers.base import Checkpoint
from cluster.models import Node, Profile, Server
from cluster.operations.profiles import delete_profile
from plans.models import ActionPlan
from plans.operations.nodes import check_node, create_node, delete_node
from plans.planning.continuation import continue_plan
from tests.builders import make_member, make_node, make_profile
from tests.plans.inline import run_waiting
from tests.waiting import PATIENCE
from watcher_site.refusals import Refused

pytestmark = pytest.mark.django_db(transaction=True)


def race(*contestants: Callable[[], object]) -> int:
    """Start all contestants together, and return the number that was not refused."""
    barrier = Barrier(len(contestants))

    def run(contestant: Callable[[], object]) -> bool:
        barrier.wait(PATIENCE)
        try:
            contestant()
        except Refused:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(len(contestants)) as threads:
        return sum(threads.map(run, contestants))


def test_cancelled_node_creation_leaves_no_server(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    settings.POLL_INTERVAL = 0
    make_node()
    make_profile("web")
    plan = ActionPlan.objects.get(uuid=create_node("web", "web").action_plan)

    def cancel_meanwhile(checkpoint: Checkpoint) -> None:
        if (current := ActionPlan.objects.get(pk=plan.pk)).state == "ONGOING":
            current.abandon("alice")
        checkpoint()

    monkeypatch.setattr(cluster.drivers.embedded.lifecycle, "pass_time", cancel_meanwhile)
    run_waiting()
    assert ActionPlan.objects.get(pk=plan.pk).state == "CANCELLED"
    assert (Action.objects.get().state, Node.objects.get().status) == ("CANCELLED", "INIT")
    assert Server.objects.count() == 1
    assert not Server.objects.present().exists()


def test_node_creation_without_capacity_can_be_continued() -> None:
    make_profile("web")
    plan = ActionPlan.objects.get(uuid=create_node("web", "web").action_plan)
    run_waiting()
    assert (ActionPlan.objects.get(pk=plan.pk).state, Node.objects.get().status) == ("FAILED", "ERROR")
    make_node()
    continue_plan(plan).launch()
    run_waiting()
    assert Node.objects.get().status == "ACTIVE"


def test_one_of_two_concurrent_operations_on_a_node_is_refused() -> None:
    for _ in range(10):
        node = make_member(status="ACTIVE")
        assert race(lambda node=node: delete_node(node), lambda node=node: check_node(node)) == 1
    assert Action.objects.count() == 10


def test_deletion_of_a_profile_and_creation_of_a_node_from_it_exclude_each_other() -> None:
    for number in range(10):
        profile = make_profile(f"profile {number}")
        race(
            lambda profile=profile: delete_profile(profile),
            lambda profile=profile: create_node("web", profile.name),
        )
    assert not Profile.objects.filter(deleted_at__isnull=False, nodes__deleted_at=None).exclude(nodes=None).exists()
    assert Node.objects.count() == Profile.objects.present().count()
