"""``manage.py list_exclusions``: what keeps actions from being executed."""

from typing import Any

from actions.exclusions.rules import expiry_in_words, force_in_words, what_in_words
from actions.models.exclusions import Exclusion
from watcher_site.processes import commands
from watcher_site.windows.wall_clock import describe_window


class Command(commands.Command):
    help = "List the exclusions: whether each is in force, what it excludes, in which hours, whose it is, and why."

    def handle(self, *args: Any, **options: Any) -> None:
        for exclusion in Exclusion.objects.present().order_by("name", "pk"):
            self.stdout.write(line(exclusion))


def line(exclusion: Exclusion) -> str:
    hours = describe_window(exclusion.window, exclusion.zone) or "at every hour"
    what, until = what_in_words(exclusion), expiry_in_words(exclusion)
    parts = [exclusion.name, force_in_words(exclusion), what, hours, until, exclusion.owner]
    return "  ".join([*filter(None, parts), exclusion.reason]).rstrip()
