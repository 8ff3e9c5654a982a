"""Concurrent operations on one cluster never interleave, on PostgreSQL."""

from collections.abc import Callable
from typing import Any

import pytest

from actions.engine import execution
from actions.models import Action
from cluster.models import Cluster, Lock
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import proposed, reload
from tests.builders import make_cluster, make_member
from tests.plans.inline import claim, run_waiting
from tests.races import Race, rounds
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def appliers(settings: Any) -> list[Service]:
    # These appliers send no heartbeats: on a slow machine their plans would be adopted during a round.
    settings.SERVICE_DOWN_TIME = 3600
    return [Service.register(Service.APPLIER, host) for host in ("one", "two")]


def executor_of(plan: ActionPlan, applier: Service) -> Callable[[], bool]:
    """Return a function that executes the only action of a plan and returns whether the action got its locks."""
    claim(plan, applier)
    lease, action = PlanLease.of(plan, applier), plan.actions.get()

    def execute() -> bool:
        execution.execute(action, lease)
        current = Action.objects.get(pk=action.pk)
        return current.has_derived or current.state == "SUCCEEDED"

    return execute


def run_winner_first(plans: list[ActionPlan], won: list[bool]) -> None:
    """Run the plans to their ends, the plan that has the lock first: the other would be deferred until then."""
    for plan in sorted(plans, key=lambda plan: not won[plans.index(plan)]):
        ActionPlan.objects.filter(pk=plan.pk).update(applier=None)
        run_waiting()


def test_second_of_two_actions_on_a_cluster_is_deferred_until_the_first_has_ended(appliers: list[Service]) -> None:
    with Race() as race:
        for _ in range(rounds(8)):
            cluster = make_cluster(size=5)
            plans = [proposed("CLUSTER_SCALE_IN", cluster, count=number) for number in (1, 2)]
            won = race.run(*[executor_of(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            assert sorted(won) == [False, True]
            assert Lock.objects.filter(cluster=cluster).count() == 1
            loser = plans[won.index(False)].actions.get()
            winner = plans[won.index(True)].actions.get(derived_from=None)
            assert (loser.state, loser.retries, loser.lock_holder) == ("PENDING", 0, winner.uuid)
            assert f"Failed in locking cluster {cluster.uuid}" in str(loser.status_message)
            run_winner_first(plans, won)
            assert (cluster.members().count(), reload(cluster).desired_capacity) == (2, 2)
            assert reload(cluster).status == "ACTIVE"


def test_actions_on_a_member_and_on_its_cluster_never_interleave(appliers: list[Service]) -> None:
    with Race() as race:
        for _ in range(rounds(15)):
            cluster = make_cluster(size=3)
            plans = [
                proposed("CLUSTER_SCALE_IN", cluster, count=1),
                proposed("NODE_DELETE", cluster.members()[0]),
            ]
            won = race.run(*[executor_of(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            if won[0]:
                assert cluster.members().count() == reload(cluster).desired_capacity + 1
            run_winner_first(plans, won)
            assert cluster.members().count() == reload(cluster).desired_capacity
            assert {plan.state for plan in ActionPlan.objects.filter(pk__in=[plan.pk for plan in plans])} == {
                "SUCCEEDED"
            }


def test_one_of_two_concurrent_node_deletions_at_min_size_is_refused(
    appliers: list[Service],
) -> None:
    with Race() as race:
        for _ in range(rounds(15)):
            cluster: Cluster = make_cluster(size=2, min_size=1)
            plans = [proposed("NODE_DELETE", node) for node in cluster.members()]
            won = race.run(*[executor_of(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            assert sorted(won) == [False, True]
            assert plans[won.index(False)].actions.get().state == "FAILED"
            assert (cluster.members().count(), reload(cluster).desired_capacity) == (1, 1)


def test_node_joins_one_of_two_clusters_that_add_it_concurrently(appliers: list[Service]) -> None:
    with Race() as race:
        for number in range(rounds(20)):
            node = make_member(f"alone-{number}", status="ACTIVE")
            clusters = [make_cluster(f"{name}-{number}") for name in ("one", "two")]
            plans = [proposed("CLUSTER_ADD_NODES", cluster, nodes=[str(node.uuid)]) for cluster in clusters]
            won = race.run(*[executor_of(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            assert sorted(won) == [False, True]
            run_winner_first(plans, won)
            assert [cluster.members().count() for cluster in clusters] == [int(one) for one in won]
            assert [reload(cluster).desired_capacity for cluster in clusters] == [int(one) for one in won]
