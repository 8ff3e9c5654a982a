"""The rate of new nodes of a cluster in the embedded cloud, with the commits for each node."""

from uuid import uuid4

import psycopg
from django.db import connections

from actions.graph.proposals import ProposedAction
from cluster.models import Cluster, ComputeNode, Flavor, Profile
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.benchmarks.applier import CONSTANT_COMMITS, applier, commits, raw_rate, verify, wait_for
from tests.benchmarks.table import Line

NODES, HOSTS = 1000, 10
# Of the action engine two, as for any action; of the node's row and of its server's, when they begin and when they
# end, four; and a savepoint, as the database decides whose a server's token is.
COMMITS = 7


def measure(database: str) -> list[Line]:
    cluster = make_cluster()
    before = raw_rate(database)
    rate, used = grow(database, cluster)
    raw = (before + raw_rate(database)) / 2
    work = f"a cluster grows by {NODES:,} nodes"
    return [
        # Reported without a bound: for each node the embedded cloud also sums up the free capacity.
        Line(work, rate, "raw commits", raw, 0, unit="/s", at_least=True),
        Line("  commits", used, "nodes", NODES, COMMITS, "constant", CONSTANT_COMMITS, unit=""),
    ]


def make_cluster() -> Cluster:
    flavor = Flavor.objects.create(name=f"measured {uuid4()}", vcpus=1, memory=1, disk=1)
    ComputeNode.objects.bulk_create(
        ComputeNode(hostname=f"measured-{number}-{uuid4()}", vcpus=NODES, memory=NODES, disk=NODES)
        for number in range(HOSTS)
    )
    profile = Profile.objects.create(name=flavor.name, spec={"flavor": flavor.name})
    return Cluster.objects.create(name="measured", profile=profile, status=Cluster.Status.ACTIVE)


def grow(database: str, cluster: Cluster) -> tuple[float, int]:
    """Scale a cluster out, and return the nodes per second, and the number of commits."""
    action = ProposedAction("CLUSTER_SCALE_OUT", {"resource_id": str(cluster.uuid), "count": NODES})
    plan = propose([action])
    plan.launch()
    connections.close_all()
    with psycopg.connect(database, autocommit=True) as connection:
        before = commits(connection)
        with applier(WATCHER_EMBEDDED_CLOUD_SECONDS="0") as process, connection.transaction():
            begin = wait_for(connection, plan, process, ActionPlan.State.PENDING)
            end = wait_for(connection, plan, process, ActionPlan.State.ONGOING)
        used = commits(connection) - before
    verify(plan, NODES + 1)
    return NODES / (end - begin), used
