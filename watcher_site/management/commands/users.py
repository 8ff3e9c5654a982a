"""``manage.py users``: list, show, create and change accounts."""

from watcher_site.management.commands import change_user, create_user
from watcher_site.terminal.accounts import AccountListing
from watcher_site.terminal.groups import CommandGroup, ListObjects, ShowObject, delegate
from watcher_site.terminal.resources import Resource


class Command(CommandGroup):
    help = "List, show, create and change accounts."
    resource = Resource(
        "user",
        AccountListing,
        ("username", "enabled", "superuser", "groups", "projects", "last_login"),
        named_by="username",
    )
    subcommands = [
        ListObjects,
        ShowObject,
        delegate("create", create_user.Command),
        delegate("change", change_user.Command),
    ]
