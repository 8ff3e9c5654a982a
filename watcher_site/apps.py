from django.apps import AppConfig
from django.db.models.signals import post_migrate


class WatcherSiteConfig(AppConfig):
    name = "watcher_site"

    def ready(self) -> None:
        from watcher_site import checks  # noqa: F401 (registers them)
        from watcher_site.groups import grant_permissions

        post_migrate.connect(grant_permissions, dispatch_uid="watcher_site.groups")
