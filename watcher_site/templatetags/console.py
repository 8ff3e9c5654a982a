"""Template tags for states, times, identifiers and shares, the history of an object, and links to objects."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from html import escape, unescape
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import template
from django.apps import apps
from django.template.defaultfilters import floatformat
from django.urls import reverse
from django.utils import timezone
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.formats import number_format
from django.utils.html import conditional_escape, format_html, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext, gettext_noop, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from watcher_site.authorization.permissions import may, target_of_page
from watcher_site.database.counting import MOST_COUNTED
from watcher_site.history.event_labels import describe_event, describe_outcome
from watcher_site.history.reading import value_in_words
from watcher_site.messages import UUIDS, translate_message
from watcher_site.models import HistoryEntry
from watcher_site.templatetags.names import brief, name, short
from watcher_site.windows.durations import describe_duration, in_minutes

# The models with pages, the most frequent first: each lookup costs a query.
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
# A message stored by an earlier release may end within a UUID.
CUT_IDENTIFIER = re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{0,26}…")
# The limit for "just now", in seconds.
JUST_NOW = 10
MINUTE = 60
# The units of past times, and of future times: other languages inflect them.
AGO: dict[str, Any] = {
    "year": ngettext_lazy("%(num)d year ago", "%(num)d years ago", "num"),
    "month": ngettext_lazy("%(num)d month ago", "%(num)d months ago", "num"),
    "week": ngettext_lazy("%(num)d week ago", "%(num)d weeks ago", "num"),
    "day": ngettext_lazy("%(num)d day ago", "%(num)d days ago", "num"),
    "hour": ngettext_lazy("%(num)d hour ago", "%(num)d hours ago", "num"),
    "minute": ngettext_lazy("%(num)d minute ago", "%(num)d minutes ago", "num"),
}
AHEAD: dict[str, Any] = {
    "year": ngettext_lazy("in %(num)d year", "in %(num)d years", "num"),
    "month": ngettext_lazy("in %(num)d month", "in %(num)d months", "num"),
    "week": ngettext_lazy("in %(num)d week", "in %(num)d weeks", "num"),
    "day": ngettext_lazy("in %(num)d day", "in %(num)d days", "num"),
    "hour": ngettext_lazy("in %(num)d hour", "in %(num)d hours", "num"),
    "minute": ngettext_lazy("in %(num)d minute", "in %(num)d minutes", "num"),
}
# The number of latest history entries on the page of an object.
SHOWN = 10

register = template.Library()
register.filter(short)
register.filter(brief)


# The column heads that are derived from the names of fields.
DERIVED_HEADS = (
    *(gettext_noop("Attempts"), gettext_noop("Enabled"), gettext_noop("Groups"), gettext_noop("Health")),
    *(gettext_noop("Hostname"), gettext_noop("Name"), gettext_noop("Outcome"), gettext_noop("Owner")),
    *(gettext_noop("Plan"), gettext_noop("Priority"), gettext_noop("Projects"), gettext_noop("Reason")),
    *(gettext_noop("Resource"), gettext_noop("Role"), gettext_noop("State"), gettext_noop("Status")),
    *(gettext_noop("Tainted"), gettext_noop("Type"), gettext_noop("Zone")),
)


@register.filter
def head(label: str) -> str:
    """Return the head of a column with an initial capital, except for spellings such as vCPU."""
    # Only the evaluated text shows whether it is HTML.
    label = str(label)
    if label[1:2].isupper() or isinstance(label, SafeString):
        return label
    text = capfirst(label)
    return gettext(text) if text in DERIVED_HEADS else text


@register.filter
def humanize_name(name: str) -> str:
    """Return a name of the API as a label: ``released_nodes_ratio`` becomes "Released nodes ratio"."""
    return capfirst(name.replace("_", " "))


@register.filter
def amount(number: float) -> str:
    """Return an amount with at most two decimals: 1,536 or 0.5."""
    return number_format(f"{number:.2f}".rstrip("0").rstrip("."))


@register.filter
def efficacy_value(value: float | None, unit: str | None = "") -> str:
    """Return a value with its unit, or nothing without a value.

    Percentages have two decimals, other values three, and whole numbers none.
    """
    return "" if value is None else f"{floatformat(value, -2 if unit == '%' else -3)} {unit or ''}".strip()


@register.filter
def gigabytes(megabytes: float) -> str:
    """Return an amount of memory in the unit of the capacity of compute nodes."""
    return amount(megabytes / 1024)


@register.filter
def state_badge(state: str) -> SafeString:
    return format_html('<span class="state state-{}">{}</span>', state.lower(), state)


@register.filter
def when(moment: datetime | None) -> SafeString | str:
    """Return how long ago a moment was, with the moment itself on hovering."""
    if moment is None:
        return "—"
    return render_time(moment, ago(moment))


def ago(moment: datetime) -> str:
    seconds = int((timezone.now() - moment).total_seconds())
    if seconds >= MINUTE:
        return keep_number(timesince(moment, time_strings=AGO, depth=1))
    return gettext("just now") if seconds < JUST_NOW else _("%(number)d seconds ago") % {"number": seconds}


@register.filter
def until(moment: datetime | None) -> SafeString | str:
    """Return the time until a moment; past moments are shown as now."""
    if moment is None:
        return "—"
    # The smallest unit is a minute: less than a minute begins with a zero in all languages.
    if timeuntil(moment, timezone.now(), depth=1).startswith("0"):
        seconds = (moment - timezone.now()).total_seconds()
        return render_time(moment, gettext("in less than a minute") if seconds > 0 else gettext("now"))
    left = timeuntil(moment, timezone.now(), time_strings=AHEAD, depth=1)
    return render_time(moment, keep_number(left))


def keep_number(text: str) -> str:
    """Return a text of Django with normal spaces, except between a number and its unit."""
    return re.sub(r"(\d) ", "\\1\xa0", text.replace("\xa0", " "))


@register.filter
def at_place(moment: datetime, name: str) -> SafeString:
    """Return a moment in a time zone, with the moment in the reader's zone on hovering."""
    try:
        zone = ZoneInfo(name)
    except ZoneInfoNotFoundError:
        zone = ZoneInfo("UTC")  # Another machine, on which the zone was validated, has other time zone data.
    local = moment.astimezone(zone)
    return render_time(moment, f"{WEEKDAYS_ABBR[local.weekday()]} {local:%Y-%m-%d %H:%M} {zone}")


