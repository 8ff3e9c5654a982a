"""Records of operations on servers, by actions and people: each operation once, whichever of them writes it first."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from actions.models import Action
from actions.models.callers import find_caller
from actions.models.instance_actions import InstanceAction, request_id_of
from watcher_site.request_context import CallingContext


def operation_of(
    action: Action, began: datetime | None, server: str, verb: str, request_id: str | None = None
) -> InstanceAction:
    """Return the record, not yet written, of what an action does to a server; for whom, its plan knows.

    Args:
        began: when the first of its events did: what is done begins with the look at whether it can be.
    """
    known, start = request_id or request_id_of(action.uuid), began or timezone.now()
    return InstanceAction(server_uuid=UUID(server), action=action, verb=verb, request_id=known, start_time=start)


def new_operation(action: Action, began: datetime | None, server: str, verb: str) -> Sequence[InstanceAction]:
    """Return a new record, whose request id is that of the person who requested this action and nothing else."""
    return [operation_of(action, began, server, verb, own_request(action))]


def own_request(action: Action) -> str | None:
    """Return the request in which a person requested this single action, with one query or two."""
    if action.derived_from_id is not None:
        return None
    others = Action.objects.filter(action_plan=action.action_plan_id, derived_from=None).exclude(pk=action.pk)
    return None if others.exists() else find_caller(action).get("request_id")


def record_request(server: UUID, verb: str, caller: CallingContext, action: Action | None = None) -> None:
    """Write down that somebody asks for an operation on a server, and the action that will do it, if it takes one."""
    request_id = caller.get("request_id")
    if action is None and request_id is None:
        return
    InstanceAction.objects.bulk_create(
        [
            InstanceAction(
                server_uuid=server,
                action=action,
                verb=verb,
                request_id=request_id or request_id_of(action.uuid),  # type: ignore[union-attr]
                user_id=caller.get("user"),
                project_id=caller.get("project"),
            )
        ],
        ignore_conflicts=True,
    )
