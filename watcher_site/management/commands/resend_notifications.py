"""``manage.py resend_notifications``: send again what was given up."""

from typing import Any

from django.db import transaction

from watcher_site import commands
from watcher_site.history import record
from watcher_site.notifications import lines


class Command(commands.Command):
    help = "Have every notification that was given up sent again, and print how many these are."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> str:
        number = lines.resend()
        record("undelivered.resend", details={"number": number})
        return str(number)
