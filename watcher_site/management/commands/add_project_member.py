"""``manage.py add_project_member USER PROJECT``: add a user to a project."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.accounts.projects import add_member
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Add a user to a project, whose servers and stacks the user may then read and change."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user's login name")
        parser.add_argument("project", help="the project's id in the cloud")

    def handle(self, *args: Any, user: str, project: str, **options: Any) -> str:
        is_new = add_member(user, project)
        return f"user {user} is {'now' if is_new else 'already'} a member of project {project}"
