"""A decision on a stack: what is to be done to which of its resources, and what its rows say from the beginning.

All of it can be kept as JSON, in the data of an action.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

Template = Mapping[str, Any]
"""A normalised template: see `cluster.stacks.templates.templates`."""


class Kind(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True)
class Change:
    """A change of one resource, ``uuid``.

    Args:
        after: the UUIDs of other resources in the same step whose changes come before.
        steps: the changes of the stack within; each step waits for the one before, and for ``pause`` seconds.
        clearing: the deletion of the former counterpart in the cloud, when all else is done.
        nested: the UUID of the stack within, after the change.
        generation: of its counterpart in the cloud, after the change.
    """

    kind: Kind
    uuid: str
    name: str
    after: list[str] = field(default_factory=list)
    steps: list[list["Change"]] = field(default_factory=list)
    pause: float = 0
    clearing: list["Change"] = field(default_factory=list)
    nested: str | None = None
    generation: int = 0

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """Return a change that was kept as JSON."""
        steps = [[cls.read(one) for one in step] for step in data["steps"]]
        clearing = [cls.read(one) for one in data["clearing"]]
        return cls(**{**data, "kind": Kind(data["kind"]), "steps": steps, "clearing": clearing})


@dataclass(frozen=True)
class NewStack:
    """A nested stack to be, within the resource ``parent``."""

    uuid: str
    name: str
    parent: str
    template: Template


@dataclass(frozen=True)
class NewResource:
    """A resource to be, of a stack."""

    uuid: str
    stack: str
    name: str
    type: str


@dataclass
class Decision:
    """The changes of a root stack.

    ``templates`` has the templates of existing stacks by their UUIDs; ``marked`` the resources that are replaced since
    a person marked their stack.
    """

    changes: list[Change] = field(default_factory=list)
    stacks: list[NewStack] = field(default_factory=list)
    resources: list[NewResource] = field(default_factory=list)
    templates: dict[str, Template] = field(default_factory=dict)
    marked: list[str] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            changes=[Change.read(one) for one in data["changes"]],
            stacks=[NewStack(**one) for one in data["stacks"]],
            resources=[NewResource(**one) for one in data["resources"]],
            templates=dict(data["templates"]),
            marked=list(data["marked"]),
        )
