import secrets
import socket
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

from watcher_site.commands import Command as BaseCommand
from watcher_site.refusals import Conflict, Invalid

ADMIN = "admin"


def require_free_port(address: str, port: int) -> None:
    """Raise `Conflict` if another process listens there, `Invalid` if nobody could."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OverflowError as problem:
            raise Invalid(f"PORT: must be a number from 1 to 65535, and is {port}.") from problem
        except OSError as problem:
            raise Conflict(f"PORT: {address}:{port} cannot be served: {problem.strerror or problem}.") from problem


def ensure_admin() -> str:
    """Make the administrator's account if it is missing, and return the line that says how to log in."""
    if get_user_model().objects.filter(username=ADMIN).exists():
        return f"user {ADMIN}, with the password it has (to set another: manage.py changepassword {ADMIN})"
    password = settings.ADMIN_PASSWORD or secrets.token_urlsafe(12)
    get_user_model().objects.create_superuser(ADMIN, password=password)
    if settings.ADMIN_PASSWORD:
        return f"user {ADMIN}, with the password in WATCHER_ADMIN_PASSWORD"
    return f"user {ADMIN}, password {password} (shown this once)"


class Command(BaseCommand):
    help = "Make everything ready for the first start; a later start keeps what is there."

    def handle(self, *args: Any, **options: Any) -> None:
        require_free_port(settings.BIND, settings.PORT)
        settings.DATA_DIR.mkdir(mode=0o700, exist_ok=True)
        call_command("migrate", interactive=False, verbosity=0)
        # Rows that were deleted count: a demonstration that someone cleared away does not come back.
        if settings.DEMO and not apps.get_model("cluster", "ComputeNode").objects.exists():
            call_command("load_demonstration", stdout=self.stdout)
        account = ensure_admin()
        address = f"http://{settings.BIND}:{settings.PORT}/"
        lines = [f"Watcher Site   {address}", f"Log in as      {account}", "Stop with      Ctrl-C"]
        rule = "=" * max(map(len, lines))
        self.stdout.write("\n".join(["", rule, *lines, rule, ""]))
