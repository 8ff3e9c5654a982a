"""``manage.py list_tokens [NAME]``: print the valid tokens of the API."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.accounts.projects import find_user
from watcher_site.accounts.tokens import describe_expiry, describe_last_use, describe_scope, details_of, valid_tokens
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Print the beginning, user, name, scope, last use and expiry of each valid API token."
    acts_for_person = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", nargs="?", help="the name of the user; all users' tokens unless given")

    def handle(self, *args: Any, user: str | None, **options: Any) -> None:
        tokens = valid_tokens()
        if user is not None:
            tokens = tokens.filter(user=find_user(user))
        for token in tokens.order_by("user__username", "created"):
            details = details_of(token)
            columns = [
                token.token_key,
                token.user.get_username(),
                *([details.name] if details.name else []),
                describe_scope(token),
                f"created {token.created:%Y-%m-%d %H:%M} UTC",
                describe_last_use(details.last_used_at),
                describe_expiry(token.expiry),
            ]
            self.stdout.write("  ".join(columns))
