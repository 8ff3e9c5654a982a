"""What people have done to stacks: each operation is a plan of one action, whose actions on resources do it."""

from typing import Any

from django.db import IntegrityError, transaction

from actions.types.stacks.abandoned import settle_abandoned
from cluster.models import Lock, Stack, StackResource
from cluster.stacks.schemas import STACK_NAME, STACK_NAMES
from cluster.stacks.templates import checked_template
from plans import marking
from plans.operations import AT_ONCE, Asked, Operation, locked, plan_action, require_free
from watcher_site.projects import PROJECT_LENGTH
from watcher_site.refusals import Conflict, Invalid, NotFound
from watcher_site.storable import require_storable

CREATE, UPDATE, DELETE = "create_stack", "update_stack", "delete_stack"


@transaction.atomic
def create_stack(name: str, template: Any, *, project_id: str = "", asked: Asked = AT_ONCE) -> Operation:
    """Make a stack, and have its resources created.

    Args:
        template: an object, or a text in JSON or YAML: see `cluster.stacks.templates`.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another stack of the project has the name.
    """
    user = str(asked.caller.get("user", "")) if asked.caller else ""
    stack = Stack(
        name=checked_name(name),
        template=checked_template(template),
        project_id=checked_project(project_id),
        user_id=user,
    )
    insert(stack)
    return plan_action(CREATE, stack, asked, deed="stack.create")


@transaction.atomic
def update_stack(stack: Stack, template: Any = None, *, asked: Asked = AT_ONCE) -> Operation:
    """Have a stack be as its template says: what was marked unhealthy, or failed, is replaced.

    Args:
        template: another one, as for `create_stack`; None: the one that it has.

    Raises:
        Invalid: the message names the field and the rule.
        NotFound: it was deleted meanwhile.
        Conflict: another operation on it, or on one of its resources, waits or runs; or it is within another stack.
    """
    wanted = None if template is None else checked_template(template)
    return plan_action(UPDATE, hold(UPDATE, stack, asked), asked, deed="stack.update", template=wanted)


@transaction.atomic
def delete_stack(stack: Stack, *, asked: Asked = AT_ONCE) -> Operation:
    """Have a stack deleted, with all that is in it. Raises: as `update_stack`."""
    return plan_action(DELETE, hold(DELETE, stack, asked), asked, deed="stack.delete")


def hold(action_type: str, stack: Stack, asked: Asked) -> Stack:
    """Return a stack as it is now, locked until the transaction ends. Raises: as `update_stack`."""
    standing: Stack | None = next(iter(locked(Stack, [stack.pk])), None)
    if standing is None:
        raise NotFound(f"Stack {stack.uuid} could not be found")
    if standing.root_id is not None:
        root = Stack.objects.get(pk=standing.root_id)
        raise Conflict(f"Stack {stack.name} is within stack {root.name}: that is the one to change or delete.")
    if asked.plan_only:
        # What is decided now of a stack that is being changed would fit it no more when that is done.
        marking.require_free(Lock.objects.filter(stack=standing), standing)
    else:
        resources = StackResource.objects.present().tree(standing)
        require_free(action_type, standing, resources.values_list("uuid", flat=True))
    settle_abandoned(standing)
    return standing


def insert(stack: Stack) -> None:
    """Write a new stack. The database decides whose a name is. Raises: `Conflict`."""
    try:
        with transaction.atomic():
            stack.save()
    except IntegrityError as error:
        raise Conflict(f"name: another stack of the project is called {stack.name}.") from error


def checked_name(name: Any) -> str:
    """Return the name of a stack. Raises: `Invalid`."""
    if not isinstance(name, str) or not STACK_NAME.fullmatch(name):
        raise Invalid(f"name: must have {STACK_NAMES}.")
    return name


def checked_project(project: Any) -> str:
    """Return the id of a project, or that of none. Raises: `Invalid`."""
    if not isinstance(project, str) or len(project) > PROJECT_LENGTH:
        raise Invalid(f"project_id: must be a text of at most {PROJECT_LENGTH} characters.")
    require_storable("project_id", project)
    return project
