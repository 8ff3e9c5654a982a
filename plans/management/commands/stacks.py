"""``manage.py stacks``: list and show stacks."""

from plans.api.stacks import StackView
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List and show stacks."
    resource = Resource(
        "stack",
        StackView,
        ("id", "stack_name", "stack_status", "project", "creation_time", "updated_time"),
    )
    subcommands = [ListObjects, ShowObject]
