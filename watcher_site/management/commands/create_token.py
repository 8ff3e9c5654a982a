from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import CommandParser

from watcher_site.accounts.tokens import make_token
from watcher_site.processes.commands import Command as BaseCommand
from watcher_site.refusals import Invalid


class Command(BaseCommand):
    help = "Print a new API token of a user, once: only its digest is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user's name")
        parser.add_argument("--hours", type=float, help="how long it is valid; WATCHER_TOKEN_HOURS by default")
        parser.add_argument("--name", default="", help="the name in lists")
        parser.add_argument("--read-only", action="store_true", help="allow only requests that read")
        parser.add_argument("--group", default="", help="the group of the user to whose rights the token is limited")

    def handle(
        self, *args: Any, user: str, hours: float | None, name: str, read_only: bool, group: str, **options: Any
    ) -> str:
        account = get_user_model().objects.filter(username=user, is_active=True).first()
        if account is None:
            raise Invalid(f"user: there is no active user named {user}.")
        _, token = make_token(account, hours, name=name, read_only=read_only, group=group)
        return token
