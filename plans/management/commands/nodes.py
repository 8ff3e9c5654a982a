"""``manage.py nodes``: list, show, mark, check, recover and delete nodes of clusters."""

from plans.api.clusters.nodes import NodeView
from plans.management.marks import ClearMark, SetMark
from plans.management.operations import CheckNode, DeleteNode, RecoverNode
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List, show, mark, check, recover and delete nodes of clusters."
    resource = Resource(
        "node",
        NodeView,
        ("uuid", "name", "status", "role", "cluster_uuid", "index", "physical_id", "unhealthy_reason"),
    )
    subcommands = [ListObjects, ShowObject, SetMark, ClearMark, CheckNode, RecoverNode, DeleteNode]
