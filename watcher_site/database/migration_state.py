"""Comparison of the migrations of this release with those applied to the database."""

from typing import NamedTuple

import structlog
from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from watcher_site.apps import SiteApp
from watcher_site.refusals import Conflict

log = structlog.get_logger(__name__)


class MigrationState(NamedTuple):
    """The unapplied migrations in their order, and the applied ones that this release does not contain."""

    unapplied: list[str]
    unknown: list[str]


def read_migration_state() -> MigrationState:
    """Compare the migrations of this release with the applied ones, in one query."""
    executor = MigrationExecutor(connection)
    loader = executor.loader
    plan = executor.migration_plan(loader.graph.leaf_nodes())
    labels = {config.label for config in apps.get_app_configs() if isinstance(config, SiteApp)}
    later = sorted(key for key in loader.applied_migrations if key[0] in labels and key not in loader.disk_migrations)
    return MigrationState([str(migration) for migration, _ in plan], [f"{app}.{name}" for app, name in later])


def require_applied_migrations() -> None:
    """Refuse to start on the schema of an earlier release, and log a warning on the schema of a later one.

    The previous release works with the tables of this one, as during an upgrade and after one that was reverted.

    Raises:
        Conflict: migrations are not applied.
    """
    unapplied, unknown = read_migration_state()
    if unapplied:
        further = f" and {len(unapplied) - 1} more" if unapplied[1:] else ""
        raise Conflict(f"Migrations are not applied: {unapplied[0]}{further}. Run the command migrate first.")
    if unknown:
        log.warning("the database has migrations of a later release", migrations=unknown)
