from contextlib import suppress
from functools import partial
from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.exceptions import AmbiguityError
from django.db.migrations.loader import MigrationLoader

from watcher_site.database.migration_locks import LONGEST_WAIT, lock_waits_of, until_locked
from watcher_site.processes.command_line import BAD_INPUT


class Command(migrate.Command):
    """Django's command, which here waits for locks without blocking the processes that use the tables.

    It refuses a migration that a squashed one replaces in this database. To migrate back to it, Django's command would
    unapply the squashed migration as well. Refusals have the exit status 2, as those of other commands.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        try:
            if options["migration_name"]:
                require_no_squash(connection, options["app_label"], options["migration_name"])
            with lock_waits_of(connection, LONGEST_WAIT):
                until_locked()(partial(super().handle, *args, **options))
        except CommandError as problem:
            # Django raises these errors before it changes the database.
            problem.returncode = BAD_INPUT
            raise


def require_no_squash(connection: Any, app: str, name: str) -> None:
    loader = MigrationLoader(connection)
    with suppress(AmbiguityError, KeyError):  # Django's command reports unknown names, and accepts zero.
        key = app, loader.get_migration_by_prefix(app, name).name
        for squash in loader.replacements.values():
            if key in squash.replaces and key not in loader.graph.nodes:
                raise CommandError(f"{app}.{key[1]} is replaced by {app}.{squash.name}: name that migration.")
