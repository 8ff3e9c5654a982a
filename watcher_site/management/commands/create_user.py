"""``manage.py create_user NAME --group reader``: create an account in a predefined group."""

from typing import Any

from django.conf import settings
from django.core.management import CommandParser

from watcher_site.accounts.users import CLOUD_ADMIN, MEMBER, READER, create_user, generate_password
from watcher_site.processes import commands

VARIABLE = "WATCHER_USER_PASSWORD"


class Command(commands.Command):
    help = "Create an account, with the password in WATCHER_USER_PASSWORD or else a random one that is printed once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the name to log in with")
        parser.add_argument(
            "--group",
            choices=[CLOUD_ADMIN, READER, MEMBER],
            required=True,
            help="the group that determines its rights",
        )
        parser.add_argument(
            "--project", action="append", default=[], help="a project of which it is a member; may be repeated"
        )

    def handle(self, *args: Any, name: str, group: str, project: list[str], **options: Any) -> str:
        password = settings.USER_PASSWORD or generate_password()
        user = create_user(name, password, VARIABLE, group, project)
        credentials = (
            f"the password in {VARIABLE}" if settings.USER_PASSWORD else f"password {password} (shown this once)"
        )
        where = f"group {group}" + "".join(f", project {one}" for one in project)
        return f"user {user.get_username()} in {where}, {credentials}"
