"""Template tags for states, times, identifiers and shares, the history of an object, and links to objects."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import template
from django.apps import apps
from django.urls import reverse
from django.utils import timezone
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.timesince import timesince, timeuntil

from watcher_site.authorization.permissions import may, target_of_page
from watcher_site.history.reading import describe_event
from watcher_site.models import HistoryEntry

# The models that have pages, the likeliest first: each lookup costs a query.
PAGES = {
    "actions.Action": "actions:detail",
    "plans.ActionPlan": "plans:detail",
    "audits.Audit": "audits:detail",
    "cluster.Server": "cluster:server",
    "cluster.ComputeNode": "cluster:node",
    "cluster.Node": "cluster:member",
    "cluster.Cluster": "clusters:detail",
    "cluster.Policy": "cluster:policy",
    "cluster.Profile": "cluster:profile",
}
IDENTIFIER = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
# So many seconds make no difference to people.
JUST_NOW = 10
# What `audits.operations.creation.default_name` puts behind the name of a strategy, a template or a goal.
MADE_UP = re.compile(r"-(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?$")
# The latest history entries that the page of an object shows.
SHOWN = 10

register = template.Library()


@register.filter
def short(identifier: Any) -> str:
    """Return the beginning of a UUID, enough for a person to tell it from its neighbours."""
    return str(identifier)[:8]


@register.filter
def brief(name: str) -> str:
    """Return a name that was made of another and the time without the parts of a second: for lists."""
    return MADE_UP.sub(r" \1 \2", str(name))


@register.filter
def head(label: str) -> str:
    """Return the head of a column with a capital, unless it is written as it is on purpose, such as vCPU."""
    return label if label[1:2].isupper() else capfirst(label)


@register.filter
def humanize_name(name: str) -> str:
    """Return a name of the API as people write: ``released_nodes_ratio`` reads "Released nodes ratio"."""
    return capfirst(name.replace("_", " "))


@register.filter
def state_badge(state: str) -> SafeString:
    return format_html('<span class="state state-{}">{}</span>', state.lower(), state)


@register.filter
def when(moment: datetime | None) -> SafeString | str:
    """Return how long ago a moment was, with the moment itself in UTC for those who point at it."""
    if moment is None:
        return "—"
    return render_time(moment, ago(moment))


def ago(moment: datetime) -> str:
    past = timesince(moment, depth=1)
    if not past.startswith("0"):
        return f"{past} ago"
    seconds = int((timezone.now() - moment).total_seconds())
    return "just now" if seconds < JUST_NOW else f"{seconds} seconds ago"


@register.filter
def until(moment: datetime | None) -> SafeString | str:
    """Return in how long a moment comes; what is due is said to come now."""
    if moment is None:
        return "—"
    left = timeuntil(moment, timezone.now(), depth=1)
    if left.startswith("0"):
        seconds = (moment - timezone.now()).total_seconds()
        return render_time(moment, "in less than a minute" if seconds > 0 else "now")
    return render_time(moment, f"in {left}")


@register.filter
def at_place(moment: datetime, zone: str) -> SafeString:
    """Return a moment as the clocks of a time zone show it, with the same in UTC for those who point at it."""
    try:
        clock = ZoneInfo(zone)
    except ZoneInfoNotFoundError:
        clock = ZoneInfo("UTC")  # This machine does not know the zone; the one that it was given on did.
    return render_time(moment, f"{moment.astimezone(clock):%a %Y-%m-%d %H:%M} {clock}")


def render_time(moment: datetime, text: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), f"{moment:%Y-%m-%d %H:%M:%S} UTC", text
    )


@register.inclusion_tag("_bar.html")
def state_bar(counts: Mapping[str, int], label: str) -> dict[str, Any]:
    """Draw the shares of a whole, by state, in the order of ``counts``; ``label`` is for those who cannot see it."""
    total = sum(counts.values()) or 1
    parts, left = [], 0.0
    for state, count in counts.items():
        width = 1000 * count / total
        parts.append({"state": state.lower(), "x": left, "width": width, "label": f"{count} {state}"})
        left += width
    return {"parts": [part for part in parts if part["width"]], "label": label}


@register.inclusion_tag("_bar.html")
def use_bar(used: float, capacity: float, label: str) -> dict[str, Any]:
    """Draw the used share of a capacity in three colours: below 85 %, nearly full, exceeded."""
    share = used / capacity if capacity else 1.0
    level = "over" if share > 1 else "high" if share > 0.85 else "room"
    return {"parts": [{"state": level, "x": 0, "width": 1000 * min(share, 1), "label": label}], "label": label}


@register.filter
def total(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


@register.filter
def duration(event: Any) -> str:
    """Return how long something with a start and a finish took, in seconds."""
    if event.finish_time is None:
        return "not finished"
    return f"{(event.finish_time - event.start_time).total_seconds():.1f} s"


def linked(text: str) -> SafeString:
    """Return the text with a link for each UUID of something that is there; one that has no page stays as it is."""
    links = find_links({UUID(identifier) for identifier in IDENTIFIER.findall(text)})
    parts: list[Any] = []
    end = 0
    for match in IDENTIFIER.finditer(text):
        parts += [conditional_escape(text[end : match.start()]), links.get(UUID(match[0]), match[0])]
        end = match.end()
    return mark_safe("".join([*parts, conditional_escape(text[end:])]))  # noqa: S308 (each part was escaped)


def shortened(text: str) -> str:
    """Return the text with the beginning of each UUID only: for lists, where links would cost queries."""
    return IDENTIFIER.sub(lambda match: match[0][:8], text)


def find_links(identifiers: set[UUID]) -> dict[UUID, SafeString]:
    links: dict[UUID, SafeString] = {}
    for label, page in PAGES.items():
        wanted = identifiers - links.keys()
        if not wanted:
            break
        found: Iterable[Any] = apps.get_model(label)._default_manager.filter(uuid__in=wanted, deleted_at=None)
        links |= {record.uuid: link(record, page) for record in found}
    return links


def link(record: Any, page: str) -> SafeString:
    name = getattr(record, "called", None) or str(record)
    short = name[:8] if name == str(record.uuid) else name
    return format_html('<a href="{}" title="{}">{}</a>', reverse(page, args=[record.uuid]), record.uuid, short)


register.filter(linked)
register.filter(describe_event)


@register.simple_tag(takes_context=True)
def may_do(context: Any, permission: str, policy: str) -> bool:
    """Return whether the user may do an operation that shares its permission with others, by its own policy."""
    request = context["request"]
    return may(request.user, permission, target_of_page(request), policy)


@register.inclusion_tag("history/_box.html", takes_context=True)
def history_box(context: Any, target: Any, plan: Any = None) -> dict[str, Any]:
    """Show the latest history entries about an object and its parts, to users who may see history.

    Args:
        plan: the plan, if the object is an action; signals to the plan affect it.
    """
    if not may(context["request"].user, "watcher_site.view_historyentry"):
        return {"target": target, "entries": None}
    entries = HistoryEntry.objects
    found = entries.about_action(target.uuid, plan.uuid) if plan else entries.about(target.uuid)
    return {"target": target, "entries": found.order_by("-pk")[:SHOWN]}
