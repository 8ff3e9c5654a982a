"""``manage.py servers``: list and show servers."""

from plans.api.servers import ServerView
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List and show servers."
    resource = Resource(
        "server",
        ServerView,
        ("id", "name", "status", "OS-EXT-SRV-ATTR:host", "tenant_id", "image", "unhealthy_reason"),
    )
    subcommands = [ListObjects, ShowObject]
