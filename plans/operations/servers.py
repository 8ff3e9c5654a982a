"""Operations on servers: each is a plan of one action, which starts immediately."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from actions.exclusions.matching import require_none_excluded
from actions.graph.proposals import ProposedAction
from actions.server_history import record_request
from cluster.drivers.rules import REBUILDABLE
from cluster.models import Server
from cluster.operations.servers import delete_unplaced, request_server
from plans import messages
from plans.models import ActionPlan
from plans.operations.base import find_action_type, requested_operations, require_no_operation
from plans.planning.proposals import propose
from watcher_site.database.locks import lock_present
from watcher_site.history import record
from watcher_site.refusals import Conflict
from watcher_site.request_context import CallingContext

State = Server.State
DELETE = "delete_server"
HISTORY_EVENTS = {
    "build": "server.create",
    DELETE: "server.delete",
    "rebuild": "server.rebuild",
    "reset_state": "server.reset_state",
}
RESETTABLE = (State.ACTIVE.value, State.ERROR.value)


@transaction.atomic
def create_server(attributes: Mapping[str, Any], project_id: str, caller: CallingContext) -> Server:
    """Create a server from the result of `checked_request`, and start it on a host.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: this site does not create servers in this cloud.
        QuotaExceeded: the project has no quota left.
    """
    server = request_server(attributes, project_id, caller.identity)
    start_server_operation("build", server, caller)
    return server


@transaction.atomic
def delete_server(server: Server, caller: CallingContext) -> None:
    """Delete a server, regardless of other planned operations. A server without a host is deleted immediately.

    A repeated request has no effect while the deletion is pending or running.

    Raises:
        NotFound: the server was deleted meanwhile.
        Conflict: an exclusion matches its deletion.
    """
    action = propose_server_action(DELETE, server)
    require_none_excluded([action])
    if delete_unplaced(server):
        record("server.delete", server)
        record_request(server.uuid, "delete", caller)
    elif not is_to_be_deleted(server):
        start_action(action, server, caller)


def is_to_be_deleted(server: Server) -> bool:
    """Return whether a deletion of the server is requested, other than one that frees capacity for others."""
    deletions = requested_operations([server.uuid]).filter(
        action_type=DELETE, input_parameters__needed_for__isnull=True
    )
    return deletions.exclude(action_plan__state=ActionPlan.State.CANCELLING).exists()


@transaction.atomic
def rebuild_server(server: Server, image: str | None, caller: CallingContext) -> ActionPlan:
    """Rebuild a server, or build it for the first time if no host was found for it.

    Raises:
        NotFound: the server was deleted meanwhile.
        Conflict: another operation on it is requested or in progress, or its state does not allow a rebuild.
    """
    current = lock_present(server)
    if current.task_state:
        refuse_value("rebuild", current, "task_state", current.task_state)
    if current.has_run and current.state not in REBUILDABLE:
        refuse_value("rebuild", current, "vm_state", current.state)
    require_no_operation("rebuild", current)
    parameters = {"image": image} if image else {}
    return start_server_operation("rebuild", current, caller, **parameters)


@transaction.atomic
def reset_server(server: Server, state: str, caller: CallingContext) -> ActionPlan:
    """Set the state of a server to ``active`` or ``error``, even while an operation on it is in progress.

    Raises:
        NotFound: the server was deleted meanwhile.
        Conflict: it has no host, and therefore cannot be active.
    """
    current = lock_present(server)
    if state == State.ACTIVE and current.node_id is None:
        refuse_value("os-resetState", current, "vm_state", current.state)
    return start_server_operation("reset_state", current, caller, state=state)


@transaction.atomic
def give_up_server(server: Server, caller: CallingContext) -> ActionPlan:
    """Set a server that waits for capacity to ERROR, unless it gets a host before.

    Raises:
        NotFound: the server was deleted meanwhile.
        Conflict: it does not wait for capacity.
    """
    current = lock_present(server)
    if current.state != State.PENDING:
        refuse_value("os-resetState", current, "vm_state", current.state)
    return start_server_operation(
        "reset_state", current, caller, state=State.ERROR.value, expected_status=current.state.upper()
    )


def refuse_value(verb: str, server: Server, field: str, value: str) -> None:
    raise Conflict(messages.INSTANCE_IN_VALUE.fill(verb=verb, uuid=server.uuid, field=field, value=value))


@transaction.atomic
def start_server_operation(action_type: str, server: Server, caller: CallingContext, **parameters: Any) -> ActionPlan:
    action = propose_server_action(action_type, server, **parameters)
    require_none_excluded([action])
    return start_action(action, server, caller, **parameters)


def propose_server_action(action_type: str, server: Server, **parameters: Any) -> ProposedAction:
    named = {"resource_id": str(server.uuid), "resource_name": server.name}
    return ProposedAction(action_type, {**named, **parameters})


def start_action(action: ProposedAction, server: Server, caller: CallingContext, **details: Any) -> ActionPlan:
    """Write the plan of one action, and start it. ``details`` are further details for history."""
    made = propose([action])
    record(HISTORY_EVENTS[action.action_type], server, details={"action_plan": made.uuid, **details})
    made.launch(caller, needs_approval=False)
    affected = find_action_type(action.action_type).affected(action.input_parameters)
    if verb := affected.operations.get(str(server.uuid)):
        record_request(server.uuid, verb, caller, made.actions.get())
    return made
