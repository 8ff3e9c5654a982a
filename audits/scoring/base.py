"""The base class of scoring engines, which compute a result from the features of an object."""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from watcher_site.refusals import Invalid


class ScoringEngine(ABC):
    """The base class of scoring engines. ``metainfo`` is JSON text that describes the features and the scores."""

    name: ClassVar[str]
    description: ClassVar[str]
    metainfo: ClassVar[str] = ""

    @abstractmethod
    def calculate_score(self, features: str) -> str:
        """Return the score of features. Both are JSON lists of numbers.

        Raises:
            Invalid: the features are invalid.
        """


def numbers_of(features: str) -> Sequence[float]:
    """Return the numbers of a JSON list.

    Raises:
        Invalid: the text is not a JSON list of numbers, or the list is empty.
    """
    try:
        numbers = json.loads(features)
    except ValueError as problem:
        raise Invalid("features: must be JSON.") from problem
    if not isinstance(numbers, list) or not numbers or not all(map(is_number, numbers)):
        raise Invalid("features: must be a list of numbers that is not empty.")
    return numbers


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
