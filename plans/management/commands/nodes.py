"""``manage.py nodes``: list and show nodes of clusters."""

from plans.api.clusters.nodes import NodeView
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List and show nodes of clusters."
    resource = Resource(
        "node",
        NodeView,
        ("uuid", "name", "status", "role", "cluster_uuid", "index", "physical_id", "unhealthy_reason"),
    )
    subcommands = [ListObjects, ShowObject]
