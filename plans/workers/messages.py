"""The messages between appliers and workers, in JSON. All of their content is in the database as well."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from actions.engine import execution
from actions.models import Action
from plans.executors.base import Work

TASK = "plans.work"
# The names of fields in messages that differ from those of the classes, for processes of the previous release.
FORMER_NAMES = {"guards": "standing"}
WORKS: Mapping[str, Work] = {work.__name__: work for work in (execution.execute, execution.recover, execution.revert)}


def guard_values(action: Action) -> list[Any]:
    """Return the values of an action's guards as it was read. A message is out of date if the row has others."""
    values = action.values_read
    return [values["state"], values["attempt"], values["owner_id"]]


@dataclass(frozen=True)
class JobMessage:
    """A job for any free worker, valid only while the action's row has these ``guards``."""

    work: str
    action: int
    plan: int
    applier: int
    guards: list[Any]
    queue: str
    reply_to: str
    """The queue for replies to the applier."""
    request_id: str = ""
    """The id of the request that started the plan. Appliers of the previous release do not send it."""
    plan_uuid: str = ""
    traceparent: str = ""
    """The span of what started the plan. Appliers of the previous release do not send it."""

    def as_arguments(self) -> dict[str, Any]:
        return {FORMER_NAMES.get(name, name): value for name, value in asdict(self).items()}

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "JobMessage":
        """Return the message with these arguments of the Celery task."""
        names = {field.name: FORMER_NAMES.get(field.name, field.name) for field in fields(cls)}
        return cls(**{name: arguments[sent] for name, sent in names.items() if sent in arguments})


@dataclass(frozen=True)
class Reply:
    """The message of a worker that its job for an action is over.

    The applier reads the result from the database. ``refused`` says that the worker did not complete the job.
    """

    plan: int
    action: int
    refused: bool = False
    problem: str = ""
    """The name of the worker's own error, if one was the reason for ``refused``."""
    next: int | None = None
    """The key of the action that the worker starts next by itself."""
