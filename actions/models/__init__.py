"""Actions, the events of their phases, exclusions and instance actions."""

from actions.models.actions import (
    FAILED_IN,
    NOT_EXECUTED,
    REASON_LENGTH,
    SKIPPED_AUTOMATICALLY,
    SKIPPED_BY_USER,
    Action,
    ActionParent,
    InstanceAction,
    is_excluded,
    may_be_restored,
)
from actions.models.events import ActionEvent

__all__ = [
    "FAILED_IN",
    "NOT_EXECUTED",
    "REASON_LENGTH",
    "SKIPPED_AUTOMATICALLY",
    "SKIPPED_BY_USER",
    "Action",
    "ActionEvent",
    "ActionParent",
    "InstanceAction",
    "is_excluded",
    "may_be_restored",
]
