"""Scores of the sample scoring engines."""

import json

import pytest

from audits.scoring.base import ScoringEngine
from watcher_site.plugins import load
from watcher_site.refusals import Invalid


def engine(name: str) -> ScoringEngine:
    found: ScoringEngine = load("SCORING_ENGINES")[name]()
    return found


@pytest.mark.parametrize(("name", "score"), [("min", 1), ("max", 6), ("avg", 3)])
def test_min_max_and_avg_scorers_return_one_number(name: str, score: float) -> None:
    assert json.loads(engine(f"dummy_{name}_scorer").calculate_score("[1, 2, 6]")) == [score]


@pytest.mark.parametrize(
    ("features", "workload"),
    [
        ([10, 80, 0, 0], "idle"),
        ([95, 80, 0, 0], "CPU-bound"),
        ([10, 5, 0, 0], "memory-bound"),
        ([10, 80, 500, 0], "disk-bound"),
        ([10, 80, 0, 500], "network-bound"),
    ],
)
def test_dummy_scorer_classifies_the_workload_by_its_features(features: list[int], workload: str) -> None:
    scorer = engine("dummy_scorer")
    [place] = json.loads(scorer.calculate_score(json.dumps(features)))
    assert json.loads(scorer.metainfo)["workloads"][place] == workload


@pytest.mark.parametrize("features", ["", "{}", "[]", '["a"]', "[true]", "[1]"])
def test_invalid_features_are_refused(features: str) -> None:
    with pytest.raises(Invalid, match=r"^features: "):
        engine("dummy_scorer").calculate_score(features)
