"""What the data source says about the cluster, fetched for a strategy before it is asked for a solution."""

from collections.abc import Mapping

from cluster.datasources.base import DatasourceError, Reading, datasource

Measurements = Mapping[str, Mapping[str, float]]


def measure(readings: Mapping[str, Reading]) -> Measurements:
    """Ask the data source: one request a reading, whatever the size of the cluster.

    Raises:
        DatasourceError: it does not answer, or it has nothing of what a strategy cannot do without.
    """
    if not readings:
        return {}
    source = datasource()
    found = {name: source.read(reading) for name, reading in readings.items()}
    for name, reading in readings.items():
        if reading.required and not found[name]:
            raise DatasourceError(
                f"The data source {source.name} has no samples of {reading.metric}"
                f" from the last {reading.period + reading.ago:g} seconds."
            )
    return found
