"""A strategy that takes its time, for tests that disturb a decision engine at work."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from audits.strategies.base import Solution
from audits.strategies.dummy import Dummy
from cluster.snapshot import ClusterSnapshot


class Slow(Dummy):
    """Says by a file that it has begun, and ends when that file is gone, if at all."""

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        mark = Path(os.environ["SLOW_STRATEGY_FILE"])
        mark.touch()
        while mark.exists():
            time.sleep(0.02)
        return super().solve(cluster, parameters)
