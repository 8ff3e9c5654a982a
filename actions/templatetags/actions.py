"""Template tags for the names and durations of actions."""

from typing import Any

from django import template
from django.utils import timezone

from actions.console.descriptions import manner
from actions.console.timelines import operations_on
from actions.event_details import generic_message, generic_plan_message, without_error
from actions.models import Action
from actions.models.naming import resource

register = template.Library()
register.filter(resource)
register.filter(manner)


@register.inclusion_tag("actions/_operations.html", takes_context=True)
def server_operations(context: dict[str, Any], server: Any) -> dict[str, Any]:
    """Show the operations on a server, and reasons of failures if the user has the right to see them."""
    request = context["request"]
    return {"request": request, "perms": context["perms"], **operations_on(server, request)}


@register.filter
def message_for(record: Any, sees_details: bool) -> str:
    """Return the message of an action or a plan, without the reason of a failure for users who may not read it."""
    if sees_details:
        return record.status_message or ""
    generic = generic_message if isinstance(record, Action) else generic_plan_message
    return generic(record.state, record.status_message) or ""


@register.filter
def outputs_for(action: Action, sees_details: bool) -> dict[str, Any]:
    return action.outputs if sees_details else without_error(action.outputs)


@register.filter
def execution_time(action: Action) -> str:
    """Return for how long an action was executed, or has been up to now, in seconds; nothing if it never was."""
    if action.start_time is None:
        return ""
    return f"{((action.end_time or timezone.now()) - action.start_time).total_seconds():.1f} s"
