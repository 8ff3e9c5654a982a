"""Write a decision on a stack to its rows."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from cluster.models import Stack, StackResource
from cluster.models.stacks import MARKED
from cluster.stacks.decisions import Decision, NewResource, NewStack, Template

BATCH = 1000


def write_decision(root: Stack, decision: Decision) -> None:
    """Write what is new, and what the parts of a tree are to be from now on; what is written already stays.

    The number of statements grows with the depth of what is new, not with the number of resources. The caller holds
    the row of the root, in a transaction, sets its template, and saves it.
    """
    stacks = {str(stack.uuid): stack for stack in Stack.objects.tree(root)}
    resources = {str(resource.uuid): resource for resource in StackResource.objects.tree(root)}
    templates = {**decision.templates, **{new.uuid: new.template for new in decision.stacks}}
    write_templates([stack for stack in stacks.values() if stack.pk != root.pk], decision.templates)
    write_dependencies(list(resources.values()), {stack.pk: templates.get(uuid) for uuid, stack in stacks.items()})
    mark([resources[uuid] for uuid in decision.marked if uuid in resources])
    new_stacks = [new for new in decision.stacks if new.uuid not in stacks]
    new_resources = [new for new in decision.resources if new.uuid not in resources]
    while new_stacks or new_resources:
        made = [make_resource(new, stacks[new.stack], templates) for new in new_resources if new.stack in stacks]
        resources.update((str(row.uuid), row) for row in StackResource.objects.bulk_create(made, batch_size=BATCH))
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
    wanted = templates[new.stack]["resources"][new.name]
    return StackResource(
        uuid=UUID(new.uuid), stack=stack, name=new.name, type=new.type, depends_on=list(wanted["depends_on"])
    )


def write_templates(stacks: Sequence[Stack], templates: Mapping[str, Template]) -> None:
    changed = [stack for stack in stacks if templates.get(str(stack.uuid), stack.template) != stack.template]
    for stack in changed:
        stack.template = templates[str(stack.uuid)]
    Stack.objects.bulk_update(changed, ["template"], batch_size=BATCH)


def write_dependencies(resources: Sequence[StackResource], templates: Mapping[int, Template | None]) -> None:
    """Write what comes before the resources that stay, by the templates of their stacks."""
    changed = []
    for resource in resources:
        template = templates.get(resource.stack_id)
        wanted = template["resources"].get(resource.name) if template else None
        if wanted and resource.deleted_at is None and resource.depends_on != wanted["depends_on"]:
            resource.depends_on = list(wanted["depends_on"])
            changed.append(resource)
    StackResource.objects.bulk_update(changed, ["depends_on"], batch_size=BATCH)


def mark(resources: Sequence[StackResource]) -> None:
    """Mark each resource of a marked stack, so that resources that are not replaced keep a mark."""
    for resource in resources:
        resource.mark_unhealthy(MARKED)
    StackResource.objects.bulk_update(resources, ["status", "status_reason"], batch_size=BATCH)
