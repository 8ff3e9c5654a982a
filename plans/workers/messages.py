"""Messages between appliers and workers, as JSON. All of their content is in the tables as well."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from actions.engine import execution
from actions.models import Action
from plans.executors.base import Work

TASK = "plans.work"
# The names of fields in messages, where they differ: processes of the previous release send and read them.
FORMER_NAMES = {"guards": "standing"}
WORKS: Mapping[str, Work] = {work.__name__: work for work in (execution.execute, execution.recover, execution.revert)}


def guard_values(action: Action) -> list[Any]:
    """Return the values of an action's guards when it was read. If the row differs, a message is out of date."""
    values = action.values_read
    return [values["state"], values["attempt"], values["owner_id"]]


@dataclass(frozen=True)
class JobMessage:
    """A job for any free worker. It is valid for the action as the applier read it, and in no other state."""

    work: str
    action: int
    plan: int
    applier: int
    guards: list[Any]
    queue: str
    reply_to: str
    """The queue that the applier reads the replies from."""
    request_id: str = ""
    """The id of the request that started the plan. Appliers of the previous release do not send it."""

    def as_arguments(self) -> dict[str, Any]:
        return {FORMER_NAMES.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "JobMessage":
        """Return the message that was sent as these arguments of the task."""
        names = {field.name: FORMER_NAMES.get(field.name, field.name) for field in fields(cls)}
        return cls(**{name: arguments[sent] for name, sent in names.items() if sent in arguments})


@dataclass(frozen=True)
class Reply:
    """Look at this action: its worker has done with it, or was ``refused`` it; and goes on with the ``next`` one."""

    plan: int
    action: int
    refused: bool = False
    problem: str = ""
    """What it was refused for, if something of our own is in the way."""
    next: int | None = None
