"""The actual changes, recorded by triggers of the database, independently of the code under test.

A trigger records each change of a server's node, state or flavor, of a node's compute service, of a volume's pool, and
of an action's or a plan's state. Their number tells an effect that happened twice from one that happened once.
"""

from collections import Counter
from uuid import UUID

from django.db import connection

# For each table, what identifies its rows, and the columns whose changes count.
WATCHED = {
    "cluster_server": ("uuid", ("node_id", "state", "flavor")),
    "cluster_computenode": ("uuid", ("status",)),
    "cluster_volume": ("uuid", ("pool_id",)),
    "actions_action": ("uuid", ("state",)),
    "plans_actionplan": ("uuid", ("state",)),
}
NOTES = """
CREATE TABLE IF NOT EXISTS chaos_effect (
    id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(),
    row_uuid uuid NOT NULL, column_name text NOT NULL, old text, new text
)
"""
WATCH = """
CREATE OR REPLACE FUNCTION chaos_note_{table}_{column}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos_effect (row_uuid, column_name, old, new)
    VALUES (NEW.{key}, '{table}.{column}', OLD.{column}::text, NEW.{column}::text);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER chaos_{table}_{column} AFTER UPDATE OF {column} ON {table} FOR EACH ROW
WHEN (OLD.{column} IS DISTINCT FROM NEW.{column}) EXECUTE FUNCTION chaos_note_{table}_{column}()
"""


def watch() -> None:
    """Create the triggers that record changes from now on."""
    with connection.cursor() as cursor:
        cursor.execute(NOTES)
        for table, (key, columns) in WATCHED.items():
            for column in columns:
                cursor.execute(WATCH.format(table=table, key=key, column=column))


def forget() -> None:
    """Remove the notes and what writes them."""
    with connection.cursor() as cursor:
        for table, (_, columns) in WATCHED.items():
            for column in columns:
                cursor.execute(f"DROP FUNCTION IF EXISTS chaos_note_{table}_{column} CASCADE")
        cursor.execute("DROP TABLE IF EXISTS chaos_effect")


def effects(column: str) -> Counter[tuple[UUID, str | None]]:
    """Return how often each row came to each value of a column, such as ``cluster_server.node_id``."""
    with connection.cursor() as cursor:
        query = "SELECT row_uuid, new, count(*) FROM chaos_effect WHERE column_name = %s GROUP BY row_uuid, new"
        cursor.execute(query, [column])
        return Counter({(row, value): number for row, value, number in cursor.fetchall()})


def changes(column: str) -> Counter[UUID]:
    """Return how often each row's column changed at all."""
    number: Counter[UUID] = Counter()
    for (row, _), times in effects(column).items():
        number[row] += times
    return number
