"""A strategy that reads no models and proposes harmless actions, to try audits and plans."""

from collections.abc import Mapping
from typing import Any

from audits.strategies.base import Solution, Strategy
from cluster.snapshot import ClusterSnapshot


class Dummy(Strategy):
    name = "dummy"
    display_name = "Dummy strategy"
    goal = "dummy"
    schema = {
        "type": "object",
        "properties": {
            "para1": {
                "description": "The duration of the last action, in seconds.",
                "type": "number",
                "default": 3.2,
                "minimum": 1.0,
                "maximum": 10.2,
            },
            "para2": {"description": "The message of the second action.", "type": "string", "default": "hello"},
        },
    }

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        solution = Solution()
        solution.add("nop", {"message": "hello World"})
        solution.add("nop", {"message": parameters["para2"]})
        solution.add("sleep", {"duration": parameters["para1"]})
        return solution
