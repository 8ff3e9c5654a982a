"""``manage.py purge``: remove deleted and old ended objects permanently."""

import gc
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from audits.purging import Purge
from watcher_site.history import record
from watcher_site.processes import commands
from watcher_site.refusals import Invalid
from watcher_site.terminal.groups import add_confirmation, require_confirmation

# A hundred years.
MOST_DAYS = 36525


class Command(commands.Command):
    help = (
        "Remove deleted objects permanently, with everything below them, after showing their number. Plans and audits"
        " that ended, and history, are removed by the ages in the configuration."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "-d", "--age-in-days", type=int, default=0, help="only objects that were deleted at least so many days ago"
        )
        parser.add_argument(
            "-n", "--max-number", type=int, help="the largest number of rows; all rows of a plan or none are removed"
        )
        parser.add_argument("-t", "--goal", help="only this deleted goal and the objects below it: its UUID or name")
        parser.add_argument(
            "-e", "--exclude-orphans", action="store_true", help="keep plans whose audit is no longer in the database"
        )
        parser.add_argument("--dry-run", action="store_true", help="only show the number of rows")
        add_confirmation(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        purge = read_options(**options)
        purge.check()
        counts = purge.count()
        total = sum(counts.values())
        self.show({**counts, "Total": total})
        most = options["max_number"]
        if options["dry_run"] or not total:
            return
        # The question is on standard error.
        self.stdout.flush()
        number = f"all {total}" if most is None or most >= total else f"{most} of these {total}"
        require_confirmation(f"Remove {number} rows permanently?", options["yes"])
        record("database.purge", details={**counts, "at most": most})
        # A full garbage collection would extend the time for which a batch holds its locks.
        gc.freeze()
        self.stdout.write(f"{purge.remove(most)} removed")

    def show(self, counts: dict[str, int]) -> None:
        for name, number in counts.items():
            self.stdout.write(f"{name:<16}{number:>10}")


def read_options(
    *, age_in_days: int, max_number: int | None, goal: str | None, exclude_orphans: bool, **_: Any
) -> Purge:
    """Return the purge for these options. Raises: `Invalid` for an invalid number."""
    if not 0 <= age_in_days <= MOST_DAYS:
        raise Invalid(f"age-in-days: must be from 0 to {MOST_DAYS}, not {age_in_days}.")
    if max_number is not None and max_number < 1:
        raise Invalid(f"max-number: must be at least 1, not {max_number}.")
    return Purge(timezone.now() - timedelta(days=age_in_days), goal=goal, orphans=not exclude_orphans)
