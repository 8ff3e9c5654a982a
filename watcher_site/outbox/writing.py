"""The outbox: notifications are inserted in the statement or transaction of the change.

On PostgreSQL the INSERT is part of the statement that changes a single row; a change of many rows takes an additional
INSERT. Notifications without a receiver are not written. Each process caches the subscriptions: a changed subscription
takes effect at once in the process that changed it, and in others within `SECONDS`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache, lru_cache, partial
from math import inf
from re import Pattern, compile
from time import monotonic
from typing import Any

import orjson
from django.conf import settings
from django.core.signals import setting_changed
from django.db import DEFAULT_DB_ALIAS, connection, transaction
from django.db.models.sql.datastructures import BaseTable
from django.utils import timezone

from watcher_site import plugins
from watcher_site.database.text import make_storable
from watcher_site.database.writes import Part
from watcher_site.models import Notification, Subscription
from watcher_site.models.notifications import NAME_LENGTH
from watcher_site.monitoring.metrics import state_changes
from watcher_site.outbox.kinds import DELETE, ERROR, INFO, WARNING, Event, Kind
from watcher_site.request_context import CallingContext, current_caller, current_request_id
from watcher_site.validation import REQUEST_ID_LENGTH

SECONDS = 1.0
# The maximum number of keys in one statement.
BATCH = 5000
COLUMNS = (
    "uuid, kind, event_type, priority, object_uuid, old_state, snapshot, fault, host, person, request_id,"
    " created_at, is_dispatched"
)
# The priorities that are sent at each level.
LEVELS = {"info": {INFO, WARNING, ERROR}, "warning": {WARNING, ERROR}, "error": {ERROR}, "": set()}


@lru_cache(1000)
def matcher(pattern: str) -> Pattern[str]:
    return compile(translate(pattern))


def matches(patterns: Iterable[str], event_type: str) -> bool:
    """Return whether an event type matches one of the patterns, in which ``*`` matches any characters."""
    return any(matcher(pattern).match(event_type) for pattern in patterns)


def broker_wants(priority: str) -> bool:
    """Return whether notifications of a priority are sent to the message broker."""
    return bool(settings.NOTIFICATION_URL) and priority in LEVELS[settings.NOTIFICATION_LEVEL]


class Listeners:
    """The cached patterns of all subscriptions."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Clear the cache: the next change reads the table."""
        self.read_at, self.patterns = -inf, frozenset[str]()

    def forget_on_commit(self) -> None:
        """Clear the cache now, and again when the transaction commits."""
        self.forget()
        transaction.on_commit(self.forget)

    def read_patterns(self) -> frozenset[str]:
        if monotonic() - self.read_at >= SECONDS:
            found = Subscription.objects.enabled().values_list("event_types", flat=True)
            self.patterns = frozenset(pattern for patterns in found for pattern in patterns)
            self.read_at = monotonic()
        return self.patterns

    @property
    def any(self) -> bool:
        """Return whether any receiver exists."""
        return (bool(settings.NOTIFICATION_URL) and bool(settings.NOTIFICATION_LEVEL)) or bool(self.read_patterns())

    def want(self, event_type: str, priority: str) -> bool:
        return broker_wants(priority) or matches(self.read_patterns(), event_type)


listeners = Listeners()


def forget(**_: object) -> None:
    listeners.forget()


setting_changed.connect(forget)


@cache
def kind_named(name: str) -> Kind:
    kind: Kind = plugins.load("NOTIFICATION_KINDS")[name]()
    return kind


@dataclass(frozen=True)
class Announcement:
    """The same events of several objects of one kind, to be written into the outbox."""

    kind: Kind
    events: Sequence[Event]
    old_state: str | None = None

    def parts(self, *, changed: str | None = None, keys: Sequence[int] = ()) -> list[Part]:
        """Return the common table expressions of the INSERT, and the INSERT as the last part.

        Args:
            changed: the name of a table of the same statement with the changed rows.
            keys: the primary keys of the rows, if ``changed`` is None.
        """
        rows, values = snapshot_of(self.kind.name, changed)
        if not changed:
            rows = f"{rows} IN ({', '.join(['%s'] * len(keys))})"
        is_typed = connection.vendor == "postgresql"
        row = "(%s::integer, %s::text, %s::text, %s::jsonb)" if is_typed else "(%s, %s, %s, %s)"
        event_rows = ", ".join([row] * len(self.events))
        event_values = [
            value
            for place, event in enumerate(self.events)
            for value in (place, f"{self.kind.name}.{event.name}", event.priority, as_json(event.fault))
        ]
        now = connection.ops.adapt_datetimefield_value(timezone.now())
        request_id = make_storable(current_request_id(), REQUEST_ID_LENGTH)
        constants = [self.kind.name, self.old_state, settings.HOST, find_person(), request_id, now]
        return [
            (f"events(place, event_type, priority, fault) AS (VALUES {event_rows})", event_values),
            (f"source(id, object_uuid, snapshot) AS ({rows})", [*values, *keys]),
            (insertion(is_typed), constants),
        ]

    def write(self, keys: Sequence[int]) -> None:
        """Write notifications of the objects with these primary keys, with their state in the open transaction."""
        for start in range(0, len(keys), BATCH):
            (events, event_values), (source, source_values), (insert, insert_values) = self.parts(
                keys=keys[start : start + BATCH]
            )
            with connection.cursor() as cursor:
                cursor.execute(f"WITH {events}, {source} {insert}", [*event_values, *source_values, *insert_values])


