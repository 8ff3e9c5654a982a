"""The outbox: notifications are written by the statement, or in the transaction, that makes the change.

On PostgreSQL the INSERT is part of the statement that changes a single row; a change of many rows takes one INSERT
more.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models.sql.datastructures import BaseTable
from django.utils import timezone

from watcher_site import plugins
from watcher_site.models import Notification
from watcher_site.outbox.kinds import Event, Kind
from watcher_site.outbox.listeners import listeners

# Rows that one statement names by their keys.
BATCH = 5000
COLUMNS = "uuid, kind, event_type, priority, object_uuid, old_state, snapshot, fault, host, created_at, is_dispatched"


@cache
def kind_named(name: str) -> Kind:
    kind: Kind = plugins.load("NOTIFICATION_KINDS")[name]()
    return kind


@dataclass(frozen=True)
class Announcement:
    """Events of objects of one kind, the same of each, to be written into the outbox."""

    kind: Kind
    events: Sequence[Event]
    old_state: str | None = None

    def parts(self, changed: str | None = None, keys: Sequence[int] = ()) -> tuple[list[str], str, list[Any]]:
        """Return the tables that the INSERT reads from, to stand behind a WITH, the INSERT, and the values of both.

        Args:
            changed: what a table is called, in the same statement, that holds the rows as they were just written.
            keys: without it, the primary keys of the rows.
        """
        rows, values = snapshot_of(self.kind.name, changed)
        if not changed:
            rows = f"{rows} IN ({', '.join(['%s'] * len(keys))})"
        is_typed = connection.vendor == "postgresql"
        row = "(%s::integer, %s::text, %s::text, %s::jsonb)" if is_typed else "(%s, %s, %s, %s)"
        source = [
            f"events(place, event_type, priority, fault) AS (VALUES {', '.join([row] * len(self.events))})",
            f"source(id, object_uuid, snapshot) AS ({rows})",
        ]
        events = [
            value
            for place, event in enumerate(self.events)
            for value in (place, f"{self.kind.name}.{event.name}", event.priority, as_json(event.fault))
        ]
        now = connection.ops.adapt_datetimefield_value(timezone.now())
        own = [self.kind.name, self.old_state, settings.HOST, now]
        return source, insertion(is_typed), [*events, *values, *keys, *own]

    def write(self, keys: Sequence[int]) -> None:
        """Write notifications of the objects with these primary keys, as they are in the open transaction."""
        for start in range(0, len(keys), BATCH):
            source, insert, values = self.parts(keys=keys[start : start + BATCH])
            with connection.cursor() as cursor:
                cursor.execute(f"WITH {', '.join(source)} {insert}", values)


def as_json(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


@cache
def snapshot_of(kind: str, changed: str | None = None) -> tuple[str, list[Any]]:
    """Return the text and the values of the query that makes snapshots: of the rows that are ``changed``, or of those
    of the table whose keys are put behind it.
    """
    query: Any = kind_named(kind).rows.all().query
    alias = query.get_initial_alias()
    if changed:
        # The rows of the statement stand in for those of the table, which it does not see changed yet.
        query.alias_map[alias] = BaseTable(changed, alias)
    sql, params = query.get_compiler(DEFAULT_DB_ALIAS).as_sql()
    if not changed:
        quote = connection.ops.quote_name
        sql = f"{sql} WHERE {quote(alias)}.{quote(query.model._meta.pk.column)}"
    return sql, list(params)


@cache
def insertion(is_typed: bool) -> str:
    uuid = "gen_random_uuid()" if is_typed else "lower(hex(randomblob(16)))"
    own = "%s::text, {}, %s::text, {}, %s::text, %s::timestamptz" if is_typed else "%s, {}, %s, {}, %s, %s"
    kind, old_state, host = own.split(", {}, ")
    table = connection.ops.quote_name(Notification._meta.db_table)
    return (
        f"INSERT INTO {table} ({COLUMNS}) SELECT {uuid}, {kind}, event_type, priority, object_uuid, {old_state},"  # noqa: S608
        f" snapshot, fault, {host}, false FROM source CROSS JOIN events ORDER BY source.id, events.place"
    )


def wanted(kind: Kind, events: Iterable[Event]) -> list[Event]:
    return [event for event in events if listeners.want(f"{kind.name}.{event.name}", event.priority)]


def announcement(kind: str, events: Iterable[Event], old_state: str | None = None) -> Announcement | None:
    """Return what is to be written of these events, or None where nobody listens to any."""
    if not listeners.any:
        return None
    listened = wanted(kind_named(kind), events)
    return Announcement(kind_named(kind), listened, old_state) if listened else None


def of_change(instance: Any, old_state: str) -> Announcement | None:
    """Return the notification of an instance that is about to be saved, or None if it has no receiver."""
    name = instance.notified_as
    if name is None or not listeners.any:
        return None
    return announcement(name, kind_named(name).events(instance, old_state), old_state)


def announce(kind: str, events: Iterable[Event], keys: Sequence[int], old_state: str | None = None) -> None:
    """Write these events of objects, as they are now, into the outbox, where somebody listens.

    The caller has a transaction open in which the objects were changed, and holds their rows.
    """
    written = announcement(kind, events, old_state) if keys else None
    if written:
        written.write(keys)


def announce_changes(kind: str, states: Iterable[tuple[int, str]], state: str | None = None) -> None:
    """Write what it is that many objects were changed, given their primary keys and what state each was in before.

    Args:
        state: what all are in now; None, where that did not change.
    """
    by_state: dict[str, list[int]] = defaultdict(list)
    for key, before in states:
        by_state[before].append(key)
    for before, keys in by_state.items():
        announce(kind, kind_named(kind).between(before, state or before), keys, before)
