"""Operations on stacks: each is a plan of one action, which derives actions on resources."""

from contextlib import suppress
from typing import Any

from django.db import transaction

from actions.exclusions.matching import require_none_excluded
from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.operations.signals import signal_action
from actions.types.stacks.resources import settle_abandoned
from cluster.drivers.quotas import demand_of_template, require_creatable, require_quota
from cluster.models import Lock, Stack, StackResource
from cluster.models.stacks import MAX_TIMEOUT
from cluster.stacks.templates.schemas import STACK_NAME, STACK_NAMES
from cluster.stacks.templates.templates import checked_template
from plans import messages
from plans.models import ActionPlan
from plans.operations import marks
from plans.operations.base import (
    AT_ONCE,
    Operation,
    RequestOptions,
    checked_project,
    parameters_of,
    plan_action,
    requested_operations,
    require_no_operation,
    take_trust,
)
from watcher_site.database.locks import lock_present
from watcher_site.database.uniqueness import refuse_taken
from watcher_site.refusals import Conflict, Invalid, NotFound

CREATE, UPDATE, DELETE = "create_stack", "update_stack", "delete_stack"


@transaction.atomic
def create_stack(
    name: str,
    template: Any,
    *,
    project_id: str = "",
    timeout_mins: int | None = None,
    options: RequestOptions = AT_ONCE,
) -> Operation:
    """Create a stack. The action of the returned operation creates its resources.

    Args:
        template: an object, or text in JSON or YAML (`cluster.stacks.templates.templates`).
        timeout_mins: the time limit of an operation in minutes, without its pauses; None: the setting of the site.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another stack of the project has the name, or the cloud cannot create servers in the project.
        QuotaExceeded: the quota of the project does not allow the stack or its servers.
    """
    user = str(options.caller.get("user", "")) if options.caller else ""
    stack = Stack(
        name=checked_name(name),
        template=checked_template(template),
        project_id=checked_project(project_id),
        timeout_mins=checked_stack_timeout(timeout_mins),
        user_id=user,
        trust=options.trust,
    )
    require_creatable(stack.project_id, stack.trust)
    require_quota(stack.project_id, {"stacks": 1, **demand_of_template(stack.template)})
    insert(stack)
    return plan_stack_operation(CREATE, stack, options, stack.timeout_mins)


@transaction.atomic
def update_stack(
    stack: Stack, template: Any = None, *, timeout_mins: int | None = None, options: RequestOptions = AT_ONCE
) -> Operation:
    """Update a stack to a template. Resources that failed or are marked as unhealthy are replaced.

    Args:
        template: a new template, as for `create_stack`; None: the current one.
        timeout_mins: the time limit of this and later operations; None: the current one.

    Raises:
        Invalid: the message names the field and the rule.
        NotFound: the stack was deleted meanwhile.
        Conflict: another operation on it, or on one of its resources, is pending or running; it is a nested stack; or
            the cloud cannot create servers in its project.
        QuotaExceeded: the quota of its project does not allow the servers that the template adds.
    """
    wanted = None if template is None else checked_template(template)
    minutes, current = checked_stack_timeout(timeout_mins), lock_stack_for_operation(UPDATE, stack, options)
    require_creatable(current.project_id, take_trust(current, options))
    allowed = minutes or current.timeout_mins
    if wanted is not None:
        require_quota(current.project_id, demand_of_template(wanted) - demand_of_template(current.template))
    return plan_stack_operation(UPDATE, current, options, allowed, template=wanted, timeout_mins=minutes)


def delete_stack(stack: Stack, *, options: RequestOptions = AT_ONCE) -> Operation:
    """Delete a stack, with all its resources, by an action. Raises: as `update_stack`.

    An operation that only waits for capacity is cancelled before, in a separate transaction, because this locks its
    plan, and plans are not locked after stacks.
    """
    if not options.plan_only:
        require_none_excluded([ProposedAction(DELETE, parameters_of(DELETE, stack, {}))])
        cancel_waiting(stack, str(options.caller.get("user", "")) if options.caller else "")
    with transaction.atomic():
        current = lock_stack_for_operation(DELETE, stack, options)
        return plan_stack_operation(DELETE, current, options, current.timeout_mins)


def cancel_waiting(stack: Stack, by: str) -> None:
    """Cancel the operations on a stack and on its resources that wait for capacity, if no other action runs."""
    ongoing = ActionPlan.objects.present().filter(state=ActionPlan.State.ONGOING)
    waiting = ongoing.exclude(pk__in=ActionPlan.objects.changing_cloud().values("pk"))
    resources = StackResource.objects.present().tree(stack).values_list("uuid", flat=True)
    for action in requested_operations([stack.uuid, *resources]).filter(action_plan__in=waiting).order_by("pk"):
        # The action ended meanwhile; or it continues, and the deletion is refused.
        with suppress(NotFound, Conflict):
            signal_action(action.uuid, Action.Signal.CANCEL, by or "the deletion of its stack")


def plan_stack_operation(
    action_type: str, stack: Stack, options: RequestOptions, minutes: int | None, **inputs: Any
) -> Operation:
    """Write the plan of an operation with a timeout in minutes. See `plan_action`."""
    seconds, verb = minutes and minutes * 60, action_type.removesuffix("_stack")
    return plan_action(action_type, stack, options, seconds_allowed=seconds, event=f"stack.{verb}", **inputs)


def lock_stack_for_operation(action_type: str, stack: Stack, options: RequestOptions) -> Stack:
    """Return the current row of a stack, locked until the transaction ends. Raises: as `update_stack`."""
    current = lock_present(stack)
    if current.root_id is not None:
        root = Stack.objects.get(pk=current.root_id)
        raise Conflict(messages.NESTED_STACK.fill(name=stack.name, root=root.name))
    if options.plan_only:
        # Derived actions that are determined now would be obsolete after the running operation.
        marks.require_unlocked(Lock.objects.filter(stack=current), current)
    else:
        resources = StackResource.objects.present().tree(current)
        parts = resources.values_list("uuid", flat=True)
        require_no_operation(action_type, current, parts, after_cancelled=action_type == DELETE)
    settle_abandoned(current)
    return current


def insert(stack: Stack) -> None:
    """Write a new stack. A constraint of the database decides concurrent requests. Raises: `Conflict`."""
    taken = Conflict(messages.STACK_NAME_TAKEN.fill(name=stack.name))
    with refuse_taken(Stack, "name", taken):
        stack.save()


def checked_name(name: Any) -> str:
    """Return a valid name of a stack. Raises: `Invalid`."""
    if not isinstance(name, str) or not STACK_NAME.fullmatch(name):
        raise Invalid(messages.STACK_NAME_RULE.fill(rule=STACK_NAMES))
    return name


def checked_stack_timeout(minutes: Any) -> int | None:
    """Return a valid time limit in minutes, or None. Raises: `Invalid`."""
    if minutes is None:
        return None
    if isinstance(minutes, bool) or not isinstance(minutes, int) or not 1 <= minutes <= MAX_TIMEOUT:
        raise Invalid(messages.STACK_TIMEOUT.fill(most=MAX_TIMEOUT))
    return minutes