def find_person() -> str | None:
    """Return the name of the user who caused the current change, or None for the work of the site itself."""
    caller = current_caller() or CallingContext()
    return make_storable(str(caller.get("user") or ""), NAME_LENGTH) or None


def as_json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


@cache
def snapshot_of(kind: str, changed: str | None = None) -> tuple[str, list[Any]]:
    """Return the SQL and the values of the query of snapshots.

    It selects the rows in the table ``changed``, or else those whose keys are appended to it.
    """
    query: Any = kind_named(kind).rows.all().query
    alias = query.get_initial_alias()
    if changed:
        # The changed rows of the statement replace those of the table, in which the change is not visible yet.
        query.alias_map[alias] = BaseTable(changed, alias)
    sql, params = query.get_compiler(DEFAULT_DB_ALIAS).as_sql()
    if not changed:
        quote = connection.ops.quote_name
        sql = f"{sql} WHERE {quote(alias)}.{quote(query.model._meta.pk.column)}"
    return sql, list(params)


@cache
def insertion(is_typed: bool) -> str:
    """Return the INSERT of notifications. Its placeholders are the kind, old state, host, user, request and time."""
    uuid = "gen_random_uuid()" if is_typed else "lower(hex(randomblob(16)))"
    text, time = ("%s::text", "%s::timestamptz") if is_typed else ("%s", "%s")
    table = connection.ops.quote_name(Notification._meta.db_table)
    return (
        f"INSERT INTO {table} ({COLUMNS})"  # noqa: S608
        f" SELECT {uuid}, {text}, event_type, priority, object_uuid, {text}, snapshot, fault, {text}, {text}, {text},"
        f" {time}, false"
        " FROM source CROSS JOIN events ORDER BY source.id, events.place"
    )


def select_received(kind: Kind, events: Iterable[Event]) -> list[Event]:
    return [event for event in events if listeners.want(f"{kind.name}.{event.name}", event.priority)]


def announcement(kind: str, events: Iterable[Event], old_state: str | None = None) -> Announcement | None:
    """Return the announcement of these events, or None if they have no receiver."""
    if not listeners.any:
        return None
    received = select_received(kind_named(kind), events)
    return Announcement(kind_named(kind), received, old_state) if received else None


def of_change(instance: Any, old_state: str) -> Announcement | None:
    """Return the notification of an instance that is about to be saved, or None if it has no receiver."""
    name = instance.notified_as
    if name is None or not listeners.any:
        return None
    return announcement(name, kind_named(name).events(instance, old_state), old_state)


def announce(kind: str, events: Iterable[Event], keys: Sequence[int], old_state: str | None = None) -> None:
    """Write these events of objects into the outbox if they have receivers.

    To be called in the transaction that changed the objects and locks their rows.
    """
    written = announcement(kind, events, old_state) if keys else None
    if written:
        written.write(keys)


def announce_changes(kind: str, states: Iterable[tuple[int, str]], state: str | None = None) -> None:
    """Write the events of changes of many objects, given the previous state of each by primary key.

    Args:
        state: the new state of all; None if it did not change.
    """
    by_state: dict[str, list[int]] = defaultdict(list)
    for key, before in states:
        by_state[before].append(key)
    for before, keys in by_state.items():
        announce(kind, kind_named(kind).between(before, state or before), keys, before)


class NotifiesUpdates:
    """A mixin of querysets: an update of ``updated_at`` writes a notification for each row that has receivers."""

    def update(self: Any, **columns: Any) -> int:
        number: int = self.update_and_announce(**columns)
        if number and "state" in columns:
            changes = state_changes.labels(self.model._meta.model_name, columns["state"])
            transaction.on_commit(partial(changes.inc, number))
        return number

    def update_and_announce(self: Any, **columns: Any) -> int:
        if "updated_at" not in columns or not listeners.any:
            return super().update(**columns)  # type: ignore[misc]
        with transaction.atomic():
            # Locked, so that the old states and the rows are those that the update changes.
            rows = self.order_by("pk").select_for_update(no_key=True)
            states = list(rows.values_list("pk", "state"))
            keys = [key for key, _ in states]
            chosen = self.model.objects.filter(pk__in=keys)
            number: int = super(NotifiesUpdates, chosen).update(**columns)  # type: ignore[misc]
            announce_changes(self.model.notified_as, states, columns.get("state"))
            if columns.get("deleted_at"):
                announce(self.model.notified_as, [DELETE], keys)
        return number
