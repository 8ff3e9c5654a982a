"""Operations on clusters and nodes: each is a plan of one action.

A request locks the row of the cluster, and then those of the nodes, until the plan is written, so that a concurrent
request finds its operation. `cluster.models.locks` describes the order of locks on rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

from django.db.models import QuerySet

from actions.exclusions.matching import require_effect, require_none_excluded
from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.operations.signals import signal_action
from actions.types.base import OWN_EXCEPTIONS, ActionContext, ActionType, explain
from cluster.models import Cluster, Node, Profile, Server, Stack, Trust
from plans import messages
from plans.models import ActionPlan
from plans.planning.proposals import propose
from plans.planning.scheduling import explain_waiting
from watcher_site import plugins
from watcher_site.accounts.projects import PROJECT_LENGTH
from watcher_site.database.locks import lock_present
from watcher_site.database.text import require_storable
from watcher_site.history import record
from watcher_site.refusals import Conflict, Invalid, NotFound
from watcher_site.request_context import CallingContext
from watcher_site.validation import find_violation

Target = Cluster | Node | Server | Stack
SHOWN = 3
# History has columns for the target; a template may contain confidential data.
NOT_RECORDED = ("resource_id", "resource_name", "template")


@dataclass(frozen=True)
class RequestOptions:
    """The options of a requested operation: the caller, and whether its plan is only created for review."""

    caller: CallingContext | None = None
    plan_only: bool = False
    may_cancel: bool = False
    """Whether the caller may cancel other operations, if this one is forced."""
    trust: Trust | None = None
    """The trust of the caller, by which servers are created in the project."""

    @property
    def identity(self) -> str:
        """The id of the caller; empty if a command or the site itself requests the operation."""
        return self.caller.identity if self.caller else ""


AT_ONCE = RequestOptions()


@dataclass(frozen=True)
class Operation:
    """The result of a request for an operation: its action, the plan of the action, and the target."""

    action: UUID
    action_plan: UUID
    target: UUID


def lock_for_operation(
    action_type: str,
    target: Any,
    options: RequestOptions,
    *,
    beside: Iterable[Node] = (),
    cancels_others: bool = False,
) -> Any:
    """Return the current row of a cluster or a node, locked until the transaction ends.

    Args:
        beside: nodes outside of the cluster that the operation also concerns.
        cancels_others: whether to cancel other operations, if the user may do so. This one waits for their end.

    Raises:
        NotFound: the target was deleted meanwhile.
        Conflict: another operation on it waits or runs. Plans that were not started are ignored.
    """
    if isinstance(target, Node) and target.cluster_id:
        lock_rows(Cluster, [target.cluster_id])
    current = lock_present(target)
    if isinstance(target, Node) and current.cluster_id != target.cluster_id:
        raise Conflict(messages.MEMBERSHIP_CHANGED.fill(uuid=target.uuid))
    nodes = lock_rows(Node, [node.pk for node in beside])
    if options.plan_only:
        return current
    others = [*related_targets(current), *(node.uuid for node in nodes)]
    if not (cancels_others and options.may_cancel and cancel_others(action_type, current, others, options)):
        require_no_operation(action_type, current, others)
    return current


def lock_rows(model: Any, keys: list[int]) -> list[Any]:
    if not keys:
        return []
    return list(model.objects.present().select_for_update(no_key=True).filter(pk__in=keys).order_by("pk"))


def related_targets(target: Any) -> list[UUID]:
    """Return the other objects that the operation reserves: the members of a cluster, the cluster of a node."""
    found: Any = Cluster.objects.filter(pk=target.cluster_id) if isinstance(target, Node) else target.members()
    return list(found.values_list("uuid", flat=True))


def require_no_operation(
    action_type: str, target: Target, others: Iterable[UUID] = (), *, after_cancelled: bool = False
) -> None:
    """Raise `Conflict`, naming the actions, if a requested operation on one of these is pending or under way.

    Args:
        after_cancelled: whether actions that are being cancelled, which still hold the lock, are ignored.
    """
    found = requested_operations([target.uuid, *others]).order_by("pk")
    if after_cancelled:
        found = found.exclude(state=Action.State.CANCELLING)
    if conflicting := list(found.select_related("action_plan")[:SHOWN]):
        plans = {action.action_plan_id: action.action_plan for action in conflicting}
        raise Conflict(
            messages.CONFLICTING_ACTIONS.fill(
                type=action_type,
                uuid=target.uuid,
                actions=", ".join(str(action.uuid) for action in conflicting),
                remedies=" ".join(describe_remedies(plan) for plan in plans.values()),
            )
        )


def describe_remedies(plan: ActionPlan) -> str:
    """Return a message on how a plan can end, so that another operation on its target is possible."""
    return f"{messages.REMEDY.fill(uuid=plan.uuid)} {explain_waiting(plan)}".rstrip()


def cancel_others(action_type: str, target: Target, others: Iterable[UUID], options: RequestOptions) -> bool:
    """Cancel pending and running operations on a record and on others, and return whether that was possible.

    It is not possible if the same operation is under way: a repeated request must not start it again. The caller
    locks the rows.
    """
    found = list(requested_operations([target.uuid, *others]).order_by("pk"))
    if any(one.action_type == action_type and one.target == str(target.uuid) for one in found):
        return False
    by = str(options.caller["user"]) if options.caller else "the site"
    for one in found:
        # An action that has ended meanwhile needs no signal.
        with suppress(NotFound, Conflict):
            signal_action(one.uuid, Action.Signal.CANCEL, by)
    return True


def requested_operations(targets: Iterable[UUID]) -> QuerySet[Action]:
    """Return the requested operations on these objects that are pending or running."""
    under_way = ActionPlan.objects.present().filter(state__in=[ActionPlan.State.PENDING, *ActionPlan.RUNNING])
    # Derived actions belong to the operation of their origin.
    actions: QuerySet[Action] = Action.objects.unfinished().filter(action_plan__in=under_way, derived_from=None)
    return actions.filter(target__in=[str(uuid) for uuid in targets])


def has_unfinished_operation(cluster: Cluster) -> bool:
    """Return whether an operation on a cluster or on one of its nodes is pending or under way."""
    return requested_operations([cluster.uuid, *related_targets(cluster)]).exists()


def parameters_of(action_type: str, target: Target, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an action on a cluster or a node, without inputs that are None.

    Raises:
        Invalid: the message names the field and the rule.
    """
    given = {name: value for name, value in inputs.items() if value is not None}
    parameters = {"resource_id": str(target.uuid), "resource_name": target.name, **given}
    if violation := find_violation(find_action_type(action_type).validator, parameters):
        raise Invalid(violation)
    return parameters


