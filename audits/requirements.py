"""What a strategy needs to run, and what of it is there: the answer of ``/v1/strategies/{id}/state``."""

from typing import Any

from cluster.models import ComputeNode, StorageNode

NO_DATASOURCE = "Datasource is not presented for this strategy"


def requirements(strategy: str) -> list[dict[str, Any]]:
    """Return the four entries that clients print: data source, metrics, cluster data models, name."""
    return [
        {"type": "Datasource", "state": NO_DATASOURCE, "mandatory": True, "comment": ""},
        {"type": "Metrics", "state": [], "mandatory": False, "comment": ""},
        {"type": "CDM", "state": models(), "mandatory": True, "comment": ""},
        {"type": "Name", "state": strategy, "mandatory": "", "comment": ""},
    ]


def models() -> list[dict[str, str]]:
    """Say which models there are; as every compute node has a power state, there is a bare-metal one with them."""
    compute = availability(ComputeNode)
    return [
        {"compute_model": compute},
        {"storage_model": availability(StorageNode)},
        {"baremetal_model": compute},
    ]


def availability(model: type[ComputeNode | StorageNode]) -> str:
    return "available" if model.objects.present().exists() else "not available"
