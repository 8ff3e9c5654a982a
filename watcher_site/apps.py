from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class WatcherSiteConfig(AppConfig):
    name = "watcher_site"

    def ready(self) -> None:
        from watcher_site import checks  # noqa: F401 (registers them)
        from watcher_site.groups import grant_permissions
        from watcher_site.timestamps import load_timestamps

        post_migrate.connect(grant_permissions, dispatch_uid="watcher_site.groups")
        connection_created.connect(load_timestamps, dispatch_uid="watcher_site.timestamps")
