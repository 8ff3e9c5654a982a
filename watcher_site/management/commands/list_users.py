"""``manage.py list_users``: print the accounts."""

from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management import CommandParser

from watcher_site.accounts.users import describe_account
from watcher_site.processes import commands
from watcher_site.refusals import NotFound


class Command(commands.Command):
    help = "Print the name, state, groups, projects and last login of each account."
    acts_for_person = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--group", help="the group whose members to print; all accounts unless given")

    def handle(self, *args: Any, group: str | None, **options: Any) -> None:
        users = User.objects.order_by("username").select_related("external_identity")
        if group is not None:
            if not Group.objects.filter(name=group).exists():
                raise NotFound(f"group: there is no group {group}.")
            users = users.filter(groups__name=group)
        for user in users.prefetch_related("groups", "project_memberships"):
            last = f"last login {user.last_login:%Y-%m-%d %H:%M} UTC" if user.last_login else "no login yet"
            identity = getattr(user, "external_identity", None)
            provider = [f"logs in at {identity.issuer}"] if identity else []
            self.stdout.write("  ".join([user.username, *describe_account(user), *provider, last]))
