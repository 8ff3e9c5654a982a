"""Migration operations that can run while processes of the previous release use the tables."""

from collections.abc import Callable
from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, transaction
from django.db.models import QuerySet

from watcher_site.database.migration_locks import lock_waits_of, until_locked

BATCH = 1000


class AddIndexOnline(AddIndexConcurrently):
    """Add an index, on PostgreSQL without locking the table against writes.

    Requires ``atomic = False``. The migration can be applied again after an interruption: an existing index is kept,
    unless PostgreSQL left it invalid.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return migrations.AddIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
        is_valid = find_validity(schema_editor, self.index.name)
        if is_valid is False:
            name = schema_editor.quote_name(self.index.name)
            schema_editor.execute(f"DROP INDEX CONCURRENTLY {name}")
        if not is_valid:
            # It waits for all transactions that use the table, and blocks none.
            with lock_waits_of(schema_editor.connection, 0):
                super().database_forwards(app_label, schema_editor, from_state, to_state)
        return None

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return migrations.AddIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)
        return super().database_backwards(app_label, schema_editor, from_state, to_state)


class RemoveIndexOnline(RemoveIndexConcurrently):
    """Remove an index, on PostgreSQL without locking the table. Requires ``atomic = False``.

    The migration can be applied again after an interruption.
    """

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return migrations.RemoveIndex.database_forwards(self, app_label, schema_editor, from_state, to_state)
        if find_validity(schema_editor, self.name) is not None:
            with lock_waits_of(schema_editor.connection, 0):
                super().database_forwards(app_label, schema_editor, from_state, to_state)
        return None

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            return migrations.RemoveIndex.database_backwards(self, app_label, schema_editor, from_state, to_state)
        return super().database_backwards(app_label, schema_editor, from_state, to_state)


def find_validity(schema_editor: Any, index: str) -> bool | None:
    """Return whether an index is valid, or None if it does not exist."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(quote_ident(%s))", [index])
        found = cursor.fetchone()
    return found[0] if found else None


class RunInBatches(migrations.RunPython):
    """Change the rows of a model in batches, each in its own transaction, in the order of their keys.

    Requires ``atomic = False``. If it is interrupted and applied again, it starts with the first batch: the change
    must be idempotent.
    """

    def __init__(self, model: str, change: Callable[[QuerySet[Any]], object], size: int = BATCH) -> None:
        self.model, self.change, self.size = model, change, size
        super().__init__(self.walk, migrations.RunPython.noop, atomic=False, elidable=True)

    def deconstruct(self) -> Any:
        return type(self).__name__, [self.model, self.change, self.size], {}

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        self.app_label = app_label
        super().database_forwards(app_label, schema_editor, from_state, to_state)

    def walk(self, apps: Any, schema_editor: Any) -> None:
        rows, last = apps.get_model(self.app_label, self.model)._base_manager, 0
        while keys := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[: self.size]):
            until_locked()(transaction.atomic(self.change), rows.filter(pk__in=keys))
            last = keys[-1]
