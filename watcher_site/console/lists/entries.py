"""Lookups of history entries by texts of the history list: events, objects and request IDs.

History is large: each condition here is served by an index.
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import Q

from watcher_site.console.lists.filters import SHORTEST_BEGINNING, Match, bounds_of
from watcher_site.database.records import parse_uuid
from watcher_site.history.event_labels import describe_event, find_events, find_kinds
from watcher_site.models import HistoryEntry
from watcher_site.templatetags.names import stored_beginning

# Sorts after all characters with which request IDs and times in names continue, in each collation.
LAST = "zzzz"


def beginning_condition(column: str, text: str) -> Q:
    """Return the condition of texts with this prefix that continue with digits, hyphens, full stops or letters to f.

    An index serves the bounds. In most collations it cannot serve a comparison of prefixes.
    """
    return Q(**{f"{column}__gte": text, f"{column}__lte": f"{text}{LAST}", f"{column}__startswith": text})


def first_and_last_values(column: str, condition: Q) -> set[Any]:
    """Return the first and the last value of a column in entries, in two queries. They differ if there are several."""
    rows = HistoryEntry.objects.filter(condition).values_list(column, flat=True)
    return {value for order in (column, f"-{column}") for value in rows.order_by(order)[:1]}


def object_condition(text: str) -> Q:
    """Return the condition of entries about an object: by a prefix of its UUID, or by its name at that time."""
    bounds = bounds_of(text)
    return Q(object_uuid__range=bounds) | Q(within__range=bounds) if bounds else object_name_condition(text)


def object_name_condition(text: str) -> Q:
    stored = stored_beginning(text)
    return Q(object_name=text) if stored == text else beginning_condition("object_name", stored)


def request_condition(text: str) -> Q:
    """Return the condition of the entries of a request, by its ID or the prefix that the list shows."""
    text = text.strip().removesuffix("…")
    exact = Q(request_id=text)
    return exact | beginning_condition("request_id", text) if len(text) >= SHORTEST_BEGINNING else exact


def match_kinds(text: str) -> Iterator[Match]:
    """Yield the events with a name, label or verb, such as "Start action plan" or "Start", and the type of objects.

    A text may name an event that has no label. It does not show where the verb ends: each division may be an event.
    """
    words = text.lower().replace("_", " ").split()
    events = [f"{'_'.join(words[end:])}.{'_'.join(words[:end])}" for end in range(1, len(words))]
    label = " ".join(text.split())
    named = Q(deed__in=[text.strip().lower(), *events, *find_events(label)])
    for event in sorted(first_and_last_values("deed", named)):
        yield Match(describe_event(event), "", ("deed", event))
    for kind in first_and_last_values("object_type", Q(object_type__in=["_".join(words), *find_kinds(label)])):
        yield Match(kind, "", ("object_type", kind))


def match_objects(text: str) -> Iterator[Match]:
    """Yield the objects with a UUID, a prefix of one, or a name at the time of the event."""
    text = text.strip()
    if parse_uuid(text):
        yield Match("", text, ("object_uuid", text))
        return
    if bounds := bounds_of(text):
        for column in ("object_uuid", "within"):
            for uuid in first_and_last_values(column, Q(**{f"{column}__range": bounds})):
                yield Match("", uuid, ("object_uuid", str(uuid)))
    for name in first_and_last_values("object_name", object_name_condition(text)):
        yield Match(name, "", ("object_name", name))


def match_requests(text: str) -> Iterator[Match]:
    """Yield the request IDs with a text as value or prefix."""
    for request_id in first_and_last_values("request_id", request_condition(text)):
        yield Match(request_id, "", ("request_id", request_id))
