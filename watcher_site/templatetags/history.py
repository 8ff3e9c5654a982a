"""Template tag for the history of an object on its page."""

from typing import Any

from django import template

from watcher_site.history.descriptions import deed_in_words
from watcher_site.models import HistoryEntry

SHOWN = 10

register = template.Library()
register.filter(deed_in_words)


@register.inclusion_tag("history/_box.html", takes_context=True)
def history_box(context: Any, thing: Any, plan: Any = None) -> dict[str, Any]:
    """Show the latest history entries about an object and its parts, to users who may see history.

    Args:
        plan: the plan, if the object is an action; signals to the plan affect it.
    """
    if not context["request"].user.has_perm("watcher_site.view_historyentry"):
        return {"thing": thing, "entries": None}
    entries = HistoryEntry.objects
    found = entries.about_action(thing.uuid, plan.uuid) if plan else entries.about(thing.uuid)
    return {"thing": thing, "entries": found.order_by("-pk")[:SHOWN]}
