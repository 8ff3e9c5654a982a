"""Squashed migrations create the same tables and rows as the migrations that they replace, from any state of these."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, migrations
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from pytest_django.plugin import DjangoDbBlocker

from tests.command_runs import Run, run
from tests.database import is_sqlite
from tests.migrated_database import empty_database, migrate_without_squashes
from watcher_site.apps import SiteApp

__all__ = ["run"]

Key = tuple[str, str]
# Migrations of an existing site, from which it is upgraded. In the first state, one app is ahead of those that depend
# on it; in the second one, each squashed migration but plans.0001_squashed_0010_times is applied in part.
EXISTING = {
    "one app ahead": [("audits", "0007_request_ids")],
    "parts of all apps": [
        ("actions", "0019_present_state_index"),
        ("audits", "0005_help_texts"),
        ("cluster", "0021_deleted_stacks"),
        ("plans", "0012_preflight_results"),
        ("watcher_site", "0012_history_user_id_index"),
    ],
}
# Columns whose values differ in each database. `RIGHTS` selects those of groups by name.
VARYING = re.compile(r"(^|_)(id|uuid|at)$|^applied$")
RIGHTS = """
    SELECT auth_group.name, content_type.app_label, permission.codename
    FROM auth_group_permissions AS owned JOIN auth_group ON auth_group.id = owned.group_id
    JOIN auth_permission AS permission ON permission.id = owned.permission_id
    JOIN django_content_type AS content_type ON content_type.id = permission.content_type_id
