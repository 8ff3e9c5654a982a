"""Builders of exclusions for tests."""

from typing import Any

from actions.exclusions.records import create_exclusion
from actions.models.exclusions import Exclusion


def make_exclusion(name: str = "frozen", by: str = "alice", **attributes: Any) -> Exclusion:
    return create_exclusion({"name": name, **attributes}, by)
