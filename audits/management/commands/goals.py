"""``manage.py goals``: list and show goals."""

from audits.api.audits import GoalView
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List and show goals."
    resource = Resource("goal", GoalView, ("uuid", "name", "display_name"))
    subcommands = [ListObjects, ShowObject]
