"""``manage.py make_metrics``: create samples of the demonstration's cloud up to now."""

from typing import Any

from audits.demonstration_cloud import make_current
from watcher_site.history import record
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Create samples of metrics for the demonstration's cloud, for the last two hours up to now."

    def handle(self, *args: Any, **options: Any) -> None:
        number = make_current()
        if number:
            record("metrics.make", "demonstration", details={"samples": number})
        self.stdout.write(f"{number} samples")
