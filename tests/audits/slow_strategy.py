"""A strategy that runs until a file is deleted, for tests that interrupt a decision engine."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from audits.strategies.base import Solution
from audits.strategies.dummy import Dummy
from cluster.snapshot import ClusterSnapshot


class Slow(Dummy):
    """Creates a file when it starts, and ends when the file is deleted."""

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        mark = Path(os.environ["SLOW_STRATEGY_FILE"])
        mark.touch()
        while mark.exists():
            time.sleep(0.02)
        return super().solve(cluster, parameters)
