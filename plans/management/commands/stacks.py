"""``manage.py stacks``: list, show, mark and delete stacks."""

from plans.api.stacks import StackView
from plans.management.marks import ClearMark, SetMark
from plans.management.operations import DeleteStack
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List, show, mark and delete stacks."
    resource = Resource(
        "stack",
        StackView,
        ("id", "stack_name", "stack_status", "project", "creation_time", "updated_time"),
    )
    subcommands = [ListObjects, ShowObject, SetMark, ClearMark, DeleteStack]
