"""``manage.py servers``: list, show, mark, rebuild and delete servers."""

from plans.api.servers import ServerView
from plans.management.marks import ClearMark, SetMark
from plans.management.operations import DeleteServer, RebuildServer
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List, show, mark, rebuild and delete servers."
    resource = Resource(
        "server",
        ServerView,
        ("id", "name", "status", "OS-EXT-SRV-ATTR:host", "tenant_id", "image", "unhealthy_reason"),
    )
    subcommands = [ListObjects, ShowObject, SetMark, ClearMark, RebuildServer, DeleteServer]
