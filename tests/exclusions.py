"""Rules for tests, in few words."""

from typing import Any

from actions.exclusions.models import Exclusion
from actions.exclusions.records import create_exclusion


def make_exclusion(name: str = "frozen", by: str = "alice", **attributes: Any) -> Exclusion:
    return create_exclusion({"name": name, **attributes}, by)
