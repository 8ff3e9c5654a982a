"""Template tag for the history of an object on its page."""

from typing import Any

from django import template

from watcher_site.history.descriptions import describe_event
from watcher_site.models import HistoryEntry

SHOWN = 10

register = template.Library()
register.filter(describe_event)


@register.inclusion_tag("history/_box.html", takes_context=True)
def history_box(context: Any, target: Any, plan: Any = None) -> dict[str, Any]:
    """Show the latest history entries about an object and its parts, to users who may see history.

    Args:
        plan: the plan, if the object is an action; signals to the plan affect it.
    """
    if not context["request"].user.has_perm("watcher_site.view_historyentry"):
        return {"target": target, "entries": None}
    entries = HistoryEntry.objects
    found = entries.about_action(target.uuid, plan.uuid) if plan else entries.about(target.uuid)
    return {"target": target, "entries": found.order_by("-pk")[:SHOWN]}
