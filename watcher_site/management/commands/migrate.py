from functools import partial
from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from watcher_site.database.migration_locks import LONGEST_WAIT, lock_waits_of, until_locked


class Command(migrate.Command):
    """Django's command, which here waits for locks without blocking the processes that use the tables."""

    def handle(self, *args: Any, **options: Any) -> None:
        with lock_waits_of(connections[options["database"]], LONGEST_WAIT):
            until_locked()(partial(super().handle, *args, **options))
