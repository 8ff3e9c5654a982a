"""A strategy that reads no models and proposes actions on two fixed servers, which need not exist."""

from collections.abc import Mapping
from typing import Any

from audits.strategies.base import Solution, Strategy
from audits.strategies.dummy import Dummy
from cluster.snapshot import ClusterSnapshot

MIGRATED = ("b199db0c-1408-4d52-b5a5-5ca14de0ff36", "8db1b3c1-7938-4c34-8c03-6de14b874f8f")
RESIZED, FLAVOR = MIGRATED[1], "x2"


class DummyWithResize(Strategy):
    """Propose actions on the two servers of Watcher's strategy. The parameters are those of `dummy`, and not used."""

    name = "dummy_with_resize"
    display_name = "Dummy strategy with resize"
    goal = "dummy"
    schema = Dummy.schema

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        solution = Solution()
        solution.add("nop", {"message": "hello World"})
        solution.add("nop", {"message": "Welcome"})
        solution.add("sleep", {"duration": 5.0})
        inputs = {"migration_type": "live", "source_node": "compute2", "destination_node": "compute3"}
        for server in MIGRATED:
            solution.add("migrate", inputs, resource_id=server)
        solution.add("resize", {"flavor": FLAVOR}, resource_id=RESIZED)
        return solution
