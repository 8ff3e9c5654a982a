"""Records of changes that database triggers write, independently of the code under test.

A trigger records each change of a server's node, state or flavor, of a node's compute service, of a volume's pool, and
of an action's or a plan's state. The number of records shows whether a change was made twice.
"""

from collections import Counter
from uuid import UUID

from django.db import connection

# For each table, the column that identifies its rows, and the columns whose changes are recorded.
RECORDED = {
    "cluster_server": ("uuid", ("node_id", "state", "flavor")),
    "cluster_computenode": ("uuid", ("status",)),
    "cluster_volume": ("uuid", ("pool_id",)),
    "actions_action": ("uuid", ("state",)),
    "plans_actionplan": ("uuid", ("state",)),
}
CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS chaos_change (
    id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(),
    row_uuid uuid NOT NULL, column_name text NOT NULL, old text, new text
)
"""
CREATE_TRIGGER = """
CREATE OR REPLACE FUNCTION chaos_record_{table}_{column}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos_change (row_uuid, column_name, old, new)
    VALUES (NEW.{key}, '{table}.{column}', OLD.{column}::text, NEW.{column}::text);
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER chaos_{table}_{column} AFTER UPDATE OF {column} ON {table} FOR EACH ROW
WHEN (OLD.{column} IS DISTINCT FROM NEW.{column}) EXECUTE FUNCTION chaos_record_{table}_{column}()
"""


def create_triggers() -> None:
    """Create the table of records and the triggers that write to it."""
    with connection.cursor() as cursor:
        cursor.execute(CREATE_TABLE)
        for table, (key, columns) in RECORDED.items():
            for column in columns:
                cursor.execute(CREATE_TRIGGER.format(table=table, key=key, column=column))


def drop_triggers() -> None:
    """Drop the triggers and the table of records."""
    with connection.cursor() as cursor:
        for table, (_, columns) in RECORDED.items():
            for column in columns:
                cursor.execute(f"DROP FUNCTION IF EXISTS chaos_record_{table}_{column} CASCADE")
        cursor.execute("DROP TABLE IF EXISTS chaos_change")


def count_changes_to_values(column: str) -> Counter[tuple[UUID, str | None]]:
    """Return how often each row changed to each value of a column, such as ``cluster_server.node_id``."""
    with connection.cursor() as cursor:
        query = "SELECT row_uuid, new, count(*) FROM chaos_change WHERE column_name = %s GROUP BY row_uuid, new"
        cursor.execute(query, [column])
        return Counter({(row, value): number for row, value, number in cursor.fetchall()})


def count_changes(column: str) -> Counter[UUID]:
    """Return how often a column of each row changed."""
    changes: Counter[UUID] = Counter()
    for (row, _), number in count_changes_to_values(column).items():
        changes[row] += number
    return changes
