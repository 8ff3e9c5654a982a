"""``manage.py strategies``: list and show strategies."""

from audits.api.audits import StrategyView
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List and show strategies."
    resource = Resource("strategy", StrategyView, ("uuid", "name", "display_name", "goal_name"))
    subcommands = [ListObjects, ShowObject]
