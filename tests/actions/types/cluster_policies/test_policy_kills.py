"""An applier killed between two policies: the next one removes the same nodes, which were chosen at random."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from actions.models import Action
from cluster.drivers.embedded.balancing import EmbeddedBalancer
from cluster.models import BalancingMember, Cluster, Node, PolicyBinding
from cluster.policies.checking import APPLIED, load_policy
from plans.operations.clusters import scale_in
from tests.builders import make_balancing_pool, make_binding, make_cluster, make_node, make_server
from tests.plans.inline import run_waiting
from tests.plans.kills import Life, run_until_killed

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

SIZE, LEAVING = 4, 2
SCALING, DELETION, BALANCING = (f"senlin.policy.{name}" for name in ("scaling-1.0", "deletion-1.1", "loadbalance-1.3"))
# Stages at which the process was killed, by the data that it had saved.
NOTHING, COUNT, CANDIDATES, TAKEN_OUT, BEGUN = range(5)


@dataclass
class Scaling:
    """A scale-in by an applier that was killed and by the next applier."""

    cluster: Cluster
    action: Action
    stage: int
    killed_with: dict[str, Any]
    taken_out: list[str]

    @property
    def decided(self) -> dict[str, Any]:
        found: dict[str, Any] = self.action.data["deletion"]
        return found


@pytest.fixture
def make() -> Callable[[], Cluster]:
    """Return a function that creates clusters with a pool, and a scaling, a deletion and a load-balancing policy."""
    host = make_node(vcpus=10_000, memory=10**8, disk=10**7)
    numbers = count()

    def make_one() -> Cluster:
        name = f"cluster {next(numbers)}"
        cluster = make_cluster(name, size=SIZE)
        for node in cluster.members():
            node.physical_id = make_server(node.name, host).uuid
            node.save()
        make_balancing_pool(name)
        make_binding(cluster, SCALING, {"event": "CLUSTER_SCALE_IN", "adjustment": {"number": LEAVING}})
        make_binding(cluster, DELETION, {"criteria": "RANDOM"})
        load_policy(make_binding(cluster, BALANCING, {"pool": {"id": name}})).attach(cluster)
        return cluster

    return make_one


@pytest.fixture
def taken_out(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the servers that were removed from pools, one entry per removal."""
    seen: list[str] = []
    delete_member = EmbeddedBalancer.delete_member

    def watched(self: EmbeddedBalancer, pool: Any, server: str, checkpoint: Any) -> None:
        was_there = BalancingMember.objects.filter(pool__uuid=pool.uuid, server__uuid=server).exists()
        delete_member(self, pool, server, checkpoint)
        seen.extend([server] * was_there)

    monkeypatch.setattr(EmbeddedBalancer, "delete_member", watched)
    return seen


def stage_of(cluster: Cluster, data: dict[str, Any]) -> int:
    applied = data.get(APPLIED, {}).get("BEFORE", [])
    types = set(PolicyBinding.objects.filter(uuid__in=applied).values_list("policy__type", flat=True))
    if data.get("begun"):
        return BEGUN
    return TAKEN_OUT if BALANCING in types else CANDIDATES if DELETION in types else COUNT if SCALING in types else 0


def kill_during_the_decisions(kill: Callable[[int], Scaling]) -> Iterator[Scaling]:
    """Yield each scaling after the next applier: the first applier was killed one database write later each time.

    Writes long before the first decision are omitted, as they are the same for actions of any type.
    """
    first = bisect_left(range(50), COUNT, key=lambda changes: kill(changes).stage)
    for changes in count(first - 1):
        scaling = kill(changes)
        yield scaling
        if scaling.stage == BEGUN:
            return


@pytest.fixture
def kill(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Cluster], taken_out: list[str]
) -> Callable[[int], Scaling]:
    """Return a function that scales in a cluster by an applier killed after some database writes and the next one."""

    def kill_after(changes: int) -> Scaling:
        taken_out.clear()
        cluster = make()
        action = scale_in(cluster).action
        run_until_killed(monkeypatch, Life(changes))
        data = Action.objects.get(uuid=action).data
        stage = stage_of(cluster, data)
        run_waiting()
        return Scaling(cluster, Action.objects.get(uuid=action), stage, data, list(taken_out))

    return kill_after


def test_next_applier_removes_the_same_nodes_and_each_pool_member_once(kill: Callable[[int], Scaling]) -> None:
    stages = set()
    for scaling in kill_during_the_decisions(kill):
        stages.add(scaling.stage)
        decided = scaling.decided
        assert scaling.action.state == "SUCCEEDED", scaling.action.status_message
        assert scaling.killed_with.get("deletion", {}).items() <= decided.items()
        gone = Node.objects.filter(cluster=scaling.cluster, deleted_at__isnull=False)
        assert sorted(str(node.uuid) for node in gone) == sorted(decided["candidates"])
        assert sorted(scaling.taken_out) == sorted(str(node.physical_id) for node in gone)
        assert len(gone) == decided["count"] == LEAVING
        left = scaling.cluster.members().values_list("physical_id", flat=True)
        pool = BalancingMember.objects.filter(pool__name=scaling.cluster.name)
        assert set(pool.values_list("server__uuid", flat=True)) == set(left)
    assert stages == {NOTHING, COUNT, CANDIDATES, TAKEN_OUT, BEGUN}
