"""The scoring engines that strategies may ask, as data: what ``/v1/scoring_engines`` shows."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class ScoringEngineDefinition:
    name: str
    description: str
    metainfo: str = ""


# The features, in order, that the sample engines take, and the workload classes that `dummy_scorer` tells apart.
FEATURES = ["PROCESSOR_TIME", "MEM_AVAILABLE", "DISK_IO", "NETWORK_IO"]
WORKLOADS = ["idle", "CPU-bound", "memory-bound", "disk-bound", "network-bound"]

SCORING_ENGINES = {
    engine.name: engine
    for engine in (
        ScoringEngineDefinition(
            "dummy_scorer",
            "Sample that names the kind of a workload from its use of resources.",
            json.dumps({"feature_columns": FEATURES, "workloads": WORKLOADS}),
        ),
        ScoringEngineDefinition("dummy_min_scorer", "Sample that answers the least of the features."),
        ScoringEngineDefinition("dummy_max_scorer", "Sample that answers the greatest of the features."),
        ScoringEngineDefinition("dummy_avg_scorer", "Sample that answers the mean of the features."),
    )
}
