"""``manage.py enable_user NAME``: enable a disabled account."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.accounts.users import set_active
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Enable a disabled account. Its password is accepted again, but its tokens were deleted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name of the user")

    def handle(self, *args: Any, user: str, **options: Any) -> str:
        return f"user {user} is {'now' if set_active(user, True) else 'already'} enabled"
