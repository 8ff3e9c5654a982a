"""Read the measurements that a strategy requires from the data source, before the strategy runs."""

from collections.abc import Mapping

from audits.demonstration_cloud import make_current
from cluster.datasources.base import DatasourceError, Reading, datasource
from cluster.snapshot import ClusterSnapshot

Measurements = Mapping[str, Mapping[str, float]]


def measure(readings: Mapping[str, Reading], cluster: ClusterSnapshot) -> Measurements:
    """Query the data source: one request for each reading, whatever the size of the cluster.

    If the cloud is the demonstration, its samples are brought up to date before.

    Raises:
        DatasourceError: it does not answer, or has no samples of this cluster for a required reading.
    """
    if not readings:
        return {}
    make_current()
    source = datasource()
    found = {name: source.read(reading) for name, reading in readings.items()}
    for name, reading in readings.items():
        resources = resources_of(reading.metric, cluster)
        if reading.required and resources and resources.isdisjoint(found[name]):
            raise DatasourceError(
                f"The data source {source.name} has no samples of {reading.metric}"
                f" from the last {reading.period + reading.ago:g} seconds."
            )
    return found


def resources_of(metric: str, cluster: ClusterSnapshot) -> set[str]:
    """Return what a data source may call those that a metric is of: the compute nodes, or the servers."""
    if metric.startswith("host_"):
        return {name for node in cluster.nodes.values() for name in (str(node.uuid), node.hostname)}
    return {str(server.uuid) for server in cluster.servers}
