"""``manage.py changepassword NAME``: Django's command of this name, recorded in history."""

import getpass
from typing import Any

from django.core.management import CommandParser

from watcher_site.accounts.projects import find_user
from watcher_site.accounts.users import change_password
from watcher_site.processes import commands
from watcher_site.refusals import Invalid


class Command(commands.Command):
    help = "Prompt twice for a new password of an account. Its sessions and tokens end."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name of the user")

    def handle(self, *args: Any, user: str, **options: Any) -> str:
        find_user(user)
        password = self.ask("Password: ")
        if password != self.ask("Password (again): "):
            raise Invalid("password: the two do not match.")
        change_password(user, password, "password")
        return f"Password changed successfully for user '{user}'"

    def ask(self, prompt: str) -> str:
        try:
            return getpass.getpass(prompt)
        except EOFError:
            raise Invalid("password: none was given.") from None
