"""Clusters whose nodes have servers on hosts."""

from cluster.models import Cluster, ComputeNode, Node
from tests.builders import make_cluster, make_node, make_server


def cluster_on(*hosts: ComputeNode) -> Cluster:
    """Return a cluster with one node on each of these hosts, in this order."""
    cluster = make_cluster(size=len(hosts))
    for index, host in enumerate(hosts, start=1):
        server = make_server(f"{cluster.name}-{index}", host, vcpus=1, memory=1024, disk=10)
        Node.objects.filter(cluster=cluster, index=index).update(physical_id=server.uuid)
    return cluster


def hosts_in(*zones: str, **columns: object) -> list[ComputeNode]:
    return [make_node(f"{zone}-{number}", zone=zone, **columns) for number, zone in enumerate(zones, start=1)]
