from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import CommandParser

from watcher_site.accounts.tokens import make_token
from watcher_site.processes.commands import Command as BaseCommand
from watcher_site.refusals import Invalid

LONGEST = 24 * 365 * 10


class Command(BaseCommand):
    help = "Print a new API token of a user, once: only its digest is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user's name")
        parser.add_argument("--hours", type=float, help="how long it is valid; WATCHER_TOKEN_HOURS by default")

    def handle(self, *args: Any, **options: Any) -> str:
        user = get_user_model().objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise Invalid(f"user: there is no active user named {options['user']}.")
        return self.token(user, options["hours"])

    def token(self, user: Any, hours: float | None) -> str:
        if hours is None:
            return make_token(user)
        if not 0 < hours <= LONGEST:
            raise Invalid(f"hours: must be above 0 and at most {LONGEST} (ten years), and is {hours:g}.")
        return make_token(user, expiry=timedelta(hours=hours))
