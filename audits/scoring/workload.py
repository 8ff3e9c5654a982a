"""A sample scoring engine that classifies workloads."""

import json

from audits.scoring.base import ScoringEngine, numbers_of
from watcher_site.refusals import Invalid

# The features, in order: processor use in %, free memory in %, disk and network in MB/s.
FEATURES = ["PROCESSOR_TIME", "MEM_AVAILABLE", "DISK_IO", "NETWORK_IO"]
WORKLOADS = ["idle", "CPU-bound", "memory-bound", "disk-bound", "network-bound"]

BUSY_PROCESSOR = 80
SCARCE_MEMORY = 20
BUSY_DISK = BUSY_NETWORK = 100


class DummyScorer(ScoringEngine):
    """A scoring engine whose score is the index in `WORKLOADS`, determined by the first scarce resource."""

    name = "dummy_scorer"
    description = "Sample that names the kind of a workload from its use of resources."
    metainfo = json.dumps({"feature_columns": FEATURES, "workloads": WORKLOADS})

    def calculate_score(self, features: str) -> str:
        numbers = numbers_of(features)
        if len(numbers) != len(FEATURES):
            raise Invalid(f"features: there must be {len(FEATURES)} of them.")
        processor, memory, disk, network = numbers
        short = [
            processor > BUSY_PROCESSOR,
            memory < SCARCE_MEMORY,
            disk > BUSY_DISK,
            network > BUSY_NETWORK,
        ]
        return json.dumps([short.index(True) + 1 if True in short else 0])
