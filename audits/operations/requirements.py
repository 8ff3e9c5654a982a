"""The requirements of a strategy and their availability: the answer of ``/v1/strategies/{id}/state``."""

from collections.abc import Mapping
from typing import Any

from audits.strategies.base import Strategy
from cluster.datasources.base import DatasourceError, datasource
from cluster.models import ComputeNode, StorageNode
from watcher_site.plugins import load

NO_DATASOURCE = "Datasource is not presented for this strategy"
AVAILABLE, NOT_AVAILABLE = "available", "not available"


def requirements(strategy: str) -> list[dict[str, Any]]:
    """Return the four entries that clients print: data source, metrics, cluster data models, name."""
    installed: Mapping[str, type[Strategy]] = load("STRATEGIES")
    wanted = installed[strategy].metrics if strategy in installed else ()
    state, metrics = measured(wanted) if wanted else (NO_DATASOURCE, [])
    return [
        {"type": "Datasource", "state": state, "mandatory": True, "comment": ""},
        {"type": "Metrics", "state": metrics, "mandatory": False, "comment": ""},
        {"type": "CDM", "state": models(), "mandatory": True, "comment": ""},
        {"type": "Name", "state": strategy, "mandatory": "", "comment": ""},
    ]


def measured(wanted: tuple[str, ...]) -> tuple[str, list[dict[str, str]]]:
    """Return whether the data source answers, and which of the metrics it has."""
    source = datasource()
    try:
        found = source.find_metrics()
    except DatasourceError:
        return f"{source.name}: {NOT_AVAILABLE}", [{metric: NOT_AVAILABLE} for metric in wanted]
    return f"{source.name}: {AVAILABLE}", [
        {metric: AVAILABLE if metric in found else NOT_AVAILABLE} for metric in wanted
    ]


def models() -> list[dict[str, str]]:
    """Return the available models; bare metal has none, as power states are part of the compute model."""
    return [
        {"compute_model": availability(ComputeNode)},
        {"storage_model": availability(StorageNode)},
        {"baremetal_model": NOT_AVAILABLE},
    ]


def availability(model: type[ComputeNode | StorageNode]) -> str:
    return AVAILABLE if model.objects.present().exists() else NOT_AVAILABLE
