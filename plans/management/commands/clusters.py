"""``manage.py clusters``: list and show clusters."""

from plans.api.clusters.clusters import ClusterView
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List and show clusters."
    resource = Resource(
        "cluster",
        ClusterView,
        ("uuid", "name", "status", "desired_capacity", "min_size", "max_size", "profile_name", "project_id"),
    )
    subcommands = [ListObjects, ShowObject]
