import os
import sys
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import transaction
from django.utils.module_loading import import_string

from watcher_site.accounts.users import generate_password, require_valid_password
from watcher_site.history import record
from watcher_site.processes.commands import Command as BaseCommand
from watcher_site.processes.preparation import exclusive_preparation, require_free_port

ADMIN = "admin"
VARIABLE = "WATCHER_ADMIN_PASSWORD"


def command_line(command: str) -> str:
    """Return the command line of a management command, with paths relative to the current folder."""
    python, here = Path(sys.executable), Path.cwd()
    paths = (python, settings.BASE_DIR / "manage.py") if settings.IS_CHECKOUT else (python.with_name("watcher-site"),)
    parts = [os.path.relpath(path, here) if path.is_relative_to(here) else str(path) for path in paths]
    return " ".join([*parts, command])


def ensure_admin() -> list[str]:
    """Create the administrator's account if it is missing, and return the lines of the banner about the login.

    Raises:
        Invalid: the configured password breaks a rule.
    """
    user = get_user_model()
    change = f"new password: {command_line(f'changepassword {ADMIN}')}"
    if user.objects.filter(username=ADMIN).exists():
        ignored = [f"{VARIABLE} is ignored: it is for the first start"] if settings.ADMIN_PASSWORD else []
        return [f"user {ADMIN}, with the password it has", *ignored, change]
    if settings.ADMIN_PASSWORD:
        require_valid_password(settings.ADMIN_PASSWORD, user(username=ADMIN), VARIABLE)
    password = settings.ADMIN_PASSWORD or generate_password()
    with transaction.atomic():
        record("user.create", user.objects.create_superuser(ADMIN, password=password))
    if settings.ADMIN_PASSWORD:
        return [f"user {ADMIN}, with the password in {VARIABLE}", change]
    return [f"user {ADMIN}, password {password} (shown this once)", change]


def banner(account: list[str]) -> str:
    lines = [f"Watcher Site   http://{settings.BIND}:{settings.PORT}/"]
    lines += [f"{title:<15}{line}" for title, line in zip(["Log in as", "", ""], account, strict=False)]
    if settings.DATABASES["default"]["NAME"] != str(settings.DATA_DIR / "watcher.sqlite3"):
        lines.append("Other commands need the same DATABASE_URL")
    lines.append("Stop with      Ctrl-C")
    rule = "=" * max(map(len, lines))
    return "\n".join(["", rule, *lines, rule, ""])


def may_be_filled() -> bool:
    """Return whether the cloud is embedded and no compute node was ever created.

    A demonstration that was deleted is not loaded again.
    """
    is_mirrored = import_string(settings.CLOUD).is_mirrored
    return not (is_mirrored or apps.get_model("cluster", "ComputeNode").objects.exists())


class Command(BaseCommand):
    help = "Prepare the database for the first start. Existing data is kept."

    def handle(self, *args: Any, **options: Any) -> None:
        settings.DATA_DIR.mkdir(mode=0o700, exist_ok=True)
        with exclusive_preparation(self.stdout.write):
            require_free_port(settings.BIND, settings.PORT)
            call_command("migrate", interactive=False, verbosity=0)
            account = ensure_admin()
            if settings.DEMO and may_be_filled():
                call_command("load_demonstration", stdout=self.stdout)
        self.stdout.write(banner(account))
