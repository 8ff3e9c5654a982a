"""Sample scoring engines that return one number for all features."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from statistics import fmean

from audits.scoring.base import ScoringEngine, numbers_of


class Aggregate(ScoringEngine):
    def calculate_score(self, features: str) -> str:
        return json.dumps([self.aggregate(numbers_of(features))])

    @abstractmethod
    def aggregate(self, numbers: Sequence[float]) -> float:
        pass


class DummyMinScorer(Aggregate):
    name = "dummy_min_scorer"
    description = "Sample that answers the least of the features."

    def aggregate(self, numbers: Sequence[float]) -> float:
        return min(numbers)


class DummyMaxScorer(Aggregate):
    name = "dummy_max_scorer"
    description = "Sample that answers the greatest of the features."

    def aggregate(self, numbers: Sequence[float]) -> float:
        return max(numbers)


class DummyAvgScorer(Aggregate):
    name = "dummy_avg_scorer"
    description = "Sample that answers the mean of the features."

    def aggregate(self, numbers: Sequence[float]) -> float:
        return fmean(numbers)
