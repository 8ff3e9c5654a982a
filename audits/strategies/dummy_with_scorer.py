"""A strategy that reads no models and passes random features to the sample scoring engines."""

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from audits import messages
from audits.scoring.base import ScoringEngine
from audits.strategies.base import Solution, Strategy
from cluster.snapshot import ClusterSnapshot
from watcher_site.plugins import load
from watcher_site.refusals import Invalid

# The seed is constant, so that the same arguments return the same solution.
SEED = 2016
LARGEST = 100


class DummyWithScorer(Strategy):
    name = "dummy_with_scorer"
    display_name = "Dummy Strategy using sample Scoring Engines"
    goal = "dummy"
    schema = {
        "type": "object",
        "properties": {
            "param1": {"description": "Not used.", "type": "number", "default": 3.2, "minimum": 1.0, "maximum": 10.2},
            "param2": {"description": "Not used.", "type": "string", "default": "hello"},
        },
    }

    def models(self, parameters: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def solve(self, cluster: ClusterSnapshot, parameters: Mapping[str, Any]) -> Solution:
        chance = Random(SEED)  # noqa: S311 (chance, no secret)
        scorer = engine("dummy_scorer")
        about = json.loads(scorer.metainfo)
        features = json.dumps([chance.randint(0, LARGEST) for _ in about["feature_columns"]])
        workload = about["workloads"][json.loads(scorer.calculate_score(features))[0]]
        [mean] = json.loads(engine("dummy_avg_scorer").calculate_score(features))
        solution = Solution()
        solution.add("nop", {"message": "Hello from Dummy Strategy with Scorer!"})
        solution.add("nop", {"message": f"Detected Workload: {workload}"})
        solution.add("nop", {"message": f"AVG Scorer result: {mean:g}"})
        solution.add("sleep", {"duration": 5.0})
        return solution


def engine(name: str) -> ScoringEngine:
    installed: Mapping[str, type[ScoringEngine]] = load("SCORING_ENGINES")
    if name not in installed:
        raise Invalid(messages.ENGINE_NOT_INSTALLED.fill(name=name))
    return installed[name]()