@register.filter(expects_localtime=False)
def clock(moment: datetime) -> str:
    """Return a moment in the reader's time zone, with the name of the zone."""
    return f"{timezone.localtime(moment):%Y-%m-%d %H:%M:%S} {timezone.get_current_timezone_name()}"


def render_time(moment: datetime, text: str) -> SafeString:
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), clock(moment), text)


@register.simple_tag
def state_bar(counts: Mapping[str, int], label: str, whole: int = 0) -> SafeString:
    """Draw the shares of a whole, by state, in the order of ``counts``, with ``label`` for screen readers.

    Args:
        whole: the number that fills the bar, by default the sum of the counts. Small shares of it are widened to be
            visible.
    """
    total = whole or sum(counts.values()) or 1
    parts, left = [], 0.0
    for state, count in counts.items():
        width = max(1000 * count / total, 4 if whole and count else 0)
        if width:
            parts.append((state.lower(), left, width, f"{number_format(count)} {state}"))
        left += width
    return draw_bar(parts, label)


@register.simple_tag
def use_bar(used: float, capacity: float, label: str) -> SafeString:
    """Draw the used share of a capacity in three colours: below 85 %, nearly full, exceeded."""
    share = used / capacity if capacity else 1.0
    level = "over" if share > 1 else "high" if share > 0.85 else "room"
    return draw_bar([(level, 0, 1000 * min(share, 1), label)], label)


def draw_bar(parts: Iterable[tuple[str, float, float, str]], label: str) -> SafeString:
    """Return a bar of 1,000 units: each part has a class, a start, a width and a title.

    It does not use a template, because a list has hundreds of bars.
    """
    rectangles = "".join(
        f'<rect class="fill-{escape(name)}" x="{left:.2f}" y="0" width="{width:.2f}" height="10">'
        f"<title>{escape(title)}</title></rect>"
        for name, left, width, title in parts
    )
    opening = '<svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img"'
    return mark_safe(f'{opening} aria-label="{escape(str(label))}">{rectangles}</svg>')  # noqa: S308 (each text was escaped)


@register.filter
def total(counts: Mapping[str, int]) -> int:
    return sum(counts.values())


@register.filter
def counted(number: int) -> str:
    """Return a number of records that were counted up to a limit: 1,234, or 10,000+ above the limit."""
    shown = number_format(min(number, MOST_COUNTED))
    return f"{shown}+" if number > MOST_COUNTED else shown


