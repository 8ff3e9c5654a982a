"""Messages between appliers and workers, as JSON. All of their content is in the tables as well."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from actions.engine import execution
from actions.models import Action
from plans.executors.base import Work

TASK = "plans.work"
WORKS: Mapping[str, Work] = {work.__name__: work for work in (execution.execute, execution.recover, execution.revert)}


def standing(action: Action) -> list[Any]:
    """Return the values of an action's guards when it was read. If the row differs, a message is out of date."""
    values = action.values_read
    return [values["state"], values["attempt"], values["owner_id"]]


@dataclass(frozen=True)
class Letter:
    """A job for any free worker. It is valid for the action as the applier read it, and in no other state."""

    work: str
    action: int
    plan: int
    applier: int
    standing: list[Any]
    queue: str
    reply_to: str
    """The queue that the applier reads the replies from."""

    def as_arguments(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Reply:
    """Look at this action: its worker has done with it, or was ``refused`` it; and goes on with the ``next`` one."""

    plan: int
    action: int
    refused: bool = False
    problem: str = ""
    """What it was refused for, if something of our own is in the way."""
    next: int | None = None
