"""How templates name an action, and tell how long it took."""

from django import template
from django.utils import timezone

from actions.descriptions import manner
from actions.models import Action
from actions.naming import resource

register = template.Library()
register.filter(resource)
register.filter(manner)


@register.filter
def execution_time(action: Action) -> str:
    """Return for how long an action was executed, or has been up to now, in seconds; nothing if it never was."""
    if action.start_time is None:
        return ""
    return f"{((action.end_time or timezone.now()) - action.start_time).total_seconds():.1f} s"