@register.filter
def counted_in_total(counts: Mapping[str, int]) -> str:
    """Return the sum of such numbers, with a + if one of them is above the limit."""
    number = total({state: min(count, MOST_COUNTED) for state, count in counts.items()})
    is_more = max(counts.values(), default=0) > MOST_COUNTED
    shown = number_format(number)
    return f"{shown}+" if is_more else shown


@register.filter
def duration(event: Any) -> str:
    """Return the duration of an event with a start and a finish."""
    if event.finish_time is None:
        return gettext("not finished")
    return describe_duration(event.finish_time - event.start_time)


@register.filter
def elapsed(record: Any) -> str:
    """Return the duration of a record with a start and an end time, or its duration until now; a dash if unknown."""
    if record.start_time is None or (record.end_time is None and record.state in record.FINAL):
        return "—"
    return describe_duration((record.end_time or timezone.now()) - record.start_time)


register.filter(describe_duration)
register.filter(in_minutes)


def linked(text: str, links: Mapping[UUID, str] | None = None) -> SafeString:
    """Return a text with a link for each UUID of an object with a page.

    A link replaces the name in parentheses after a UUID, too, as in the messages of commands.

    Args:
        links: the links of `links_in`, if a page shows several texts; by default they are looked up. Names without a
            link are isolated, because characters that change the direction would reverse the rest of the sentence.
    """
    links = links_in(text) if links is None else links
    text = CUT_IDENTIFIER.sub("…", text)
    parts: list[Any] = []
    end = 0
    for match in UUIDS.finditer(text):
        shown = links.get(UUID(match[0]), match[0])
        if not isinstance(shown, SafeString) and not match[0].startswith(shown):
            shown = name(shown)
        parts += [conditional_escape(text[end : match.start()]), shown]
        repeated = f" ({unescape(strip_tags(shown))})"
        end = match.end() + (len(repeated) if text.startswith(repeated, match.end()) else 0)
    return mark_safe("".join([*parts, conditional_escape(text[end:])]))  # noqa: S308 (each part was escaped)


@register.simple_tag
def links_in(*values: Any) -> dict[UUID, SafeString]:
    """Return the links to all objects whose UUIDs are in these values, with at most one query per model."""
    return find_links({UUID(identifier) for value in values for identifier in UUIDS.findall(str(value))})


def shortened(text: str) -> str:
    """Return a text with shortened UUIDs, for lists, where links would cost queries."""
    return UUIDS.sub(lambda match: match[0][:8], text)


def find_links(identifiers: set[UUID]) -> dict[UUID, SafeString]:
    links: dict[UUID, SafeString] = {}
    for label, page in PAGES.items():
        missing = identifiers - links.keys()
        if not missing:
            break
        manager = apps.get_model(label)._default_manager
        records = manager.with_names() if hasattr(manager, "with_names") else manager.all()
        found: Iterable[Any] = records.filter(uuid__in=missing, deleted_at=None)
        links |= {record.uuid: link(record, page) for record in found}
    return links


def link(record: Any, page: str) -> SafeString:
    called = getattr(record, "called", None) or str(record)
    text = short(called) if called == str(record.uuid) else name(brief(called))
    if page == "plans:detail" and called != str(record.uuid):  # Several plans may have the same name.
        text = format_html('{} <span class="uuid">{}</span>', text, short(record.uuid))
    return format_html('<a href="{}" title="{}">{}</a>', reverse(page, args=[record.uuid]), record.uuid, text)


register.filter(linked)
register.filter("in_words", value_in_words)
register.filter(translate_message)
register.filter(describe_event)
register.filter(describe_outcome)


@register.simple_tag(takes_context=True)
def may_do(context: Any, permission: str, policy: str) -> bool:
    """Return whether the user may perform an operation that shares its permission with others, by its own policy."""
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
    about = entries.about_action(target.uuid, plan.uuid) if plan else entries.about(target.uuid)
    found: list[Any] = list(about.order_by("-pk")[:SHOWN])
    others = {one.object_uuid for one in found if one.object_uuid} - {target.uuid}
    links = {plan.uuid: link(plan, "plans:detail")} if plan and plan.uuid in others else {}
    links |= find_links(others - links.keys())
    for one in found:
        one.shown = None if one.object_uuid == target.uuid else links.get(one.object_uuid, one.object_name)
    return {"target": target, "entries": found}