def find_action_type(action_type: str) -> type[ActionType]:
    found: type[ActionType] | None = plugins.load("ACTION_TYPES").get(action_type)
    if found is None:
        raise Invalid(messages.ACTION_TYPE_NOT_INSTALLED.fill(type=action_type))
    return found


def take_trust(record: Any, options: RequestOptions) -> Trust | None:
    """Return the trust of a locked stack, cluster or node. If it has no valid one, the trust of the caller is stored.

    The members of a cluster have the trust of the cluster.
    """
    current: Trust | None = record.trust
    if options.trust is None or (current is not None and current.failed_at is None):
        return current
    record.trust = options.trust
    record.save(update_fields=["trust"])
    if isinstance(record, Cluster):
        record.members().update(trust=options.trust)
    return options.trust


def plan_node_action(action_type: str, node: Node, options: RequestOptions, **inputs: Any) -> Operation:
    """Write the plan of one action on a node, and start it unless it is for review. Raises: `Invalid`."""
    take_trust(node, options)
    action = ProposedAction(action_type, parameters_of(action_type, node, inputs))
    return write_plan(action, [], node, options)


def plan_cluster_action(action_type: str, cluster: Cluster, options: RequestOptions, **inputs: Any) -> Operation:
    """Write the plan of one action on a cluster. See `plan_action`."""
    take_trust(cluster, options)
    return plan_action(action_type, cluster, options, seconds_allowed=cluster.seconds_allowed, **inputs)


def plan_action(
    action_type: str,
    target: Target,
    options: RequestOptions,
    *,
    seconds_allowed: int | None = None,
    event: str = "",
    **inputs: Any,
) -> Operation:
    """Write the plan of one action that derives others, and start it unless it is for review.

    For a plan for review, the derived actions are determined now and written as well. For a plan that starts, they are
    determined when the action is executed; here it is only checked whether the operation is refused.

    Args:
        seconds_allowed: the timeout of the action, by default that of the site.
        event: the event of history, if it does not follow from the type.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: a policy refuses the operation, its state does not allow it, or the plan starts and exclusions match
            all actions that it would derive.
    """
    parameters = parameters_of(action_type, target, inputs)
    context = ActionContext(str(uuid4()), timeout=seconds_allowed)
    planned = find_action_type(action_type)(parameters, context)
    derived = decide(planned)
    if not options.plan_only and planned.only_derives:
        require_effect(action_type, [one for one in derived if one.derived_from is None])
    action = ProposedAction(action_type, parameters, uuid=UUID(context.action_uuid), timeout=seconds_allowed)
    if not options.plan_only:
        return write_plan(action, [], target, options, event)
    others = [replace(one, derived_from=one.derived_from or action.uuid) for one in derived]
    return write_plan(replace(action, data=context.data), others, target, options, event)


def decide(action: Any) -> list[ProposedAction]:
    try:
        return list(action.plan())
    except OWN_EXCEPTIONS as refusal:
        raise Conflict(explain(refusal)) from refusal


def write_plan(
    action: ProposedAction, others: Sequence[ProposedAction], target: Target, options: RequestOptions, event: str = ""
) -> Operation:
    """Write the plan of an action with other actions, and start it unless it is for review.

    Raises:
        Conflict: the plan starts, and an exclusion matches the action.
    """
    if not options.plan_only:
        require_none_excluded([action])
    made = propose([action, *others])
    kind, _, verb = action.action_type.lower().partition("_")
    inputs = {name: value for name, value in action.input_parameters.items() if name not in NOT_RECORDED}
    record(
        event or f"{kind}.{verb}", target, details={"action_plan": made.uuid, "plan_only": options.plan_only, **inputs}
    )
    if not options.plan_only:
        made.launch(options.caller, needs_approval=False)
    return Operation(action.uuid, made.uuid, target.uuid)


def checked_project(project: Any) -> str:
    """Return a valid id of a project, or an empty text for no project. Raises: `Invalid`."""
    if not isinstance(project, str) or len(project) > PROJECT_LENGTH:
        raise Invalid(messages.PROJECT_RULE.fill(number=PROJECT_LENGTH))
    require_storable("project_id", project)
    return project


def find_profile(identifier: Any, project: str) -> Profile:
    """Return a profile of the project or of no project by its UUID or name.

    Its row is locked, so that it is not deleted until the object that uses it is written. Raises: `Invalid`.
    """
    if not isinstance(identifier, str):
        raise Invalid("profile: must be a text.")
    found = Profile.objects.present().usable_in(project).named(identifier).first()
    if found is not None:
        with suppress(NotFound):
            locked: Profile = lock_present(found)
            return locked
    raise Invalid(messages.NO_PROFILE.fill(name=identifier))
