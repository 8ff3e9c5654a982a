"""``manage.py add_project_member USER PROJECT``: let a person see and handle what belongs to a project."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.accounts.projects import add_member
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Make a person a member of a project: its servers and stacks are theirs to see and to handle."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name that the person logs in with")
        parser.add_argument("project", help="the project's id, as the cloud has it")

    def handle(self, *args: Any, user: str, project: str, **options: Any) -> str:
        is_new = add_member(user, project)
        return f"user {user} is {'now' if is_new else 'already'} a member of project {project}"
