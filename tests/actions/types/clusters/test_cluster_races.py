"""Two operations on one cluster at the same time, on PostgreSQL: they never interleave."""

from collections.abc import Callable
from typing import Any

import pytest

from actions.engine import execution
from actions.models import Action
from cluster.models import Cluster, Lock
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.actions.types.clusters.builders import again, proposed
from tests.builders import make_cluster, make_member
from tests.plans.inline import run_waiting
from tests.plans.test_races import Race, claim
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = 30


@pytest.fixture
def appliers(settings: Any) -> list[Service]:
    # These appliers have no heartbeat: on a slow machine their plans would be taken over in the middle of a round.
    settings.SERVICE_DOWN_TIME = 3600
    return [Service.register(Service.APPLIER, host) for host in ("one", "two")]


def executing(plan: ActionPlan, applier: Service) -> Callable[[], bool]:
    """Return what executes the one action of a plan, and says whether it began to do something."""
    claim(plan, applier)
    lease, action = PlanLease.of(plan, applier), plan.actions.get()

    def execute() -> bool:
        execution.execute(action, lease)
        current = Action.objects.get(pk=action.pk)
        return current.has_derived or current.state == "SUCCEEDED"

    return execute


def run_to_the_end(plans: list[ActionPlan], won: list[bool]) -> None:
    """Run what is left: the plan of who won first, as the other one would try again in vain until then."""
    for plan in sorted(plans, key=lambda plan: not won[plans.index(plan)]):
        ActionPlan.objects.filter(pk=plan.pk).update(applier=None)
        run_waiting()


def test_of_two_actions_on_one_cluster_one_is_tried_again_when_the_other_has_ended(appliers: list[Service]) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            cluster = make_cluster(size=5)
            plans = [proposed("CLUSTER_SCALE_IN", cluster, count=number) for number in (1, 2)]
            won = race.run(*[executing(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            assert sorted(won) == [False, True]
            assert Lock.objects.filter(cluster=cluster).count() == 1
            loser = plans[won.index(False)].actions.get()
            winner = plans[won.index(True)].actions.get(derived_from=None)
            assert (loser.state, loser.retries, loser.lock_holder) == ("PENDING", 0, winner.uuid)
            assert f"Failed in locking cluster {cluster.uuid}" in str(loser.status_message)
            run_to_the_end(plans, won)
            assert (cluster.members().count(), again(cluster).desired_capacity) == (2, 2)
            assert again(cluster).status == "ACTIVE"


def test_what_a_person_does_to_a_member_and_to_its_cluster_never_interleave(appliers: list[Service]) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            cluster = make_cluster(size=3)
            plans = [
                proposed("CLUSTER_SCALE_IN", cluster, count=1),
                proposed("NODE_DELETE", cluster.members()[0]),
            ]
            won = race.run(*[executing(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            if won[0]:
                assert cluster.members().count() == again(cluster).desired_capacity + 1
            run_to_the_end(plans, won)
            assert cluster.members().count() == again(cluster).desired_capacity
            assert {plan.state for plan in ActionPlan.objects.filter(pk__in=[plan.pk for plan in plans])} == {
                "SUCCEEDED"
            }


def test_of_two_who_delete_the_last_nodes_that_a_cluster_can_do_without_one_is_refused(
    appliers: list[Service],
) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            cluster: Cluster = make_cluster(size=2, min_size=1)
            plans = [proposed("NODE_DELETE", node) for node in cluster.members()]
            won = race.run(*[executing(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            assert sorted(won) == [False, True]
            assert plans[won.index(False)].actions.get().state == "FAILED"
            assert (cluster.members().count(), again(cluster).desired_capacity) == (1, 1)


def test_a_node_joins_one_of_two_clusters_that_want_it(appliers: list[Service]) -> None:
    with Race() as race:
        for number in range(ROUNDS):
            node = make_member(f"alone-{number}", status="ACTIVE")
            clusters = [make_cluster(f"{name}-{number}") for name in ("one", "two")]
            plans = [proposed("CLUSTER_ADD_NODES", cluster, nodes=[str(node.uuid)]) for cluster in clusters]
            won = race.run(*[executing(plan, applier) for plan, applier in zip(plans, appliers, strict=True)])
            assert sorted(won) == [False, True]
            run_to_the_end(plans, won)
            assert [cluster.members().count() for cluster in clusters] == [int(one) for one in won]
            assert [again(cluster).desired_capacity for cluster in clusters] == [int(one) for one in won]
