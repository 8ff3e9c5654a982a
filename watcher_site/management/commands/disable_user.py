"""``manage.py disable_user NAME``: disable an account."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.accounts.users import set_active
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Disable an account. Its password and sessions are refused from then on, and its tokens are deleted."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name of the user")

    def handle(self, *args: Any, user: str, **options: Any) -> str:
        return f"user {user} is {'now' if set_active(user, False) else 'already'} disabled"
