"""Builders of stacks on the embedded cloud, and functions that run actions on them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from actions.graph.proposals import ProposedAction
from actions.types.base import ActionContext
from cluster.models import ComputeNode, Flavor, ProjectQuota, Server, Stack, StackResource, StackStatus
from cluster.stacks.changes import nested_template, random_name
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.plans.inline import run_waiting
from watcher_site import plugins

Resource = dict[str, Any]
DONE = {"status": StackStatus.CREATE_COMPLETE, "status_reason": "CREATE completed successfully"}


def server(flavor: str = "small", *, depends_on: list[str] | None = None, **properties: Any) -> Resource:
    known = {"flavor": flavor, "image": None, "metadata": {}, "availability_zone": None}
    return {"type": "server", "properties": {**known, **properties}, "depends_on": depends_on or []}


def group(size: int, member: Resource | None = None, *, batch: int = 1, pause: float = 0) -> Resource:
    member = member or server()
    properties = {
        "size": size,
        "min_size": 0,
        "max_size": -1,
        "member": {"type": member["type"], "properties": member["properties"]},
        "rolling_update": {"max_batch_size": batch, "pause_time": pause},
    }
    return {"type": "scaling_group", "properties": properties, "depends_on": []}


def within(**resources: Resource) -> Resource:
    return {"type": "stack", "properties": {"template": template(**resources)}, "depends_on": []}


def template(**resources: Resource) -> dict[str, Any]:
    return {"version": 1, "description": "", "resources": resources}


def proposed(kind: str, stack: Stack, *, plan_only: bool = False, **inputs: Any) -> ActionPlan:
    """Return a plan with one action on a stack, started unless it is only planned."""
    given = {"resource_id": str(stack.uuid), "resource_name": stack.name, **inputs}
    if not plan_only:
        plan = propose([ProposedAction(kind, given)])
        plan.launch()
        return plan
    context = ActionContext(str(uuid4()))
    planned = plugins.load("ACTION_TYPES")[kind](given, context).plan()
    origin = ProposedAction(kind, given, uuid=UUID(context.action_uuid), data=context.data)
    return propose([origin, *(replace(one, derived_from=one.derived_from or origin.uuid) for one in planned)])


def run(kind: str, stack: Stack, **inputs: Any) -> ActionPlan:
    """Run an action on a stack, and return its plan."""
    plan = proposed(kind, stack, **inputs)
    run_waiting()
    return reload(plan)


def create(name: str = "shop", **resources: Resource) -> Stack:
    """Return a stack of these resources with servers on the first compute node, with the rows of create_stack."""
    stack = Stack(name=name, template=template(**resources), revision=1, project_id="acme", user_id="rosa", **DONE)
    ProjectQuota.objects.get_or_create(project_id=stack.project_id)
    return complete(stack)


def create_by_action(name: str = "shop", **resources: Resource) -> Stack:
    """Return a stack of these resources that create_stack created. There must be capacity for them."""
    stack = Stack.objects.create(name=name, template=template(**resources), project_id="acme", user_id="rosa")
    plan = run("create_stack", stack)
    assert plan.state == "SUCCEEDED", plan.status_message
    return reload(stack)


def complete(stack: Stack) -> Stack:
    """Save a new stack and its resources, at any depth, as after its creation."""
    stack.save()
    # The database decides the order of the keys of the JSON.
    stack = reload(stack)
    made = [
        StackResource(
            stack=stack,
            name=name,
            physical_id=str(uuid4()),
            made_at=timezone.now(),
            **DONE,
            **wanted,
        )
        for name, wanted in stack.template["resources"].items()
    ]
    StackResource.objects.bulk_create(made)
    Server.objects.bulk_create(server_of(each) for each in made if each.type == StackResource.Type.SERVER)
    for each in made:
        if each.type != StackResource.Type.SERVER:
            complete(stack_within(each))
    return stack


def server_of(resource: StackResource) -> Server:
    flavor = Flavor.objects.present().get(name=resource.properties["flavor"])
    return Server(
        uuid=resource.physical_id,
        name=f"{resource.stack.name}-{resource.name}",
        node=ComputeNode.objects.order_by("pk").first(),
        token=f"{resource.uuid}/0",
        flavor=flavor.name,
        vcpus=flavor.vcpus,
        memory=flavor.memory,
        disk=flavor.disk,
        metadata=resource.properties["metadata"],
        image=resource.properties["image"] or "",
        project_id=resource.stack.project_id,
        user_id=resource.stack.user_id,
        launched_at=timezone.now(),
    )


def stack_within(resource: StackResource) -> Stack:
    """Return an unsaved nested stack of a resource."""
    return Stack(
        uuid=resource.physical_id,
        name=f"{resource.stack.name}-{resource.name}-{random_name()}",
        template=nested_template({"type": resource.type, "properties": resource.properties}),
        project_id=resource.stack.project_id,
        user_id=resource.stack.user_id,
        root_id=resource.stack.root_key,
        parent_resource=resource,
        **DONE,
    )


def reload(row: Any) -> Any:
    return type(row).objects.get(pk=row.pk)


def part(stack: Stack, *path: str) -> StackResource:
    """Return a resource by its name, or a nested resource by the names on its path."""
    found = StackResource.objects.present().get(stack=stack, name=path[0])
    return part(inside(found), *path[1:]) if path[1:] else found


def inside(resource: StackResource) -> Stack:
    """Return the nested stack of a resource."""
    found: Stack = Stack.objects.present().get(uuid=resource.physical_id)
    return found


def names(stack: Stack) -> list[str]:
    return list(stack.resources.present().order_by("name").values_list("name", flat=True))


def mark(part: Stack | StackResource) -> None:
    part.mark_unhealthy("it does not answer")
    part.save_state()


def servers() -> Mapping[str, str]:
    """Return the UUIDs of the servers by their names."""
    return {server.name: str(server.uuid) for server in Server.objects.present()}


def statuses(stack: Stack) -> set[str]:
    """Return the statuses of a stack and of its resources and nested stacks at any depth."""
    stacks = Stack.objects.present().tree(stack).values_list("status", flat=True)
    return {*stacks, *StackResource.objects.present().tree(stack).values_list("status", flat=True)}
