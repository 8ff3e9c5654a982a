"""``manage.py tokens``: list, create and revoke tokens of the API."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.api.resources.tokens import TokenView
from watcher_site.management.commands import create_token, revoke_token
from watcher_site.terminal.groups import CommandGroup, ListObjects, add_confirmation, delegate, require_confirmation
from watcher_site.terminal.resources import Filter, Resource


class Revoke(delegate("revoke", revoke_token.Command)):  # type: ignore[misc]
    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        add_confirmation(parser)

    def handle(self, **options: Any) -> str | None:
        user, key = options["user"], options["key"]
        if (user is None) != (key is None):
            require_confirmation(f"Revoke {f'all tokens of {user}' if user else f'the token {key}'}?", options["yes"])
        printed: str | None = super().handle(**options)
        return printed


class Command(CommandGroup):
    help = "List, create and revoke tokens of the API."
    resource = Resource(
        "token",
        TokenView,
        ("id", "user", "name", "read_only", "group", "created_at", "expires_at", "last_used_at"),
        filters={"user": Filter("--user", "only tokens of this account")},
        named_by=None,
    )
    subcommands = [ListObjects, delegate("create", create_token.Command), Revoke]
