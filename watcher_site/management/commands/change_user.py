"""``manage.py change_user NAME``: change the groups, projects and state of an account."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management import CommandParser
from django.db import transaction

from watcher_site.accounts.projects import add_member, find_user, remove_member
from watcher_site.accounts.users import describe_account, set_active, set_groups
from watcher_site.processes import commands
from watcher_site.refusals import Invalid

CHANGES = ("add_group", "remove_group", "add_project", "remove_project")


class Command(commands.Command):
    help = "Change the groups, projects and state of an account. If one change is refused, none is made."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the name of the user")
        for name in CHANGES:
            verb, _, kind = name.partition("_")
            relation = "to add the user to" if verb == "add" else "to remove the user from"
            parser.add_argument(
                f"--{verb}-{kind}",
                action="append",
                default=[],
                metavar=kind.upper(),
                help=f"a {kind} {relation}; may be repeated",
            )
        state = parser.add_mutually_exclusive_group()
        state.add_argument("--enable", dest="active", action="store_const", const=True, help="accept logins again")
        state.add_argument(
            "--disable", dest="active", action="store_const", const=False, help="refuse logins, and end all tokens"
        )

    @transaction.atomic
    def handle(self, *args: Any, user: str, active: bool | None, **options: Any) -> str:
        if active is None and not any(options[name] for name in CHANGES):
            raise Invalid("user: give at least one change, such as --add-group or --disable.")
        self.change_groups(user, options["add_group"], options["remove_group"])
        for project in options["add_project"]:
            add_member(user, project)
        for project in options["remove_project"]:
            remove_member(user, project)
        if active is not None:
            set_active(user, active)
        return f"user {user}: {', '.join(describe_account(find_user(user)))}"

    def change_groups(self, name: str, added: list[str], removed: list[str]) -> None:
        user: User = find_user(name)
        current = set(user.groups.values_list("name", flat=True))
        if both := set(added) & set(removed):
            raise Invalid(f"group: {min(both)} cannot be added and removed at once.")
        if missing := set(removed) - current:
            raise Invalid(f"group: {name} is not in the group {min(missing)}.")
        set_groups(name, (current | set(added)) - set(removed))
