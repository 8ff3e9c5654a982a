"""``manage.py stacks``: list, show and mark stacks."""

from plans.api.stacks import StackView
from plans.management.marks import ClearMark, SetMark
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List, show and mark stacks."
    resource = Resource(
        "stack",
        StackView,
        ("id", "stack_name", "stack_status", "project", "creation_time", "updated_time"),
    )
    subcommands = [ListObjects, ShowObject, SetMark, ClearMark]
