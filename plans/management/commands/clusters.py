"""``manage.py clusters``: list, show, scale, check, recover and delete clusters."""

from plans.api.clusters.clusters import ClusterView
from plans.management.operations import CheckCluster, DeleteCluster, RecoverCluster, Resize, ScaleIn, ScaleOut
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List, show, scale, check, recover and delete clusters."
    resource = Resource(
        "cluster",
        ClusterView,
        ("uuid", "name", "status", "desired_capacity", "min_size", "max_size", "profile_name", "project_id"),
    )
    subcommands = [ListObjects, ShowObject, ScaleOut, ScaleIn, Resize, CheckCluster, RecoverCluster, DeleteCluster]