"""
# The tables, columns, constraints, indexes and sequences of PostgreSQL.
CATALOGUE = (
    """
    SELECT concat_ws(' ', a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
        a.attidentity, pg_get_expr(d.adbin, d.adrelid), a.attcollation)
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    """,
    """
    SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    """,
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    """
    SELECT concat_ws(' ', sequencename, data_type, start_value, min_value, max_value, increment_by, cycle, cache_size)
    FROM pg_sequences WHERE schemaname = 'public'
    """,
)


class Contents(NamedTuple):
    """The definitions in a database, and the rows of its tables without the columns that vary."""

    schema: list[str]
    rows: dict[str, list[str]]


def read(statement: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall())


def parts(definition: str) -> Iterator[str]:
    """Yield the columns and constraints of a CREATE TABLE statement, whose order depends on the migrations."""
    part, depth = "", 0
    for character in definition[definition.index("(") + 1 : definition.rindex(")")] + ",":
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += character


def read_schema() -> list[str]:
    if not is_sqlite():
        return sorted(str(line) for statement in CATALOGUE for (line,) in read(statement))
    tables = read("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    lines = [f"{name} {part}" for name, definition in tables for part in parts(str(definition))]
    # Indexes that SQLite creates for constraints have no statement.
    lines += [str(line) for (line,) in read("SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")]
    return sorted(lines)


def read_rows() -> dict[str, list[str]]:
    found = {"rights of groups": sorted(map(repr, read(RIGHTS)))}
    for table in connection.introspection.table_names():
        with connection.cursor() as cursor:
            columns = [one.name for one in connection.introspection.get_table_description(cursor, table)]
            fixed = [connection.ops.quote_name(column) for column in columns if not VARYING.search(column)]
            cursor.execute(f"SELECT {', '.join(fixed) or '1'} FROM {table}")  # noqa: S608
            found[table] = sorted(map(repr, cursor.fetchall()))
    return found


def migrate(folder: Path, *existing: Key) -> Contents:
    """Migrate an empty database with the command, after migrations of an earlier release."""
    with empty_database(folder):
        migrate_without_squashes(*existing)
        call_command("migrate", verbosity=0)
        return Contents(read_schema(), read_rows())


@pytest.fixture(scope="module")
def new_site(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Contents:
    with django_db_blocker.unblock():
        return migrate(tmp_path_factory.mktemp("new"))


@pytest.fixture(scope="module", params=EXISTING)
def upgraded_site(
    request: pytest.FixtureRequest,
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Contents:
    with django_db_blocker.unblock():
        return migrate(tmp_path_factory.mktemp("upgraded"), *EXISTING[request.param])


def own_migrations(loader: MigrationLoader) -> dict[Key, migrations.Migration]:
    labels = {config.label for config in apps.get_app_configs() if isinstance(config, SiteApp)}
    return {key: migration for key, migration in loader.disk_migrations.items() if key[0] in labels}


def own_squashes() -> list[migrations.Migration]:
    return [one for one in own_migrations(MigrationLoader(None)).values() if one.replaces]


def replaced_history(backwards: bool) -> list[Key]:
    """Return the migrations without the squashed ones, in one of the orders in which they can be applied."""
    loader = MigrationLoader(None, replace_migrations=False)
    own = own_migrations(loader)
    nodes = [node for key in sorted(own, reverse=backwards) for node in loader.graph.forwards_plan(key) if node in own]
    return list(dict.fromkeys(step for node in nodes for step in own[node].replaces or [node]))


# The database.


@pytest.mark.slow
def test_tables_of_an_upgraded_site_equal_those_of_a_new_one(new_site: Contents, upgraded_site: Contents) -> None:
    assert upgraded_site.schema == new_site.schema


@pytest.mark.slow
def test_rows_of_an_upgraded_site_equal_those_of_a_new_one(new_site: Contents, upgraded_site: Contents) -> None:
    assert upgraded_site.rows == new_site.rows


@pytest.mark.slow
def test_new_site_records_squashed_and_replaced_migrations(new_site: Contents) -> None:
    # Processes of an earlier release find their migrations.
    assert new_site.rows["django_migrations"] == sorted(map(repr, MigrationLoader(None).disk_migrations))


# The graph.


@pytest.mark.any_database
@pytest.mark.django_db
@pytest.mark.parametrize("backwards", [False, True])
def test_each_migration_is_applied_once_from_each_state_of_two_orders(backwards: bool) -> None:
    recorder, history, wrong = MigrationRecorder(connection), replaced_history(backwards), []
    for key in own_migrations(MigrationLoader(None)):
        recorder.record_unapplied(*key)
    for number in range(len(history) + 1):
        executor = MigrationExecutor(connection)
        executor.loader.check_consistent_history(connection)
        applied = history[:number]
        for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes()):
            applied += migration.replaces or [(migration.app_label, migration.name)]
        wrong += [] if sorted(applied) == sorted(history) else [(number, applied)]
        recorder.record_applied(*history[min(number, len(history) - 1)])
    assert wrong == []


@pytest.mark.any_database
def test_each_migration_is_replaced_once() -> None:
    replaced = [key for squash in own_squashes() for key in squash.replaces]
    assert sorted(set(replaced)) == sorted(replaced)


# Targets of the command.


@pytest.mark.django_db
def test_migrating_to_a_replaced_migration_is_refused() -> None:
    with pytest.raises(CommandError, match=r"^actions\.0012_\w+ is replaced by actions\.0001_squashed_"):
        call_command("migrate", "actions", "0012", verbosity=0)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (["actions", "0012"], "is replaced by"),
        (["plans", "0001"], "More than one migration matches"),
        (["plans", "0999"], "Cannot find a migration"),
        (["nope"], "No installed app"),
        (["nope", "0001"], "No installed app"),
    ],
)
def test_wrong_target_is_one_line_with_status_2(run: Run, target: list[str], reason: str) -> None:
    ended = run("migrate", *target)
    assert (ended.status, ended.errors.count("\n"), reason in ended.errors) == (2, 1, True)


@pytest.mark.django_db
def test_migrating_back_to_a_squashed_migration_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("migrate", "plans", "0001_squashed_0010_times", plan=True)
    planned = re.findall(r"^plans\.(\w+)", capsys.readouterr().out, re.MULTILINE)
    assert planned == ["0012_squashed_0014_help_texts", "0011_times_of_earlier_plans"]
