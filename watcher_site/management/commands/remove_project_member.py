"""``manage.py remove_project_member USER PROJECT``: what belongs to a project is no longer that person's."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.accounts.projects import remove_member
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Have a person be a member of a project no more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name that the person logs in with")
        parser.add_argument("project", help="the project's id, as the cloud has it")

    def handle(self, *args: Any, user: str, project: str, **options: Any) -> str:
        remove_member(user, project)
        return f"user {user} is no member of project {project} any more"
