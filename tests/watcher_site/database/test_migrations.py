"""The operations that new migrations may contain, as processes of the previous release run meanwhile.

Landed migrations are never changed; those before the baseline are exempt. django-migration-linter 6.0 does not replace
these rules: it warns of every index, however small the table, and does not know the operations of the site.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState
from django.db.models.fields import NOT_PROVIDED

from watcher_site.database.migration_operations import (
    AddIndexOnline,
    RemoveIndexOnline,
    RunInBatches,
    find_validity,
)
from watcher_site.models import HistoryEntry

# The newest migration of each app that was made before these rules.
BASELINE = {
    "actions": "0018_column_defaults",
    "audits": "0004_console_indexes",
    "cluster": "0033_projects_of_profiles",
    "plans": "0009_column_defaults",
    "watcher_site": "0010_failed_logins",
}
# Tables so large that reading all rows takes longer than a request may wait.
LARGE = {
    "actions.action",
    "actions.actionevent",
    "actions.actionparent",
    "actions.instanceaction",
    "audits.audit",
    "cluster.sample",
    "cluster.server",
    "cluster.stackresource",
    "cluster.volume",
    "plans.actionplan",
    "watcher_site.delivery",
    "watcher_site.historyentry",
}

# Operations on columns and tables that processes of the previous release may use.
IN_USE = (
    migrations.AlterModelTable,
    migrations.DeleteModel,
    migrations.RemoveField,
    migrations.RenameField,
    migrations.RenameModel,
)


def own_migrations() -> Iterator[migrations.Migration]:
    loader = MigrationLoader(None)
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if name > BASELINE.get(app, "~"):
            yield migration


def faults(migration: migrations.Migration) -> list[str]:
    """Return the rules that a migration breaks."""
    created = {
        operation.name_lower for operation in migration.operations if isinstance(operation, migrations.CreateModel)
    }
    changes = [one for one in migration.operations if getattr(one, "model_name_lower", None) not in created]
    found = [f"{migration}: {one.describe()}: {fault}" for one in changes if (fault := fault_of(one, migration))]
    tables = {one.model_name_lower for one in changes if hasattr(one, "model_name_lower")}
    if len(tables) > 1 and migration.atomic:
        found.append(f"{migration}: one migration for each of {sorted(tables)}: it could deadlock with a request")
    return found


def fault_of(operation: Any, migration: migrations.Migration) -> str:
    is_large = f"{migration.app_label}.{getattr(operation, 'model_name_lower', '')}" in LARGE
    if isinstance(operation, AddIndexOnline | RemoveIndexOnline | RunInBatches):
        return "the migration has to be atomic = False" if migration.atomic else ""
    if isinstance(operation, migrations.RemoveIndex) and is_large:
        return "use RemoveIndexOnline: the table is large"
    if isinstance(operation, migrations.AddIndex) and is_large:
        return "use AddIndexOnline: the table is large"
    if isinstance(operation, migrations.RunPython | migrations.RunSQL):
        return "use RunInBatches"
    if isinstance(operation, migrations.AddField):
        return fault_of_field(operation.field, is_large)
    if isinstance(operation, migrations.AlterUniqueTogether):
        is_large = f"{migration.app_label}.{operation.name_lower}" in LARGE
    if isinstance(operation, migrations.AddConstraint | migrations.AlterUniqueTogether) and is_large:
        return "a constraint locks the large table while it is checked"
    if isinstance(operation, IN_USE):
        return "old processes still use it: remove it a release after the last one that does"
    return ""


def fault_of_field(field: Any, is_large: bool) -> str:
    if not (field.null or field.many_to_many or field.db_default is not NOT_PROVIDED):
        return "a column that is NOT NULL needs a db_default: old processes insert rows without it"
    if is_large and (field.db_index or field.unique):
        return "use db_index=False and AddIndexOnline: the table is large"
    return ""


def test_migrations_are_compatible_with_processes_of_the_previous_release() -> None:
    assert [fault for migration in own_migrations() for fault in faults(migration)] == []


def test_large_tables_exist() -> None:
    assert {f"{model._meta.app_label}.{model._meta.model_name}" for model in apps.get_models()} >= LARGE


def test_each_baseline_exists() -> None:
    assert set(BASELINE.items()) <= set(MigrationLoader(None).disk_migrations)


def migration_of(*operations: Any, atomic: bool = True) -> migrations.Migration:
    made = migrations.Migration("0099_test", "actions")
    made.operations, made.atomic = list(operations), atomic
    return made


INDEX = models.Index("name", name="some_index")


@pytest.mark.parametrize(
    ("operation", "atomic"),
    [
        (migrations.AddIndex("action", INDEX), True),
        (AddIndexOnline("action", INDEX), True),
        (migrations.RemoveIndex("action", "some_index"), True),
        (RemoveIndexOnline("action", "some_index"), True),
        (migrations.AddField("exclusion", "some", models.IntegerField(default=0)), True),
        (migrations.AddField("action", "some", models.IntegerField(null=True, db_index=True)), True),
        (migrations.RunPython(migrations.RunPython.noop), False),
        (RunInBatches("action", list), True),
        (migrations.RemoveField("action", "name"), True),
        (migrations.RenameField("action", "name", "title"), True),
        (migrations.AlterModelTable("action", "actions"), True),
        (migrations.DeleteModel("action"), True),
        (migrations.RenameModel("action", "step"), True),
        (migrations.AlterUniqueTogether("action", {("name", "state")}), True),
    ],
)
def test_operation_incompatible_with_the_previous_release_is_refused(operation: Any, atomic: bool) -> None:
    assert len(faults(migration_of(operation, atomic=atomic))) == 1


def test_migration_that_locks_two_tables_in_one_transaction_is_refused() -> None:
    added = [migrations.AddField(name, "some", models.IntegerField(null=True)) for name in ("exclusion", "actiontype")]
    assert len(faults(migration_of(*added))) == 1


@pytest.mark.parametrize(
    ("operations", "atomic"),
    [
        ([migrations.AddIndex("exclusion", INDEX)], True),
        ([AddIndexOnline("action", INDEX)], False),
        ([migrations.RemoveIndex("exclusion", "some_index")], True),
        ([RemoveIndexOnline("action", "some_index")], False),
        ([migrations.AddField("action", "some", models.IntegerField(default=0, db_default=0))], True),
        ([migrations.AddField("action", "some", models.IntegerField(null=True))], True),
        ([RunInBatches("action", list)], False),
        ([migrations.CreateModel("new", []), migrations.AddField("new", "some", models.IntegerField())], True),
    ],
)
def test_operations_compatible_with_the_previous_release_are_allowed(operations: list[Any], atomic: bool) -> None:
    assert faults(migration_of(*operations, atomic=atomic)) == []


# The operations.


def history_state() -> ProjectState:
    state = ProjectState()
    state.add_model(ModelState.from_model(HistoryEntry))
    return state


def names_of_indexes() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.get_constraints(cursor, HistoryEntry._meta.db_table))


def apply(operation: Any, backwards: bool = False, before: ProjectState | None = None) -> None:
    before = before or history_state()
    after = before.clone()
    operation.state_forwards("watcher_site", after)
    with connection.schema_editor(atomic=False) as editor:
        if backwards:
            operation.database_backwards("watcher_site", editor, after, before)
        else:
            operation.database_forwards("watcher_site", editor, before, after)


@pytest.mark.django_db(transaction=True)
def test_add_index_online_is_idempotent() -> None:
    operation = AddIndexOnline("historyentry", models.Index("id", name="test_online"))
    apply(operation)
    try:
        assert "test_online" in names_of_indexes()
        if connection.vendor == "postgresql":
            apply(operation)
    finally:
        apply(operation, backwards=True)
    assert "test_online" not in names_of_indexes()


@pytest.mark.django_db(transaction=True)
def test_remove_index_online_is_idempotent() -> None:
    addition = AddIndexOnline("historyentry", models.Index("id", name="test_online"))
    operation, with_index = RemoveIndexOnline("historyentry", "test_online"), history_state()
    addition.state_forwards("watcher_site", with_index)
    apply(addition)
    apply(operation, before=with_index)
    assert "test_online" not in names_of_indexes()
    if connection.vendor == "postgresql":
        apply(operation, before=with_index)
    apply(operation, backwards=True, before=with_index)
    assert "test_online" in names_of_indexes()
    apply(addition, backwards=True)


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_interrupted_index_is_built_again() -> None:
    operation = AddIndexOnline("historyentry", models.Index("id", name="test_online"))
    apply(operation)
    try:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'test_online'::regclass")
        apply(operation)
        with connection.schema_editor(atomic=False) as editor:
            assert find_validity(editor, "test_online") is True
    finally:
        apply(operation, backwards=True)


@pytest.mark.django_db
def test_rows_are_updated_in_batches() -> None:
    for number in range(5):
        HistoryEntry.objects.create(deed=f"deed {number}")
    sizes: list[int] = []
    operation = RunInBatches("historyentry", lambda rows: sizes.append(rows.update(deed="changed")), size=2)
    state = history_state()
    operation.app_label = "watcher_site"
    operation.walk(state.apps, None)
    assert sizes == [2, 2, 1]
    assert set(HistoryEntry.objects.values_list("deed", flat=True)) == {"changed"}
