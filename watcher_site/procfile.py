"""honcho with the patience that actions need: ``python -m watcher_site.procfile start``.

By itself it kills, after five seconds, what is still finishing its work.
"""

import os

from django.conf import settings
from honcho import command, manager


def run() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "watcher_site.settings")
    manager.KILL_WAIT = settings.STOP_GRACE
    command.main()


if __name__ == "__main__":
    run()
