"""A decision on a stack: the changes of its resources, and the rows that are written before them.

It is stored as JSON in the data of an action.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from cluster.models import Stack, StackResource
from cluster.models.stacks import MARKED

BATCH = 1000

Template = Mapping[str, Any]
"""A normalised template: see `cluster.stacks.templates.templates`."""


class Kind(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True)
class Change:
    """A change of the resource ``uuid``.

    Args:
        after: the UUIDs of resources in the same step whose changes come first.
        steps: the changes of the stack within. Each step waits for the previous one, and for ``pause`` seconds.
        clearing: the final deletion of former counterparts in the cloud.
        nested: the UUID of the stack within, after the change.
        generation: the generation of the counterpart in the cloud, after the change.
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
        """Return a change that was stored as JSON."""
        steps = [[cls.read(change) for change in step] for step in data["steps"]]
        clearing = [cls.read(change) for change in data["clearing"]]
        return cls(**{**data, "kind": Kind(data["kind"]), "steps": steps, "clearing": clearing})


@dataclass(frozen=True)
class NewStack:
    """A nested stack to create, within the resource ``parent``."""

    uuid: str
    name: str
    parent: str
    template: Template


@dataclass(frozen=True)
class NewResource:
    """A resource to create in a stack."""

    uuid: str
    stack: str
    name: str
    type: str


@dataclass
class Decision:
    """The changes of a root stack.

    ``templates`` contains the templates of existing stacks by UUID, ``marked`` the UUIDs of resources that are
    replaced because a user marked their stack.
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


def write_decision(root: Stack, decision: Decision) -> None:
    """Write the new rows and the new templates of a decision, unless they are written already.

    The number of statements depends on the depth of new stacks, not on the number of resources. The caller has locked
    the row of the root in a transaction, sets its template, and saves it.
    """
    stacks = {str(stack.uuid): stack for stack in Stack.objects.tree(root)}
    resources = {str(resource.uuid): resource for resource in StackResource.objects.tree(root)}
    templates = {**decision.templates, **{new.uuid: new.template for new in decision.stacks}}
    write_templates([stack for stack in stacks.values() if stack.pk != root.pk], decision.templates)
    write_dependencies(list(resources.values()), {stack.pk: templates.get(uuid) for uuid, stack in stacks.items()})
    mark_resources([resources[uuid] for uuid in decision.marked if uuid in resources])
    new_stacks = [new for new in decision.stacks if new.uuid not in stacks]
    new_resources = [new for new in decision.resources if new.uuid not in resources]
    while new_stacks or new_resources:
        rows = [make_resource(new, stacks[new.stack], templates) for new in new_resources if new.stack in stacks]
        resources.update((str(row.uuid), row) for row in StackResource.objects.bulk_create(rows, batch_size=BATCH))
        nested = [make_stack(new, root, resources[new.parent]) for new in new_stacks if new.parent in resources]
        stacks.update((str(row.uuid), row) for row in Stack.objects.bulk_create(nested, batch_size=BATCH))
        new_resources = [new for new in new_resources if new.uuid not in resources]
        new_stacks = [new for new in new_stacks if new.uuid not in stacks]


def make_stack(new: NewStack, root: Stack, parent: StackResource) -> Stack:
    return Stack(
        uuid=UUID(new.uuid),
        name=new.name,
        template=new.template,
        parent_resource=parent,
        root=root,
        project_id=root.project_id,
        user_id=root.user_id,
    )


def make_resource(new: NewResource, stack: Stack, templates: Mapping[str, Template]) -> StackResource:
    description = templates[new.stack]["resources"][new.name]
    return StackResource(
        uuid=UUID(new.uuid), stack=stack, name=new.name, type=new.type, depends_on=list(description["depends_on"])
    )


def write_templates(stacks: Sequence[Stack], templates: Mapping[str, Template]) -> None:
    changed = [stack for stack in stacks if templates.get(str(stack.uuid), stack.template) != stack.template]
    for stack in changed:
        stack.template = templates[str(stack.uuid)]
    Stack.objects.bulk_update(changed, ["template"], batch_size=BATCH)


def write_dependencies(resources: Sequence[StackResource], templates: Mapping[int, Template | None]) -> None:
    """Update the dependencies of existing resources from the templates of their stacks."""
    changed = []
    for resource in resources:
        template = templates.get(resource.stack_id)
        description = template["resources"].get(resource.name) if template else None
        if description and resource.deleted_at is None and resource.depends_on != description["depends_on"]:
            resource.depends_on = list(description["depends_on"])
            changed.append(resource)
    StackResource.objects.bulk_update(changed, ["depends_on"], batch_size=BATCH)


def mark_resources(resources: Sequence[StackResource]) -> None:
    """Mark the resources of a marked stack, so that resources that are not replaced stay marked."""
    for resource in resources:
        resource.mark_unhealthy(MARKED)
    StackResource.objects.bulk_update(resources, ["status", "status_reason"], batch_size=BATCH)
