"""``manage.py listen_notifications``: update the tables from the notifications of Nova and Cinder."""

from typing import Any

from django.conf import settings

from cluster.drivers.base import cloud
from watcher_site.monitoring.server import serve_metrics
from watcher_site.monitoring.tracing import tracing
from watcher_site.processes import commands
from watcher_site.processes.main_loop import main_loop
from watcher_site.refusals import Invalid


class Command(commands.Command):
    help = "Update the site's tables from the notifications of Nova and Cinder, until SIGTERM or SIGINT."
    acts_for_person = False
    requires_migrations_checks = True

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.CLOUD_NOTIFICATION_URL:
            raise Invalid("WATCHER_CLOUD_NOTIFICATION_URL: set the address of the cloud's message broker.")
        if not cloud().is_mirrored:
            raise Invalid(f"WATCHER_CLOUD: {settings.CLOUD} sends no notifications.")
        from cluster.drivers.openstack.notifications.listener import Listener  # Requires the extra [openstack].

        serve_metrics(Listener.kind, main_loop.find_problem)
        tracing.start(Listener.kind)
        listener = Listener()
        listener.stop_on_signals()
        listener.run()
