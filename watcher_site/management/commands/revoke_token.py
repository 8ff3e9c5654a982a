"""``manage.py revoke_token KEY``, or ``--user NAME``: end tokens of the API before they expire."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.accounts.projects import find_user
from watcher_site.accounts.tokens import ALL_REVOKED, end_tokens, revoke_token
from watcher_site.processes import commands
from watcher_site.refusals import Invalid


class Command(commands.Command):
    help = "Revoke one API token, or all tokens of a user. Requests with a revoked token are refused."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("key", nargs="?", help="the first characters of the token, as list_tokens prints them")
        parser.add_argument("--user", help="the name of the user whose tokens are all revoked")

    def handle(self, *args: Any, key: str | None, user: str | None, **options: Any) -> str:
        if (key is None) == (user is None):
            raise Invalid("key: give either how one token begins, or --user for all tokens of a user.")
        if user is not None:
            number = end_tokens(find_user(user), ALL_REVOKED.text)
            return f"{number} token{'' if number == 1 else 's'} of {user} revoked"
        token = revoke_token(str(key))
        return f"token {token.token_key} of {token.user.get_username()} revoked"
