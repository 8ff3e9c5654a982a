"""``manage.py list_exclusions``: print the exclusions."""

from typing import Any

from actions.exclusions.rules import describe_expiry, describe_force, describe_scope
from actions.models.exclusions import Exclusion
from watcher_site.processes import commands
from watcher_site.windows.wall_clock import describe_window


class Command(commands.Command):
    help = "List the exclusions, each with its state, scope, hours, owner and reason."

    def handle(self, *args: Any, **options: Any) -> None:
        for exclusion in Exclusion.objects.present().order_by("name", "pk"):
            self.stdout.write(line(exclusion))


def line(exclusion: Exclusion) -> str:
    hours = describe_window(exclusion.window, exclusion.zone) or "at every hour"
    scope, until = describe_scope(exclusion), describe_expiry(exclusion)
    parts = [exclusion.name, describe_force(exclusion), scope, hours, until, exclusion.owner]
    return "  ".join([*filter(None, parts), exclusion.reason]).rstrip()
