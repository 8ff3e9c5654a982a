"""``manage.py remove_project_member USER PROJECT``: remove a user from a project."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.accounts.projects import remove_member
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Remove a user from a project."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user's login name")
        parser.add_argument("project", help="the project's id in the cloud")

    def handle(self, *args: Any, user: str, project: str, **options: Any) -> str:
        remove_member(user, project)
        return f"user {user} is not a member of project {project} any more"
